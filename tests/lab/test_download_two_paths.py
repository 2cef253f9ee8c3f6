"""The download over two paths in namespaces: subflows, shares, fallbacks, a path cut in mid-run."""

import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from download_server import Behaviour, Endpoint
from run_download import Run
from two_paths import ADDRESS, PATHS, SERVER, Lab, await_true, lab, why_not

from tandem.mptcp import sysctls
from tandem.mptcp.paths import Paths
from tandem.schema.record import Record

LACK = why_not()
pytestmark = [pytest.mark.lab, pytest.mark.skipif(LACK is not None, reason=str(LACK))]
needs_nft = pytest.mark.skipif(shutil.which("nft") is None, reason="nft is not installed")
RATE = 2e6


@pytest.fixture
def two() -> Iterator[Lab]:
    with lab() as made:
        paths = Paths(PATHS)
        made.probe.inside(paths.apply)
        await_true(lambda: made.probe.inside(paths.check) is not None and len(paths.addresses) == 2, 5, "both paths up")
        made.probe.inside(lambda: sysctls.apply({"net.mptcp.blackhole_timeout": 0}))
        made.paths = paths  # type: ignore[attr-defined]  for the tests that mend
        yield made


class Server:
    """The endpoint in the lab's server namespace and the parameters that lead there."""

    def __init__(self, two: Lab, tmp_path: Path, behaviour: Behaviour, protocol: int = 262) -> None:
        self.endpoint = two.server.inside(lambda: Endpoint(behaviour, protocol))
        token = tmp_path / "token"
        token.write_text("secret")
        self._url = f"http://{SERVER}:"
        self._token = str(token)

    def parameters(self, kind: str, path: str, **more: Any) -> dict[str, Any]:
        return {
            "run": "run-1",
            "kind": kind,
            "path": path,
            "paths": [{"name": p.name, "interface": p.interface, "operator": p.name.upper()} for p in PATHS],
            "server": {
                "control": f"{self._url}{self.endpoint.control_port}",
                "measurement": f"{self._url}{self.endpoint.measurement_port}",
                "token_file": self._token,
            },
            **more,
        }


@pytest.mark.parametrize("primary", ["a", "b"])
def test_both_paths_carry_and_the_counters_add_up(two, tmp_path, primary):
    """Unpaced, the sender fills the first path's window and takes the second as well."""
    server = Server(two, tmp_path, Behaviour(sender={"bytes_sent": 1, "connections": []}))
    run = Run(server.parameters("mptcp", primary, bytes=300_000_000), two.probe.enter)
    line = run.end()
    result = line["result"]
    other = "b" if primary == "a" else "a"
    assert run.process.returncode == 0
    assert line["failure"] is None
    assert (result["bytes"], result["fallback"]) == (300_000_000, False)
    assert [s["path"] for s in result["subflows"]] == [primary, other]
    assert [s["operator"] for s in result["subflows"]] == [primary.upper(), other.upper()]
    assert line["first"] == {"subflow": "1", "path": primary}
    assert sum(s["share"] for s in result["subflows"]) == pytest.approx(1)
    assert all(s["share"] > 0 for s in result["subflows"])
    # what the subflows received is the payload, the answer's head, and what came twice
    assert 300_000_000 <= sum(s["bytes"] for s in result["subflows"]) < 330_000_000
    assert result["subflows"][0]["join_delay_ms"] is None
    assert 0 <= result["subflows"][1]["join_delay_ms"] < 2000
    assert result["sender"]["bytes_sent"] == 1
    by_path = {s["path"]: s["bytes"] for s in result["subflows"]}
    assert {path: row["received"] for path, row in result["bytes_by_path"].items()} == by_path
    assert result["bytes_by_path"][primary]["sent"] > 100  # the request
    assert line["public_addresses"] == ADDRESS
    assert server.endpoint.peers == [ADDRESS[primary]]
    assert result["goodput_bit_per_s"] == pytest.approx(8 * 300_000_000 / result["duration_s"])


def test_samples_come_ten_times_a_second_and_are_records(two, tmp_path):
    server = Server(two, tmp_path, Behaviour(rate=RATE))
    run = Run(server.parameters("mptcp", "a", seconds=3), two.probe.enter)
    result = run.end()["result"]
    times = [s["monotonic_ns"] for s in run.samples]
    gaps = [b - a for a, b in pairwise(times)]
    assert 25 <= len(times) <= 40
    assert sorted(gaps)[len(gaps) // 2] == pytest.approx(1e8, rel=0.1)
    for sample in run.samples:
        Record.make("connection", {"run": "r", "kind": "mptcp", "path": "a", "end": "probe"}, sample["connection"], 1)
        for row in sample["subflows"]:
            tags = {key: row.pop(key) for key in ("subflow", "path", "operator")}
            Record.make("subflow", {**tags, "run": "r", "end": "probe"}, row, 1)
    last = run.samples[-1]["connection"]
    assert last["bytes"] == result["bytes"]
    assert last["subflows"] == 2
    middle = [s["connection"]["goodput_bit_per_s"] for s in run.samples[5:-3]]
    assert sum(middle) / len(middle) == pytest.approx(RATE * 8, rel=0.15)
    assert result["duration_s"] == pytest.approx(3, abs=0.5)


@pytest.mark.parametrize("path", ["a", "b"])
def test_tcp_stays_on_its_path(two, tmp_path, path):
    server = Server(two, tmp_path, Behaviour())
    run = Run(server.parameters("tcp", path, bytes=5_000_000), two.probe.enter)
    result = run.end()["result"]
    assert [(s["subflow"], s["path"], s["share"]) for s in result["subflows"]] == [("0", path, 1.0)]
    assert (result["bytes"], result["fallback"]) == (5_000_000, False)
    assert server.endpoint.peers == [ADDRESS[path]]


def test_a_server_without_mptcp_is_a_fallback(two, tmp_path):
    server = Server(two, tmp_path, Behaviour(), protocol=0)
    run = Run(server.parameters("mptcp", "b", bytes=5_000_000), two.probe.enter)
    result = run.end()["result"]
    assert result["fallback"] is True
    assert [(s["subflow"], s["path"]) for s in result["subflows"]] == [("0", "b")]
    assert all(s["connection"]["fallback"] for s in run.samples)


@needs_nft
def test_options_stripped_on_the_first_path_are_a_fallback(two, tmp_path):
    two.server.run("nft 'add table ip t; add chain ip t c { type filter hook prerouting priority -300; }'")
    two.server.run("nft 'add rule ip t c iifname tmp5-as tcp flags syn reset tcp option mptcp'")
    server = Server(two, tmp_path, Behaviour())
    result = Run(server.parameters("mptcp", "a", bytes=5_000_000), two.probe.enter).end()["result"]
    assert (result["fallback"], [s["path"] for s in result["subflows"]]) == (True, ["a"])


@needs_nft
def test_options_stripped_on_the_second_path_are_no_fallback_and_no_join(two, tmp_path):
    two.server.run("nft 'add table ip t; add chain ip t c { type filter hook prerouting priority -300; }'")
    two.server.run("nft 'add rule ip t c iifname tmp5-bs tcp flags syn reset tcp option mptcp'")
    server = Server(two, tmp_path, Behaviour(rate=RATE))
    run = Run(server.parameters("mptcp", "a", seconds=1), two.probe.enter)
    result = run.end()["result"]
    assert result["fallback"] is False
    assert {s["connection"]["subflows"] for s in run.samples[-3:]} == {1}
    assert [s["join_delay_ms"] for s in result["subflows"] if s["path"] == "b"] in ([], [None])


def test_a_path_cut_in_mid_run_is_survived_by_the_other(two, tmp_path):
    server = Server(two, tmp_path, Behaviour(rate=RATE))
    run = Run(server.parameters("mptcp", "a", seconds=5), two.probe.enter)
    run.until(samples=10)
    two.probe.run("ip addr del 10.71.1.1/24 dev tmp5-a")
    assert [e.kind for e in two.probe.inside(two.paths.check)] == ["path_state", "path_down"]
    line = run.end()
    assert line["failure"] is None
    by_path = {s["path"]: s["bytes"] for s in line["result"]["subflows"]}
    assert by_path["a"] > 0  # the closed subflow kept its counters
    assert by_path["b"] > 2 * RATE  # and the other carried the rest
    assert run.samples[-1]["connection"]["subflows"] == 1


def test_both_paths_cut_stall_the_run_and_keep_what_came(two, tmp_path):
    server = Server(two, tmp_path, Behaviour(rate=RATE))
    run = Run(server.parameters("mptcp", "a", seconds=30, stall_s=1, control_timeout_s=0.5), two.probe.enter)
    run.until(samples=10)
    two.server.run("ip link set tmp5-as down; ip link set tmp5-bs down")
    line = run.end()
    assert run.process.returncode == 1
    assert line["failure"] == {"reason": "stalled: no byte for 1 s", "retry": True}
    assert line["result"]["bytes"] > 0.5 * RATE
    assert line["result"]["sender"] is None


def test_a_dead_primary_path_shows_in_the_measured_connection(two, tmp_path):
    """The session is opened over the other path; what fails is the connect."""
    two.server.run("ip link set tmp5-as down")
    server = Server(two, tmp_path, Behaviour())
    parameters = server.parameters("mptcp", "a", seconds=1, connect_timeout_s=1, control_timeout_s=1, whoami=False)
    run = Run(parameters, two.probe.enter)
    line = run.end()
    assert run.process.returncode == 1
    assert line["control_path"] == "b"
    assert line["failure"]["reason"].startswith("connect: ")
    assert line["failure"]["retry"] is True
    assert line["result"] is None
    assert [c[0] for c in server.endpoint.calls] == ["POST", "DELETE"]
