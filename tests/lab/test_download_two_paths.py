"""The download over two paths in namespaces: subflows, shares, fallbacks, a path cut in mid-run."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from download_lab import SIZE, DownloadLab, download_lab

from support.scripted_endpoint import Behaviour
from support.two_paths import ADDRESS, lab_with
from tandem.schema.record import Record

pytestmark = lab_with()
needs_nft = pytest.mark.skipif(shutil.which("nft") is None, reason="nft is not installed")
RATE = 1e6


@pytest.fixture
def two(tmp_path: Path) -> Iterator[DownloadLab]:
    with download_lab(tmp_path) as made:
        yield made


@pytest.mark.parametrize("primary", ["a", "b"])
def test_both_paths_carry_and_the_counters_add_up(two, primary):
    """Unpaced, the sender fills the first path's window and takes the second as well."""
    run = two.start("mptcp", primary, Behaviour(sender={"bytes_sent": 1, "connections": []}))
    line = run.end()
    result = line["result"]
    other = "b" if primary == "a" else "a"
    assert run.process.returncode == 0
    assert line["failure"] is None
    assert (result["bytes"], result["fallback"]) == (SIZE, False)
    assert [s["path"] for s in result["subflows"]] == [primary, other]
    assert [s["operator"] for s in result["subflows"]] == [primary.upper(), other.upper()]
    assert line["first"] == {"subflow": "1", "path": primary}
    assert line["environment"]["multipath"]["counters"]["MPCapableSYNTX"] >= 1
    assert sum(s["share"] for s in result["subflows"]) == pytest.approx(1)
    assert all(s["share"] > 0 for s in result["subflows"])
    # what the subflows received is the payload, the answer's head, and what came twice
    assert sum(s["bytes"] for s in result["subflows"]) >= SIZE
    assert result["subflows"][0]["join_delay_ms"] is None
    assert result["subflows"][1]["join_delay_ms"] >= 0
    assert result["sender"]["bytes_sent"] == 1
    by_path = {s["path"]: s["bytes"] for s in result["subflows"]}
    assert {path: row["received"] for path, row in result["bytes_by_path"].items()} == by_path
    assert result["bytes_by_path"][primary]["sent"] > 100  # the request
    assert line["public_addresses"] == ADDRESS
    assert two.endpoint.peers == [ADDRESS[primary]]
    assert result["goodput_bit_per_s"] == pytest.approx(8 * SIZE / result["duration_s"])
    assert result["duration_s"] > 0.9 * 8 * SIZE / 40e6  # the links together give no more


def test_samples_are_records_in_order(two):
    run = two.start("mptcp", "a", Behaviour(rate=RATE), seconds=1.5)
    result = run.end()["result"]
    times = [s["monotonic_ns"] for s in run.samples]
    assert times == sorted(set(times))
    assert len(times) >= 2
    for sample in run.samples:
        Record.make("connection", {"run": "r", "kind": "mptcp", "path": "a", "end": "probe"}, sample["connection"], 1)
        for row in sample["subflows"]:
            tags = {key: row.pop(key) for key in ("subflow", "path", "operator")}
            Record.make("subflow", {**tags, "run": "r", "end": "probe"}, row, 1)
    counted = [s["connection"]["bytes"] for s in run.samples]
    assert counted == sorted(counted)
    assert counted[-1] == result["bytes"] > 0
    assert run.samples[-1]["connection"]["subflows"] == 2


def test_tcp_stays_on_its_path(two):
    for path in "ab":
        result = two.start("tcp", path).end()["result"]
        assert [(s["subflow"], s["path"], s["share"]) for s in result["subflows"]] == [("0", path, 1.0)]
        assert (result["bytes"], result["fallback"]) == (SIZE, False)
        assert two.endpoint.peers == [ADDRESS[path]]


@needs_nft
def test_a_server_without_mptcp_or_options_stripped_on_the_first_path_are_a_fallback(two):
    run = two.start("mptcp", "b", protocol=0)
    result = run.end()["result"]
    assert result["fallback"] is True
    assert [(s["subflow"], s["path"]) for s in result["subflows"]] == [("0", "b")]
    assert all(s["connection"]["fallback"] for s in run.samples)
    two.strip("tmp5-as")
    result = two.start("mptcp", "a").end()["result"]
    assert (result["fallback"], [s["path"] for s in result["subflows"]]) == (True, ["a"])


@needs_nft
def test_options_stripped_on_the_second_path_are_no_fallback_and_no_join(two):
    two.strip("tmp5-bs")
    run = two.start("mptcp", "a", Behaviour(rate=RATE), seconds=1)
    result = run.end()["result"]
    assert result["fallback"] is False
    assert {s["connection"]["subflows"] for s in run.samples} == {1}
    assert [s["join_delay_ms"] for s in result["subflows"] if s["path"] == "b"] in ([], [None])


def test_a_path_cut_in_mid_run_is_survived_by_the_other(two):
    run = two.start("mptcp", "a", Behaviour(rate=RATE), seconds=600)
    run.until(lambda sample: sample["connection"]["subflows"] == 2)
    two.lab.probe.run("ip addr del 10.71.1.1/24 dev tmp5-a")
    assert [e.kind for e in two.lab.probe.inside(two.paths.check)] == ["path_state", "path_down"]
    run.until(lambda sample: sample["connection"]["subflows"] == 1)
    cut_at = run.samples[-1]["connection"]["bytes"]
    run.until(lambda sample: sample["connection"]["bytes"] > cut_at + RATE)
    run.process.terminate()
    line = run.end()
    assert line["failure"] == {"reason": "stopped", "retry": False}
    by_path = {s["path"]: s["bytes"] for s in line["result"]["subflows"]}
    assert by_path["a"] > 0  # the closed subflow kept its counters
    assert by_path["b"] > RATE  # and the other carried the rest


def test_both_paths_cut_stall_the_run_and_keep_what_came(two):
    run = two.start("mptcp", "a", Behaviour(rate=RATE), seconds=600, stall_s=2, control_timeout_s=3)
    run.until(lambda sample: sample["connection"]["bytes"] > RATE / 2)
    two.lab.server.run("ip link set tmp5-as down; ip link set tmp5-bs down")
    line = run.end()
    assert run.process.returncode == 1
    assert line["failure"] == {"reason": "stalled: no byte for 2 s", "retry": True}
    assert line["result"]["bytes"] > RATE / 2
    assert line["result"]["sender"] is None


def test_a_dead_primary_path_shows_in_the_measured_connection(two):
    """The session is opened over the other path; what fails is the connect."""
    two.lab.server.run("ip link set tmp5-as down")
    run = two.start("mptcp", "a", seconds=1, connect_timeout_s=1, control_timeout_s=3, whoami=False)
    line = run.end()
    assert run.process.returncode == 1
    assert line["control_path"] == "b"
    assert line["failure"]["reason"].startswith("connect: ")
    assert line["failure"]["retry"] is True
    assert line["result"] is None
    assert [c[0] for c in two.endpoint.calls] == ["POST", "DELETE"]
