"""A download with a number of subflows, ordered one by one: seen in the kernel's statistics at both ends, and in a capture."""

import json
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from download_server import Behaviour, Endpoint
from run_download import Run
from two_paths import ADDRESS, PATHS, SERVER, Lab, await_true, lab, why_not

from tandem.mptcp import sysctls
from tandem.mptcp.paths import Paths

LACK = why_not()
pytestmark = [pytest.mark.lab, pytest.mark.skipif(LACK is not None, reason=str(LACK))]
SECOND = "203.0.113.11"
RATE = 2e6
FOUR = {("a", SERVER), ("b", SERVER), ("a", SECOND), ("b", SECOND)}


@pytest.fixture
def two() -> Iterator[Lab]:
    with lab() as made:
        paths = Paths(PATHS)
        made.probe.inside(paths.apply)
        await_true(lambda: made.probe.inside(paths.check) is not None and len(paths.addresses) == 2, 5, "both paths up")
        for space in (made.probe, made.server):
            space.inside(lambda: sysctls.apply({"net.mptcp.blackhole_timeout": 0}))
        made.server.run(f"ip addr add {SECOND}/32 dev lo; ip mptcp limits set subflow 8")
        yield made


class Server:
    """The endpoint in the lab's server namespace and the parameters that lead there."""

    def __init__(self, two: Lab, folder: Any, behaviour: Behaviour, protocol: int = 262) -> None:
        self.endpoint = two.server.inside(lambda: Endpoint(behaviour, protocol))
        self._token = folder / "token"
        self._token.write_text("secret")

    def parameters(self, **more: Any) -> dict[str, Any]:
        return {
            "run": "run-1",
            "kind": "mptcp",
            "path": "a",
            **({} if "seconds" in more else {"bytes": int(RATE)}),
            "paths": [{"name": p.name, "interface": p.interface, "operator": p.name.upper()} for p in PATHS],
            "server": {
                "control": f"http://{SERVER}:{self.endpoint.control_port}",
                "measurement": f"http://{SERVER}:{self.endpoint.measurement_port}",
                "token_file": str(self._token),
            },
            **more,
        }


def places(result: dict[str, Any]) -> list[tuple[str, str]]:
    """Path and server's address of each subflow that was there, in order."""
    return [(s["path"], s["server_address"]) for s in result["subflows"]]


@pytest.mark.parametrize("how", ["told by the session", "announced in the connection"])
def test_four_subflows_are_two_paths_to_two_addresses(two, tmp_path, how):
    told = how.startswith("told")
    if not told:
        two.server.run(f"ip mptcp endpoint add {SECOND} dev lo signal")
    server = Server(two, tmp_path, Behaviour(rate=RATE, further_addresses=[SECOND] if told else None))
    run = Run(server.parameters(subflows=4), two.probe.enter)
    line = run.end()
    result = line["result"]
    assert line["failure"] is None
    assert (result["subflows_asked"], result["subflows_reached"]) == (4, 4)
    assert places(result)[0] == ("a", SERVER)
    assert set(places(result)) == FOUR
    assert {s["connection"]["subflows"] for s in run.samples[-3:]} == {4}
    assert [s["join_delay_ms"] is None for s in result["subflows"]] == [True, False, False, False]


@pytest.mark.parametrize(("number", "there"), [(1, {("b", SERVER)}), (2, {("a", SERVER), ("b", SERVER)})])
def test_one_and_two_are_exactly_that_although_there_is_more(two, tmp_path, number, there):
    server = Server(two, tmp_path, Behaviour(rate=RATE, further_addresses=[SECOND]))
    run = Run(server.parameters(path="b", subflows=number), two.probe.enter)
    result = run.end()["result"]
    assert (result["subflows_reached"], result["fallback"]) == (number, False)
    assert (places(result)[0], set(places(result))) == (("b", SERVER), there)
    assert max(s["connection"]["subflows"] for s in run.samples) == number


def test_other_connections_keep_the_kernels_path_manager(two, tmp_path):
    """The choice is the socket's own: what connects meanwhile has one subflow a path, by itself."""
    server = Server(two, tmp_path, Behaviour(rate=RATE))
    alone = Run(server.parameters(subflows=1, seconds=120), two.probe.enter)
    alone.until(samples=1)
    ordinary = Run(server.parameters(path="b"), two.probe.enter).end()["result"]
    assert alone.process.poll() is None, "it must have gone on meanwhile"
    assert ordinary["subflows_asked"] is None
    assert {path for path, _ in places(ordinary)} == {"a", "b"}
    alone.process.terminate()
    result = alone.end()["result"]
    assert places(result) == [("a", SERVER)]
    now = two.probe.inside(lambda: sysctls.read(["net.mptcp.pm_type"]))
    assert now == {"net.mptcp.pm_type": "0"}


def test_a_second_address_that_does_not_answer_leaves_two_and_says_so(two, tmp_path):
    server = Server(two, tmp_path, Behaviour(rate=RATE, further_addresses=["203.0.113.99"]))
    two.server.run("ip route add blackhole 203.0.113.99/32")
    line = Run(server.parameters(subflows=4), two.probe.enter).end()
    assert line["failure"] is None
    result = line["result"]
    assert (result["subflows_asked"], result["subflows_reached"]) == (4, 2)
    silent = [o for o in result["subflow_orders"] if o["server_address"] == "203.0.113.99"]
    assert {o["path"] for o in silent} == {"a", "b"}
    assert {(o["established_ms"], o["why_not"], o["attempts"]) for o in silent} == {(None, "no answer", 1)}
    assert result["bytes"] == RATE


def test_a_server_that_takes_no_fourth_refuses_it_and_that_is_said(two, tmp_path):
    two.server.run("ip mptcp limits set subflow 2")
    server = Server(two, tmp_path, Behaviour(rate=RATE, further_addresses=[SECOND]))
    line = Run(server.parameters(subflows=4), two.probe.enter).end()
    result = line["result"]
    assert line["failure"] is None
    assert result["subflows_reached"] == 3
    (refused,) = [o for o in result["subflow_orders"] if o["established_ms"] is None]
    assert (refused["path"], refused["server_address"]) == ("b", SECOND)
    assert (refused["why_not"], refused["attempts"]) == ("refused after its handshake", 2)


@pytest.mark.parametrize(
    "told", [[], "203.0.113.11", ["::1", "127.0.0.1", "224.0.0.1", "x", 7, None, SERVER], {"a": 1}, [[]] * 1000]
)
def test_odd_answers_leave_two(two, tmp_path, told):
    server = Server(two, tmp_path, Behaviour(rate=RATE, further_addresses=told))
    line = Run(server.parameters(subflows=4, bytes=int(RATE / 2)), two.probe.enter).end()
    assert line["failure"] is None
    assert set(places(line["result"])) == {("a", SERVER), ("b", SERVER)}
    assert {o["server_address"] for o in line["result"]["subflow_orders"]} == {SERVER}


def test_a_server_without_mptcp_is_a_fallback_with_one(two, tmp_path):
    server = Server(two, tmp_path, Behaviour(rate=RATE, further_addresses=[SECOND]), protocol=0)
    line = Run(server.parameters(subflows=4, bytes=1000), two.probe.enter).end()
    assert line["failure"] is None
    result = line["result"]
    assert (result["fallback"], result["subflows_asked"], result["subflows_reached"]) == (True, 4, 1)
    assert result["subflow_orders"] == []


@pytest.mark.skipif(shutil.which("ss") is None, reason="ss is not installed")
def test_a_subflow_that_one_reset_takes_away_comes_back(two, tmp_path):
    server = Server(two, tmp_path, Behaviour(rate=RATE, further_addresses=[SECOND]))
    run = Run(server.parameters(subflows=4, seconds=120), two.probe.enter)
    seen = 1
    run.until(samples=seen)
    while run.samples[-1]["connection"]["subflows"] < 4:
        run.until(samples=(seen := seen + 1))
    two.server.run(f"ss -K src {SECOND} dst {ADDRESS['b']}")
    while len({s["subflow"] for sample in run.samples for s in sample["subflows"]}) < 5:
        run.until(samples=(seen := seen + 1))
    run.process.terminate()
    result = run.end()["result"]
    assert places(result).count(("b", SECOND)) == 2
    assert result["subflows_reached"] == 4


def test_without_the_right_it_is_refused_plainly(two, tmp_path):
    server = Server(two, tmp_path, Behaviour(rate=RATE))
    drop = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]
    run = Run(server.parameters(subflows=2), [*two.probe.enter, *drop])
    printed, said = run.process.communicate(timeout=30)
    assert run.process.returncode == 3
    assert [json.loads(line)["type"] for line in printed.splitlines()] == ["started"]
    assert said.count("\n") == 1
    assert "a number of subflows cannot be ordered here: Operation not permitted; mend: CAP_NET_ADMIN" in said
    assert [method for method, _ in server.endpoint.calls][-2:] == ["POST", "DELETE"]
