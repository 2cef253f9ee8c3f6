"""A run's captures of one path each, which are read as one: what each path carried, and the data-level queue over all."""

import json
import shutil
from dataclasses import replace

import folders
import numpy as np
import pytest
from folders import run

from support import capture_scenes
from support.capture_scenes import C0, S0, Multipath, plain_download
from support.captures import ACK, CLIENT, CLIENT2, EPOCH, MS, dss, pcap, token
from tandem_server import tandem_trace_core
from tandem_server.analysis.captures import ALONE, cut_captures, of_campaign
from tandem_server.analysis.evaluate import evaluate
from tandem_server.analysis.folder import CampaignFolder, Capture, load
from tandem_server.analysis.records import Clock

CLOCK = Clock(EPOCH - 10 * 10**9)


def plain_manifest(name: str = "run-1", **more) -> dict:
    of_opener = f"{token(capture_scenes.CLIENT_KEY, 1):08x}"
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


ADDRESSES = {"a": CLIENT, "b": CLIENT2}


def captured(folder) -> list:
    """The captures of the fixture."""
    return sorted((folder / "probe" / "captures").glob("*.pcap"))


@pytest.fixture
def folder(tmp_path):
    """Captures of path a and of path b of one connection, analysed as they lie in a campaign's folder."""
    caps = tmp_path / "probe" / "captures"
    caps.mkdir(parents=True)
    for path, own in zip("ab", capture_scenes.by_path(capture_scenes.two_subflows().wire.packets), strict=True):
        (caps / f"run-1-{path}.pcap").write_bytes(pcap(own))
    run(tmp_path / "probe", "--out", tmp_path / "traces")
    return tmp_path


def listed(run_name: str | None = "run-1", pair: str | None = None) -> list[Capture]:
    return [Capture(f"captures/run-1-{path}.pcap", 0, None, run_name, path, False, pair) for path in "ab"]


def bins_of(folder, captures, *manifests):
    """Of a campaign with these captures and runs, and what it says of them."""
    campaign = CampaignFolder(folder, "probe-1", {}, None, list(manifests), {}, [], captures, None)
    found = replace(evaluate(campaign, "no database", set()), clock=CLOCK)
    packets = of_campaign(found)
    assert packets is not None
    return packets.bins, campaign.remarks


def queues(folder, captures, *manifests):
    made, remarks = bins_of(folder, captures, *manifests)
    return [bins for bins in made if bins.path is None], [line for line in remarks if "queue" in line]


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


def test_captures_that_were_read_as_one_tell_the_same_by_path_and_the_queue_beside(folder):
    captures, told = listed(), plain_manifest()
    told["environment"]["path_addresses"] = ADDRESSES
    caps = captured(folder)
    made, remarks = bins_of(folder, captures, told)
    assert ([(one.run, one.path) for one in made], remarks) == ([("run-1", "a"), ("run-1", "b"), ("run-1", None)], [])
    assert bins_of(folder, captures[:1], told)[0] == []  # another capture is in it, nobody knows whose
    for kind in ({**told, "result": {"fallback": True}}, {**told, "kind": "tcp"}):
        assert not [one for one in bins_of(folder, captures, kind)[0] if one.path is None]
    run(*caps, "--out", folder / "traces")  # each by itself, by hand: it takes the place of what was read as one
    assert sorted(len(row["file"].split(" + ")) for row in folders.tables(folder / "traces", "files")) == [1, 1]
    alone, remarks = bins_of(folder, captures, told)
    assert remarks == [f"run-1: no data-level queue: {ALONE}"]
    assert [one.path for one in alone] == ["a", "b"]
    for one, other in zip(made, alone, strict=False):
        np.testing.assert_array_equal((one.t_s, one.in_flight_bytes), (other.t_s, other.in_flight_bytes))


def test_round_trips_are_each_paths_own_in_captures_that_were_read_as_one(tmp_path):
    """A segment over each path, acknowledged after 40 ms and after 90 ms."""
    scene = Multipath()
    (a, _), (b, _) = scene.open(), scene.join(100 * MS)
    for n, (end, took) in enumerate(((a, 40), (b, 90))):
        mapped = dss(ack=scene.to_client, dsn=scene.to_server + 1000 * n, ssn=1, length=1000)
        end(200 * MS, C0 + 1, S0 + 1, ACK, 1000, mapped)
        end.other()((200 + took) * MS, S0 + 1, C0 + 1001, ACK, 0, dss(ack=scene.to_server + 1000 * (n + 1)))
    (tmp_path / "probe" / "captures").mkdir(parents=True)
    for path, own in zip("ab", capture_scenes.by_path(scene.wire.packets), strict=True):
        (tmp_path / "probe" / "captures" / f"run-1-{path}.pcap").write_bytes(pcap(own))
    told = plain_manifest(environment={**plain_manifest()["environment"], "path_addresses": ADDRESSES})
    for named in ([tmp_path / "probe"], captured(tmp_path)):
        run(*named, "--out", tmp_path / "traces")
        made, _ = bins_of(tmp_path, listed(), told)
        assert {one.path: (one.rtts.ms.tolist(), one.rtts.n) for one in made if one.path} == {
            "a": ([40], 1),
            "b": ([90], 1),
        }


def test_a_path_that_could_be_two_is_refused(folder):
    odd = folder / "probe" / "x + "
    odd.mkdir()
    shutil.copy(folder / "probe/captures/run-1-a.pcap", odd / "a.pcap")
    err = run(odd / "a.pcap", "--out", folder / "traces", status=1).stderr
    assert "stands between captures that are read as one" in err


def test_one_path_or_what_has_no_token_or_fell_back_has_no_queue(folder):
    assert queues(folder, listed()[:1], plain_manifest()) == ([], [])
    for changed in ({"environment": {}}, {"result": {"fallback": True}}, {"kind": "tcp"}, {"name": "run-2"}):
        assert queues(folder, listed(), plain_manifest(**changed)) == ([], []), changed


def test_a_cut_capture_is_told_with_those_that_were_read_with_it(folder):
    campaign = CampaignFolder(folder, "probe-1", {}, None, [], {}, [], listed(), None)
    assert cut_captures(campaign) == []
    _, b = captured(folder)
    b.write_bytes(b.read_bytes()[:-7])
    run(folder / "probe", "--out", folder / "traces")
    assert cut_captures(campaign) == ["run-1-a.pcap", "run-1-b.pcap"]


def test_what_is_too_much_for_one_reading_is_named(folder, monkeypatch):
    whole = tandem_trace_core.analyse_together
    small = {"together_bytes": 400}
    monkeypatch.setattr(
        "tandem_server.tandem_trace_core.analyse_together", lambda paths, **how: whole(paths, limits=small, **how)
    )
    shutil.rmtree(folder / "traces")
    run(folder / "probe", "--out", folder / "traces")
    assert queues(folder, listed(), plain_manifest()) == (
        [],
        ["run-1: no data-level queue: its captures are too much for one reading (together_bytes)"],
    )


def test_a_folder_says_which_captures_are_shared_with_and_without_the_collectors_account(tmp_path):
    own = tmp_path / "probe" / "probe-1"
    (own / "runs").mkdir(parents=True)
    (tmp_path / "campaign.json").write_text('{"format": "tandem-campaign/1", "probe": "probe-1"}')
    captured = {"captures": {"shared_by_pair": True, "problems": {}}}
    files = [{"name": "captures/pair-1-a.pcap", "bytes": 7, "packets": 1, "sha256": "0" * 64}]
    for one in (plain_manifest("run-a", kind="tcp", pair="pair-1"), plain_manifest("run-m", pair="pair-1")):
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
    (tmp_path / "captures").mkdir()
    packets = plain_download("10.0.0.1", "192.0.2.8").packets + capture_scenes.two_subflows(1).wire.packets
    content = pcap(sorted(packets, key=lambda packet: packet.time_ns))
    (tmp_path / "captures" / "pair-1-a.pcap").write_bytes(content)
    run(tmp_path / "captures", "--out", tmp_path / "traces")
    single = plain_manifest("run-a", kind="tcp", pair="pair-1", result={"bytes": 5000})
    both = plain_manifest("run-m", pair="pair-1")
    capture = Capture("captures/pair-1-a.pcap", 0, None, None, "a", False, "pair-1")
    made, remarks = bins_of(tmp_path, [capture], single, both)
    assert sorted((bins.run, bins.path) for bins in made) == [("run-a", "a"), ("run-m", "a")]
    assert remarks == []
    untold = [plain_manifest(f"run-{n}", pair="pair-1", environment={}) for n in range(3)]
    assert bins_of(tmp_path, [capture], *untold)[1] == [
        "run-0 and 2 more runs: not joined to its packets: its manifest holds no token"
    ]


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
    manifests = plain_manifest("run-1", kind="tcp", result={"bytes": 5000}), plain_manifest("run-2")
    made, _ = bins_of(tmp_path, listed, *manifests)
    assert [(bins.run, bins.path) for bins in made] == [("run-1", "modem-1"), ("run-2", ""), ("run-2", None)]
    assert all(bins.t_s[0] >= 10 and np.allclose(np.diff(bins.t_s), 0.1) for bins in made)
    assert np.nanmax(made[2].reorder_queue_bytes) == 2000
    assert np.nanmax(made[0].in_flight_bytes) > 0
    assert (made[0].rtts.ms.tolist(), made[0].rtts.counts.tolist(), made[0].waits) == ([40, 45], [3, 1], None)
    assert (made[2].rtts, made[2].waits.ms.tolist(), made[2].waits.counts.tolist()) == (None, [0, 1, 2], [2, 1, 1])
    for old in (tmp_path / "traces/rtts").iterdir():
        old.unlink()  # as an analysis of before left it
    assert [bins.rtts for bins in bins_of(tmp_path, listed, *manifests)[0]] == [None, None, None]
