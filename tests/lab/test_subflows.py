"""A download with a number of subflows, ordered one by one: seen in the kernel's statistics at both ends, and in a capture."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from download_lab import SIZE, DownloadLab, download_lab

from support.scripted_endpoint import Behaviour
from support.two_paths import ADDRESS, SERVER, lab_with
from tandem.mptcp import sysctls

pytestmark = lab_with()
SECOND = "203.0.113.11"
RATE = 1e6
FOUR = {("a", SERVER), ("b", SERVER), ("a", SECOND), ("b", SECOND)}


@pytest.fixture
def two(tmp_path: Path) -> Iterator[DownloadLab]:
    with download_lab(tmp_path) as made:
        made.lab.server.run(f"ip addr add {SECOND}/32 dev lo; ip mptcp limits set subflow 8")
        yield made


def places(result: dict[str, Any]) -> list[tuple[str, str]]:
    """Path and server's address of each subflow that was there, in order."""
    return [(s["path"], s["server_address"]) for s in result["subflows"]]


def further(*addresses: object) -> Behaviour:
    """The session tells of them."""
    return Behaviour(rate=RATE, further_addresses=[*addresses])


@pytest.mark.parametrize("how", ["told by the session", "announced in the connection"])
def test_four_subflows_are_two_paths_to_two_addresses(two, how):
    told = how.startswith("told")
    if not told:
        two.lab.server.run(f"ip mptcp endpoint add {SECOND} dev lo signal")
    run = two.start("mptcp", "a", further(SECOND) if told else Behaviour(rate=RATE), subflows=4)
    line = run.end()
    result = line["result"]
    assert line["failure"] is None
    assert (result["subflows_asked"], result["subflows_reached"]) == (4, 4)
    assert places(result)[0] == ("a", SERVER)
    assert set(places(result)) == FOUR
    assert run.samples[-1]["connection"]["subflows"] == 4
    assert [s["join_delay_ms"] is None for s in result["subflows"]] == [True, False, False, False]


def test_a_held_request_is_answered_over_both_paths_from_its_first_byte(two):
    """The wait is told, and counts neither as download time nor in the goodput."""
    run = two.start("mptcp", "a", Behaviour(rate=RATE), subflows=2, join_before_request=True, sample_hz=100)
    line = run.end()
    result = line["result"]
    assert line["failure"] is None
    assert (result["subflows_reached"], result["bytes"]) == (2, SIZE)
    carried = [s for s in run.samples if sum(flow["bytes_received"] for flow in s["subflows"])]
    assert carried
    assert {s["connection"]["subflows"] for s in carried} == {2}
    assert result["held_ms"] > 0
    assert result["goodput_bit_per_s"] * result["duration_s"] == pytest.approx(8 * SIZE)


NO_JOINS = (  # MP_JOIN is subtype 1 (RFC 8684 section 8.2)
    "add table inet gone; add chain inet gone in { type filter hook input priority 0; };"
    " add rule inet gone in tcp option mptcp subtype 1 drop"
)


def test_a_held_request_goes_on_where_no_second_subflow_comes(two):
    # Not refused, which for an instant looks like one that came: its SYNs reach nobody.
    two.lab.server.run(f"nft '{NO_JOINS}'")
    try:
        line = two.start("mptcp", "a", Behaviour(rate=RATE), subflows=2, join_before_request=True, bytes=1000).end()
    finally:
        two.lab.server.run("nft delete table inet gone")
    assert (line["failure"], line["result"]["subflows_reached"], line["result"]["bytes"]) == (None, 1, 1000)
    assert line["result"]["held_ms"] >= 5000


@pytest.mark.parametrize(("number", "there"), [(1, {("b", SERVER)}), (2, {("a", SERVER), ("b", SERVER)})])
def test_one_and_two_are_exactly_that_although_there_is_more(two, number, there):
    run = two.start("mptcp", "b", further(SECOND), subflows=number)
    result = run.end()["result"]
    assert (result["subflows_reached"], result["fallback"]) == (number, False)
    assert (places(result)[0], set(places(result))) == (("b", SERVER), there)
    assert max(s["connection"]["subflows"] for s in run.samples) == number


def test_other_connections_keep_the_kernels_path_manager(two):
    """The choice is the socket's own: what connects meanwhile has one subflow a path, by itself."""
    alone = two.start("mptcp", "a", Behaviour(rate=RATE), subflows=1, seconds=600)
    alone.until(lambda _: True)
    ordinary = two.start("mptcp", "b", Behaviour(rate=RATE)).end()["result"]
    assert alone.process.poll() is None, "it must have gone on meanwhile"
    assert ordinary["subflows_asked"] is None
    assert {path for path, _ in places(ordinary)} == {"a", "b"}
    alone.process.terminate()
    result = alone.end()["result"]
    assert places(result) == [("a", SERVER)]
    now = two.lab.probe.inside(lambda: sysctls.read(["net.mptcp.pm_type"]))
    assert now == {"net.mptcp.pm_type": "0"}


def test_a_second_address_that_does_not_answer_leaves_two_and_says_so(two):
    two.lab.server.run("ip route add blackhole 203.0.113.99/32")
    line = two.start("mptcp", "a", further("203.0.113.99"), subflows=4).end()
    assert line["failure"] is None
    result = line["result"]
    assert (result["subflows_asked"], result["subflows_reached"]) == (4, 2)
    silent = [o for o in result["subflow_orders"] if o["server_address"] == "203.0.113.99"]
    assert {o["path"] for o in silent} == {"a", "b"}
    assert {(o["established_ms"], o["why_not"], o["attempts"]) for o in silent} == {(None, "no answer", 1)}
    assert result["bytes"] == SIZE


def test_a_server_that_takes_no_fourth_refuses_it_and_that_is_said(two):
    two.lab.server.run("ip mptcp limits set subflow 2")
    line = two.start("mptcp", "a", further(SECOND), subflows=4, bytes=3 * SIZE).end()
    result = line["result"]
    assert line["failure"] is None
    assert result["subflows_reached"] == 3
    (refused,) = [o for o in result["subflow_orders"] if o["established_ms"] is None]
    assert (refused["path"], refused["server_address"]) in FOUR - {("a", SERVER)}
    assert (refused["why_not"], refused["attempts"]) == ("refused after its handshake", 2)


def test_a_server_without_mptcp_is_a_fallback_with_one(two):
    line = two.start("mptcp", "a", further(SECOND), 0, subflows=4, bytes=1000).end()
    assert line["failure"] is None
    result = line["result"]
    assert (result["fallback"], result["subflows_asked"], result["subflows_reached"]) == (True, 4, 1)
    assert result["subflow_orders"] == []


@pytest.mark.skipif(shutil.which("ss") is None, reason="ss is not installed")
def test_a_subflow_that_one_reset_takes_away_comes_back(two):
    run = two.start("mptcp", "a", further(SECOND), subflows=4, seconds=600)
    run.until(lambda sample: sample["connection"]["subflows"] == 4)
    two.lab.server.run(f"ss -K src {SECOND} dst {ADDRESS['b']}")
    run.until(lambda _: len({s["subflow"] for sample in run.samples for s in sample["subflows"]}) == 5)
    run.process.terminate()
    result = run.end()["result"]
    assert places(result).count(("b", SECOND)) == 2
    assert result["subflows_reached"] == 4


def test_without_the_right_it_is_refused_plainly(two):
    run = two.start("mptcp", "a", through=["setpriv", "--bounding-set=-net_admin", "--inh-caps=-net_admin"], subflows=2)
    printed, said = run.process.communicate(timeout=240)
    assert run.process.returncode == 3
    assert [json.loads(line)["type"] for line in printed.splitlines()] == ["started"]
    assert said.count("\n") == 1
    assert "a number of subflows cannot be ordered here: Operation not permitted; hint: CAP_NET_ADMIN" in said
    assert [method for method, _ in two.endpoint.calls][-2:] == ["POST", "DELETE"]
