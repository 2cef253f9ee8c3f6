"""A run's captures of one path each, read together: the data-level queue over all paths."""

import json
import shutil
from dataclasses import replace

import folders
import numpy as np
import pytest
import scenes
from captures import EPOCH, S, pcap, token
from folders import run, tables
from scenes import plain_download, two_subflows

from tandem_server import tandem_trace_core
from tandem_server.analysis.clock import Clock
from tandem_server.analysis.folder import Capture, load
from tandem_server.analysis.papers.folder_bins import bins_of_folder
from tandem_server.analysis.papers.series import summed
from tandem_server.analysis.papers.shared_captures import Seen, joined

pytest.importorskip("pyarrow", reason="no pyarrow; pip install -r requirements/dev.txt")
CLOCK = Clock(EPOCH - 10 * 10**9)


def plain_manifest(name: str = "run-1", **more) -> dict:
    of_opener = f"{token(scenes.CLIENT_KEY, 1):08x}"
    return {
        "id": name,
        "kind": "mptcp",
        "pair": None,
        "started_utc_ns": EPOCH,
        "ended_utc_ns": EPOCH + 10**9,
        "environment": {"further": {"connection": of_opener}},
        "result": {"fallback": False},
        **more,
    }


@pytest.fixture
def folder(tmp_path):
    """Captures of path a and of path b of one connection, analysed."""
    caps = tmp_path / "probe" / "captures"
    caps.mkdir(parents=True)
    for path, own in zip("ab", scenes.by_path(scenes.two_subflows().wire.packets), strict=True):
        (caps / f"run-1-{path}.pcap").write_bytes(pcap(own))
    run(tmp_path / "probe", "--out", tmp_path / "traces")
    return tmp_path


def listed(run_name: str | None = "run-1", pair: str | None = None) -> list[Capture]:
    return [Capture(f"captures/run-1-{path}.pcap", 0, None, run_name, path, False, pair) for path in "ab"]


def queues(folder, captures, *manifests):
    remarks: list[str] = []
    made = bins_of_folder(folder, captures, CLOCK, manifests, remarks)
    return [bins for bins in made if bins.path is None], remarks


@pytest.mark.parametrize(("run_name", "pair"), [("run-1", None), (None, "pair-1")])
def test_the_queue_of_both_paths_is_what_came_before_the_gap_was_filled(folder, run_name, pair):
    made, remarks = queues(folder, listed(run_name, pair), plain_manifest(pair=pair))
    (queue,) = made
    assert (queue.run, remarks) == ("run-1", [])
    assert np.nanmax(queue.reorder_queue_bytes) == 2000
    assert queue.t_s[0] == pytest.approx(10.0)
    assert np.allclose(np.diff(queue.t_s), 0.1)
    # 3000 came at 201 ms, 2000 at 202, what filled the gap at 203.
    assert (queue.waits.ms.tolist(), queue.waits.counts.tolist(), queue.waits.longer) == ([0, 1, 2], [2, 1, 1], 0)


@pytest.mark.parametrize(("run_name", "pair"), [("run-1", None), (None, "pair-1")])
def test_captures_that_were_read_as_one_tell_the_same_and_count_once(folder, run_name, pair):
    """As a server analyses them when they come."""
    captures, told = listed(run_name, pair), plain_manifest(pair=pair)
    alone = bins_of_folder(folder, captures, CLOCK, [told])
    caps = [folder / "probe" / "captures" / f"run-1-{path}.pcap" for path in "ab"]
    shutil.rmtree(folder / "traces")
    run(*caps, "--together", "--out", folder / "traces")
    for one in caps:
        one.rename(one.with_suffix(".gone"))
    remarks: list[str] = []
    made = bins_of_folder(folder, captures, CLOCK, [told], remarks)
    assert [(one.run, one.path) for one in made] == [("run-1", ""), ("run-1", None)]
    assert remarks == []

    def flight(bins):
        return summed([(one.t_s, one.in_flight_bytes) for one in bins if one.path is not None])[1].tolist()

    assert flight(made) == flight(alone)
    (queue,), (before,) = ([one for one in bins if one.path is None] for bins in (made, alone))
    np.testing.assert_array_equal(queue.reorder_queue_bytes, before.reorder_queue_bytes)
    assert bins_of_folder(folder, captures[:1], CLOCK, [told]) == []  # another capture is in it, nobody knows whose
    for kind in (plain_manifest(pair=pair, result={"fallback": True}), plain_manifest(pair=pair, kind="tcp")):
        assert not [one for one in bins_of_folder(folder, captures, CLOCK, [kind]) if one.path is None]
    for one in caps:
        one.with_suffix(".gone").rename(one)
    run(folder / "probe", "--out", folder / "traces")  # by hand too: they lie there twice
    assert {one.run for one in bins_of_folder(folder, captures, CLOCK, [told])} == {"run-1"}
    assert len(queues(folder, captures, told)[0]) == 1


def test_a_path_that_could_be_two_is_refused(folder):
    odd = folder / "probe" / "x + "
    odd.mkdir()
    shutil.copy(folder / "probe/captures/run-1-a.pcap", odd / "a.pcap")
    err = run(odd / "a.pcap", "--out", folder / "traces", status=1).stderr
    assert "stands between captures that are read as one" in err


def test_one_path_or_what_has_no_token_or_fell_back_has_no_queue(folder):
    assert queues(folder, listed()[:1], plain_manifest()) == ([], [])
    for m in (
        plain_manifest(environment={}),
        plain_manifest(result={"fallback": True}),
        plain_manifest(kind="tcp"),
        plain_manifest("run-2"),
    ):
        assert queues(folder, listed(), m) == ([], []), m


def test_what_cannot_be_told_is_named(folder):
    told = plain_manifest(environment={"further": {"connection": "0badcafe"}})
    assert queues(folder, listed(), told) == (
        [],
        ["run-1: no data-level queue: 0 connections in its captures have its token"],
    )
    with_c = [*listed(), Capture("captures/run-1-c.pcap", 0, None, "run-1", "c", False)]
    assert queues(folder, with_c, plain_manifest()) == (
        [],
        ["run-1: no data-level queue: not all of its captures were analysed with bins of one width"],
    )
    changed = folder / "probe/captures/run-1-b.pcap"
    why = f"run-1: no data-level queue: {changed} is gone or was changed since it was analysed"
    changed.write_bytes(folders.plain())
    assert queues(folder, listed(), plain_manifest()) == ([], [why])
    changed.unlink()
    assert queues(folder, listed(), plain_manifest()) == ([], [why])


def test_what_is_too_much_for_one_reading_is_named(folder, monkeypatch):
    whole = tandem_trace_core.analyse_together
    small = {"together_bytes": 400}
    monkeypatch.setattr(
        "tandem_server.tandem_trace_core.analyse_together",
        lambda paths, bin_ns: whole(paths, bin_ns=bin_ns, limits=small),
    )
    assert queues(folder, listed(), plain_manifest()) == (
        [],
        ["run-1: no data-level queue: its captures are too much for one reading (together_bytes)"],
    )


SERVER = "192.0.2.9"
URL = {"server": {"measurement": f"http://{SERVER}:8480"}}


def manifest(name: str, kind: str, further=None, result=None, start=0, end=100 * S) -> dict:
    made = {"id": name, "pair": "pair-1", "kind": kind, "parameters": URL, "environment": {"further": further or {}}}
    return {**made, "started_utc_ns": start, "ended_utc_ns": end, "result": result or {}}


def tcp(name: str, path: str, port: int, received: int = 1000, **times) -> dict:
    """A TCP run whose server saw it at this port."""
    row = {"path": path, "remote": {"address": "198.51.100.7", "port": port}}
    result = {
        "bytes": received,
        "subflows": [{"server_address": SERVER}],
        "sender": {"connections": [{"subflows": [row]}]},
    }
    return manifest(name, "tcp", {"connection": None}, result, **times)


def mptcp(name: str, token: int) -> dict:
    return manifest(name, "mptcp", {"connection": f"{token:08x}"})


def plain(number: int, port: int, received: int = 1200) -> Seen:
    return Seen(number, False, port, SERVER, 8480, S, 2 * S, None, None, received)


def multi(number: int, ours: int | None, theirs: int | None) -> Seen:
    return Seen(number, True, 40_000 + number, SERVER, 8480, S, 2 * S, ours, theirs, 500)


PAIR = [mptcp("run-m", 0xA1), tcp("run-a", "a", 5001), tcp("run-b", "b", 5002)]
SEEN = {
    "a": [plain(0, 5000, 3), plain(1, 5001), multi(2, 0xA1, 0xB1)],
    "b": [multi(0, None, 0xB1), plain(1, 5002), multi(2, None, 0xB2)],
}


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"opener_port": 5003}, "0 connections in the capture of path a are from the port that the server saw"),
        ({"responder_port": 8444}, "0 connections"),
        ({"responder_address": "192.0.2.10"}, "0 connections"),
        ({"multipath": True}, "0 connections"),
        ({"bytes": 999}, "0 connections"),
        ({"start_utc_ns": 101 * S, "end_utc_ns": 102 * S}, "0 connections"),
    ],
)
def test_what_does_not_fit_in_everything_is_not_it(other, why):
    made, lines = joined([PAIR[1]], {"a": [replace(plain(1, 5001), **other)]})
    assert made == {}
    assert len(lines) == 1
    assert lines[0].startswith(f"run-a: not joined to its packets: {why}")


def test_what_is_not_sure_is_not_joined():
    made, (line,) = joined([PAIR[1]], {"a": [plain(1, 5001), plain(2, 5001)]})
    assert (made, line.partition(": ")[2][:34]) == ({}, "not joined to its packets: 2 conne")
    made, (line,) = joined([PAIR[0]], {"a": [multi(1, 0xA1, 0xB1), multi(2, 0xA1, 0xB2)]})
    assert (made, line) == ({}, "run-m: not joined to its packets: 2 connections in the captures have its token")
    made, lines = joined([tcp("run-a", "a", 5001), tcp("run-c", "a", 5001), PAIR[0]], SEEN)
    assert made == {("run-m", "a"): 2, ("run-m", "b"): 0}
    assert lines == [
        f"{name}: not joined to its packets on path a: another run could be meant as well"
        for name in ("run-a", "run-c")
    ]
    made, (line,) = joined([PAIR[0]], {"b": SEEN["b"]})
    assert (made, line) == ({}, "run-m: not joined to its packets: 0 connections in the captures have its token")
    made, lines = joined(PAIR, SEEN)
    assert made == {("run-m", "a"): 2, ("run-m", "b"): 0, ("run-a", "a"): 1, ("run-b", "b"): 1}
    assert lines == []


@pytest.mark.parametrize("result", [{}, {"sender": None}, {"sender": {"connections": [{"subflows": [{"path": "a"}]}]}}])
def test_records_that_hold_nothing(result):
    made, lines = joined([manifest("run-a", "tcp", result=result)], SEEN)
    assert made == {}
    assert "its records hold " in lines[0]


def test_a_folder_says_which_captures_are_shared_with_and_without_the_collectors_account(tmp_path):
    own = tmp_path / "probe" / "probe-1"
    (own / "runs").mkdir(parents=True)
    (tmp_path / "campaign.json").write_text('{"format": "tandem-campaign/1", "probe": "probe-1"}')
    captured = {"captures": {"shared_by_pair": True, "problems": {}}}
    files = [{"name": "captures/pair-1-a.pcap", "bytes": 7, "packets": 1, "sha256": "0" * 64}]
    for one in (tcp("run-a", "a", 5001), mptcp("run-m", 1)):
        one |= {"format": "tandem-run/1", "files": files, "environment": captured}
        (own / "runs" / f"{one['id']}.json").write_text(json.dumps(one))
    expected = Capture("captures/pair-1-a.pcap", 7, 1, None, "a", False, "pair-1")
    assert load(tmp_path).captures == [expected]
    row = {"file": "captures/pair-1-a.pcap", "bytes": 7, "packets": 1, "run": None, "pair": "pair-1", "path": "a"}
    account = {"format": "tandem-collector/1", "probe": "probe-1", "captures": [{**row, "cut": False}]}
    (own / "collector.json").write_text(json.dumps(account))
    assert load(tmp_path).captures == [expected]


def test_bins_of_a_capture_that_two_runs_shared(tmp_path):
    """A plain download and a multipath one in one file, both from port 40000."""
    pytest.importorskip("pyarrow", reason="no pyarrow; pip install -r requirements/dev.txt")
    (tmp_path / "caps").mkdir()
    packets = plain_download("10.0.0.1", "192.0.2.8").packets + two_subflows(1).wire.packets
    (tmp_path / "caps" / "pair-1-a.pcap").write_bytes(pcap(sorted(packets, key=lambda packet: packet.time_ns)))
    run(tmp_path / "caps", "--out", tmp_path / "traces")
    (token,) = {row["opener_token"] for row in tables(tmp_path / "traces", "connections") if row["multipath"]}
    single = tcp("run-a", "a", 40_000, 5000, start=EPOCH, end=EPOCH + S)
    single["parameters"] = {"server": {"measurement": "https://192.0.2.8:443"}}
    single["result"]["subflows"] = [{"server_address": "192.0.2.8"}]
    both = {**mptcp("run-m", token), "started_utc_ns": EPOCH, "ended_utc_ns": EPOCH + S}
    capture = Capture("captures/pair-1-a.pcap", 0, None, None, "a", False, "pair-1")
    remarks: list[str] = []
    made = bins_of_folder(tmp_path, [capture], Clock(EPOCH), [single, both], remarks)
    assert sorted((bins.run, bins.path) for bins in made) == [("run-a", "a"), ("run-m", "a")]
    assert remarks == []
    assert bins_of_folder(tmp_path, [capture], Clock(EPOCH), [single], remarks)[0].run == "run-a"
    lost = mptcp("run-x", token ^ 1)
    assert bins_of_folder(tmp_path, [capture], Clock(EPOCH), [lost], remarks) == []
    assert len(remarks) == 1


pytest.importorskip("pyarrow", reason="no pyarrow; pip install -r requirements/dev.txt")


def test_bins_by_run_and_path(tmp_path):
    captures = tmp_path / "captures"
    captures.mkdir()
    (captures / "a.pcap").write_bytes(folders.plain())
    (captures / "both.pcap").write_bytes(folders.two_subflows())
    (captures / "stray.pcap").write_bytes(folders.plain())
    run(captures, "--out", tmp_path / "traces")
    listed = [
        Capture("captures/a.pcap", 0, None, "run-1", "modem-1", False),
        Capture("captures/both.pcap", 0, None, "run-2", None, False),
        Capture("captures/stray.pcap", 0, None, None, None, False),
    ]
    made = bins_of_folder(tmp_path, listed, Clock(EPOCH - 10 * 10**9))
    assert [(bins.run, bins.path) for bins in made] == [("run-1", "modem-1"), ("run-2", ""), ("run-2", None)]
    assert all(bins.t_s[0] >= 10 and np.allclose(np.diff(bins.t_s), 0.1) for bins in made)
    assert np.nanmax(made[2].reorder_queue_bytes) == 2000
    assert np.nanmax(made[0].in_flight_bytes) > 0
    assert (made[0].rtts.ms.tolist(), made[0].rtts.counts.tolist(), made[0].waits) == ([40, 45], [3, 1], None)
    assert (made[2].rtts, made[2].waits.ms.tolist(), made[2].waits.counts.tolist()) == (None, [0, 1, 2], [2, 1, 1])
    for old in (tmp_path / "traces/rtts").iterdir():
        old.unlink()  # as an analysis of before left it
    assert [bins.rtts for bins in bins_of_folder(tmp_path, listed, CLOCK)] == [None, None, None]
