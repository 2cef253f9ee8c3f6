"""The collector's runs, with doubles for modems, kernel and experiment: pairs, captures, manifests, failures."""

import hashlib
import json
import struct
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from doubles import Rehearsal, account, kinds, manifests, points

from support.https_gateway import Gateway
from tandem.app.config import Config
from tandem.app.daemon.status_socket import ask
from tandem.app.runs.process import ExperimentProcess
from tandem.cli.view.text import summary
from tandem_server.ingest.documents import read_manifest


def after_movement(collector: Rehearsal, gateway: Gateway) -> list[Any]:
    """The manifests of its three runs, when they and it have ended."""
    collector.pollers["a"].poll(-70.0)
    gateway.until(lambda: len(gateway.manifests) == 3)
    collector.until(lambda: not collector.supervisor.scheduler.running)
    assert collector.stop()
    return manifests(collector.folder)


def test_movement_starts_one_sequential_pair_with_manifests_and_captures(tmp_path, gateway):
    collector = Rehearsal(tmp_path, gateway, "captured")
    collector.rewired(replace(collector.config, city="Davis")).start()
    collector.pollers["a"].poll(-95.0)
    collector.pollers["a"].poll(-70.0)  # moving
    collector.pollers["b"].poll(-95.0)  # still; then moving again, but within minimum_gap_s
    found = after_movement(collector, gateway)
    assert kinds(gateway)["mobility_start"] == 2
    assert kinds(gateway)["capture_missing"] == 0
    assert sorted((m["kind"], m["paths"][0]) for m in found if m["kind"] == "tcp") == [("tcp", "a"), ("tcp", "b")]
    assert {m["pair"] for m in found} == {found[0]["pair"]}
    for m in found:
        assert gateway.manifests[m["id"]] == m
        assert (m["trigger"], m["failure"], m["result"] is None) == ("mobility_start", None, False)
        assert m["experiment"] == {"name": "download", "version": 1}
        assert m["environment"]["experiment"] == {"scheduler": "default"}
        assert m["environment"]["city"] == "Davis"
        assert m["modems"]["a"]["at_start"]["model"] == "EC25"
        assert {Path(f["name"]).name for f in m["files"]} == {f"{m['id']}-{p}.pcap" for p in m["paths"]}
        assert all((tmp_path / f["name"]).stat().st_size == f["bytes"] for f in m["files"])
        assert [m["records"][name] for name in ("connection", "subflow", "broken")] == [3, 6, 3]
        assert "token" not in json.dumps(m)
        assert "server_captures" not in m, "the server was not asked for any"
    runs = [p for p in points(gateway) if p.measurement == "run"]
    assert {p.tags["run"] for p in runs} == {m["id"] for m in found}
    assert all(p.fields["ok"] is True and p.fields["bytes"] == 1000 for p in runs)
    assert (len(account(tmp_path)["captures"]), collector.captures.running) == (4, [])


def test_a_simultaneous_pair_shares_its_captures(tmp_path, gateway):
    collector = Rehearsal(tmp_path, gateway, on_mobility_start="simultaneous")
    collector.captures.full = True
    collector.start()
    found = after_movement(collector, gateway)
    pair = found[0]["pair"]
    (mptcp,) = [m for m in found if m["kind"] == "mptcp"]
    assert {f["name"] for f in mptcp["files"]} == {f"captures/{pair}-a.pcap", f"captures/{pair}-b.pcap"}
    assert all(m["environment"]["captures"]["shared_by_pair"] for m in found)
    told = account(tmp_path)["captures"]
    assert len(told) == 2  # each file once
    assert all(c["run"] is None and c["pair"] == pair and c["cut"] for c in told)
    assert kinds(gateway)["capture_budget"] == 2


def test_runs_go_on_without_a_capture_that_cannot_begin(tmp_path, gateway):
    collector = Rehearsal(tmp_path, gateway)
    collector.captures.broken = {"wwan1"}
    collector.start()
    (mptcp,) = [m for m in after_movement(collector, gateway) if m["kind"] == "mptcp"]
    assert [Path(f["name"]).name for f in mptcp["files"]] == [f"{mptcp['id']}-a.pcap"]
    assert mptcp["environment"]["captures"]["problems"] == {"b": "tcpdump: no such device"}


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("captured", "refused: HTTP 429: full"),
        ("crash", "no session was opened, or the run was cut off before it told of one"),
    ],
)
def test_a_capture_that_the_server_did_not_make_is_in_manifest_and_records(tmp_path, gateway, how, why):
    collector = Rehearsal(tmp_path, gateway, how, on_mobility_start="sequential", capture="both").start()
    for told in after_movement(collector, gateway):
        entries = told["server_captures"]
        assert len(entries) == (2 if how == "captured" else 1)
        assert {(entry["name"], entry["why"]) for entry in entries} == {(None, why)}
        assert told["environment"]["captures"]["ends"] == "both"
        assert "server_captures" not in told["environment"]["further"]
        assert read_manifest(json.dumps(told), told["id"], "probe-1") == told
        assert (told["failure"] is None) == (how == "captured")
    events = [p for p in points(gateway) if p.measurement == "event" and p.tags["kind"] == "capture_missing"]
    assert len(events) == (3 if how == "captured" else 0)  # a run that failed says so itself; one for its two sessions
    assert all(str(p.fields["detail"]).endswith(f": the server's capture: {why} (2 sessions)") for p in events)


@pytest.mark.parametrize(
    ("how", "reason"),
    [("failure", "connect: timeout"), ("crash", "status 9: no such thing as luck"), ("nonsense", "break the schema")],
)
def test_failure_is_a_result(tmp_path, gateway, how, reason):
    collector = Rehearsal(tmp_path, gateway, how).start()
    wanted = {"op": "start", "experiment": "download", "parameters": {"kind": "tcp", "path": "b"}}
    answers = list(ask(tmp_path / "status.sock", wanted))
    assert (answers[0]["type"], answers[-1]["type"], answers[-1]["ok"]) == ("accepted", "done", False)
    collector.stop()
    (manifest,) = manifests(tmp_path)
    assert reason in manifest["failure"]["reason"]
    assert (manifest["pairing"], manifest["trigger"]) == ("single", "request")
    (run,) = [p for p in points(gateway) if p.measurement == "run"]
    assert run.fields["ok"] is False
    assert reason in str(run.fields["failure"])


@pytest.mark.parametrize("how", ["long", "deaf"])
def test_stopping_in_the_middle_of_a_run_keeps_what_was_measured(tmp_path, gateway, how, monkeypatch):
    monkeypatch.setattr("tandem.app.runs.process.STOP_S", 0.1 if how == "deaf" else 60.0)
    collector = Rehearsal(tmp_path, gateway, how).start()
    collector.pollers["a"].poll(-70.0)
    collector.until_sampled()
    assert collector.stop()
    (manifest,) = manifests(tmp_path)
    assert manifest["failure"] == {"reason": "stopped", "retry": False}
    assert (manifest["result"] is not None) == (how == "long")
    assert manifest["records"]["subflow"] == 6
    assert list(gateway.manifests) == [manifest["id"]]
    assert account(tmp_path)["records"]["pending"] == 0


@pytest.mark.parametrize(
    ("limit", "words"),
    [(None, "path b has 0 MB of its SIM's limits left, a pair takes 20 MB"), (0, "day_bytes of path b is 0")],
    ids=["default", "none"],
)
def test_what_a_sim_may_carry_a_day_ends_what_movement_starts_and_the_radio_goes_on(tmp_path, gateway, limit, words):
    day = datetime.now(UTC).date()
    days = {d.isoformat(): {"received": 320_000_000, "sent": 10_000_000} for d in (day, day + timedelta(days=1))}
    spent = {"format": "tandem-account/1", "paths": {"b": days if limit is None else {}}, "counters": {}}
    (tmp_path / "account.json").write_text(json.dumps(spent))
    collector = Rehearsal(tmp_path, gateway)
    paths = tuple(replace(p, day_bytes=limit) if p.name == "b" else p for p in collector.config.paths)
    collector.rewired(replace(collector.config, paths=paths, runs=replace(collector.config.runs, seconds=8.0))).start()
    collector.pollers["a"].poll(-70.0)
    collector.until(lambda: any(e["kind"] == "mobility_start" for e in collector.supervisor.model.status()["events"]))
    status = collector.supervisor.service.status()
    assert words in status["radio_only"]
    assert status["day_limit_bytes"] == {"a": 10**12, "b": 322_580_645 if limit is None else 0}
    assert "only the radio is measured: " in summary(status)
    assert status["run"] is None
    collector.supervisor.scheduler.request("download", {})  # a person's word
    collector.until(lambda: bool(collector.supervisor.model.status()["finished"]))
    assert collector.stop()
    assert {m["trigger"] for m in manifests(tmp_path)} == {"request"}


def test_a_run_that_could_not_start_is_a_record_and_a_manifest_with_its_reason(tmp_path, gateway):
    missing = {"experiment": lambda _name: [str(tmp_path / "no such program")]}
    collector = Rehearsal(tmp_path, gateway, hardware=missing).start()
    reasons = [str(m["failure"]["reason"]) for m in after_movement(collector, gateway)]
    assert all("it could not be started: [Errno 2]" in reason for reason in reasons)
    told = [p for p in points(gateway) if p.measurement == "run" and p.fields["ok"] is False]
    assert sorted(str(p.fields["failure"]) for p in told) == sorted(reasons)
    assert len([p for p in points(gateway) if p.measurement == "run_begun"]) == 3


def test_never_two_pairs_at_once(tmp_path, gateway):
    collector = Rehearsal(tmp_path, gateway, "long").start()
    socket = tmp_path / "status.sock"
    first = ask(socket, {"op": "start", "experiment": "download", "parameters": {}})
    assert next(first)["type"] == "accepted"
    (refused,) = ask(socket, {"op": "start", "experiment": "download", "parameters": {}})
    assert refused == {"type": "refused", "reason": "another pair is running; try again when it has ended"}
    (refused,) = ask(socket, {"op": "start", "experiment": "download", "parameters": {"kind": "tcp"}})
    assert "needs its path" in refused["reason"]
    collector.stop()
    assert list(first)[-1]["ok"] is False


def test_a_run_that_cannot_be_started_ends_the_others_of_its_pair(tmp_path, gateway, monkeypatch):
    begun: list[str] = []

    class Scarce(ExperimentProcess):
        def __init__(self, *args: Any) -> None:
            if begun:
                raise OSError(11, "Resource temporarily unavailable")
            super().__init__(*args)
            begun.append(args[3])

    monkeypatch.setattr("tandem.app.runs.executor.ExperimentProcess", Scarce)
    collector = Rehearsal(tmp_path, gateway, "long", on_mobility_start="simultaneous").start()
    pair = collector.supervisor.service.request("download", {"pairing": "simultaneous"})
    collector.until(lambda: collector.supervisor.service.outcome(pair) is not None)
    done = collector.supervisor.service.outcome(pair)
    assert (done["runs"][0], done["ok"]) == (begun[0], False)
    reasons = {m["id"]: m["failure"]["reason"] for m in manifests(tmp_path)}
    assert [reasons[run] for run in done["runs"]] == [
        "stopped",
        "it could not be started: [Errno 11] Resource temporarily unavailable",
        "another run of its pair could not be started",
    ]
    assert collector.captures.running == []
    collector.stop()


HEAD = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 128, 1)
PACKET = struct.pack("<4I", 1_795_262_400, 2, 100, 1500) + bytes(100)


def test_the_next_start_salvages_counts_and_tells(tmp_path, gateway):
    folder = tmp_path / "captures"
    folder.mkdir()
    (folder / "pair-0123456789ab-b.pcap.tmp").write_bytes(HEAD + PACKET * 3 + bytes(1000))
    (folder / "run-0123456789ab-a.pcap.tmp").write_bytes(HEAD)
    counted: list[int] = []
    collector = Rehearsal(tmp_path, gateway)

    def captures(_config: Config, used_bytes: int) -> object:
        counted.append(used_bytes)
        return collector.captures

    collector = Rehearsal(tmp_path, gateway, hardware={"captures": captures}).start()
    assert collector.stop()
    whole = HEAD + PACKET * 3
    assert [file.name for file in folder.iterdir()] == ["pair-0123456789ab-b.pcap"]
    assert (folder / "pair-0123456789ab-b.pcap").read_bytes() == whole
    assert counted == [len(whole)]
    of_whom = {"path": "b", "run": None, "pair": "pair-0123456789ab"}
    counts = {"bytes": len(whole), "packets": 3, "cut": True, "sha256": hashlib.sha256(whole).hexdigest()}
    assert account(tmp_path)["captures"] == [{"file": "captures/pair-0123456789ab-b.pcap", **of_whom, **counts}]
    told = [p.tags["path"] for p in points(gateway) if p.tags.get("kind") == "capture_salvaged"]
    assert sorted(told) == ["a", "b"]
