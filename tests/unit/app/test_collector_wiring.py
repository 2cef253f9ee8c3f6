"""The collector as a whole, with doubles for modems, kernel and experiment."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from doubles import Rehearsal
from https_gateway import Gateway

from tandem.app.experiment_process import ExperimentProcess
from tandem.app.parts import EnvironmentLackError, PathChange
from tandem.app.status_socket import ask
from tandem.app.supervisor import Supervisor
from tandem.cli.view.plain import summary
from tandem.schema.line_protocol import Point, parse
from tandem.schema.manifest import Manifest
from tandem.schema.record import Record
from tandem.spool import Spool, SpoolFullError


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    made = Gateway(tmp_path / "gateway")
    yield made
    made.close()


def points(gateway: Gateway) -> list[Point]:
    return [parse(gateway.lines[seq]) for seq in sorted(gateway.lines)]


def kinds(gateway: Gateway) -> Counter[str]:
    return Counter(p.tags["kind"] for p in points(gateway) if p.measurement == "event")


def account(folder: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((folder / "collector.json").read_text())
    return loaded


def manifests(folder: Path) -> list[Manifest]:
    return [json.loads(f.read_text()) for f in sorted((folder / "runs").glob("*.json"))]


def test_polls_become_records_in_the_database_and_the_account_adds_up(tmp_path: Path, gateway: Gateway) -> None:
    collector = Rehearsal(tmp_path, gateway)
    collector.start()
    for n in range(5):
        collector.pollers["a"].poll(-95.0 - n)
        collector.pollers["b"].poll(None, failure="no_answer", late_ns=150_000_000 if n == 2 else 0)
    gateway.until(lambda: sum(p.measurement == "radio" for p in points(gateway)) == 10)
    assert collector.stop()
    found = points(gateway)
    counts = Counter(p.measurement for p in found)
    assert counts["radio"] == 10
    assert counts["health"] >= 1
    assert counts["usage"] >= 2
    assert kinds(gateway) == {"collector_start": 1, "collector_stop": 1, "path_up": 1, "path_down": 1}
    assert sorted(gateway.lines) == list(range(1, len(found) + 1))
    told = account(tmp_path)
    assert told["records"]["made"] == told["records"]["sent"] == len(found)
    assert told["records"]["pending"] == 0
    assert told["records"]["by_measurement"] == counts
    assert told["polls"]["a"]["made"] == 5
    assert told["polls"]["b"] == {
        "made": 5, "late": 1, "failed": 5, "skipped": 0, "late_ms_p50": 0.0, "late_ms_p99": 150.0, "late_ms_max": 150.0,
    }  # fmt: skip
    assert told["usage"]["a"]["control_bytes"] > 0
    assert collector.paths.removed
    assert all(p.stopped for p in collector.pollers.values())
    assert not (tmp_path / "status.sock").exists()


def test_movement_starts_one_sequential_pair_with_manifests_and_captures(tmp_path: Path, gateway: Gateway) -> None:
    collector = Rehearsal(tmp_path, gateway)
    collector.start()
    collector.pollers["a"].poll(-95.0)
    collector.pollers["a"].poll(-70.0)  # moving
    collector.pollers["b"].poll(-95.0)  # still
    collector.pollers["b"].poll(-70.0)  # moving again, but within minimum_gap_s
    gateway.until(lambda: len(gateway.manifests) == 3)
    collector.until(lambda: not collector.supervisor.pairs.running)
    assert collector.stop()
    assert kinds(gateway)["mobility_start"] == 2
    found = manifests(tmp_path)
    assert sorted((m["kind"], m["paths"][0]) for m in found if m["kind"] == "tcp") == [("tcp", "a"), ("tcp", "b")]
    assert {m["pair"] for m in found} == {found[0]["pair"]}
    for m in found:
        assert gateway.manifests[m["id"]] == m
        assert m["trigger"] == "mobility_start"
        assert m["failure"] is None
        assert m["result"] is not None
        assert m["experiment"] == {"name": "download", "version": 1}
        assert m["environment"]["experiment"] == {"scheduler": "default"}
        assert m["modems"]["a"]["at_start"]["model"] == "EC25"
        assert {Path(f["name"]).name for f in m["files"]} == {f"{m['id']}-{p}.pcap" for p in m["paths"]}
        assert all((tmp_path / f["name"]).stat().st_size == f["bytes"] for f in m["files"])
        assert m["records"]["connection"] == 3
        assert m["records"]["subflow"] == 6
        assert m["records"]["broken"] == 3
        assert "token" not in json.dumps(m)
    runs = [p for p in points(gateway) if p.measurement == "run"]
    assert {p.tags["run"] for p in runs} == {m["id"] for m in found}
    assert all(p.fields["ok"] is True and p.fields["bytes"] == 1000 for p in runs)
    assert len(account(tmp_path)["captures"]) == 4
    assert collector.captures.running == []


def test_a_simultaneous_pair_shares_its_captures(tmp_path: Path, gateway: Gateway) -> None:
    collector = Rehearsal(tmp_path, gateway, on_mobility_start="simultaneous")
    collector.captures.full = True
    collector.start()
    collector.pollers["a"].poll(-70.0)
    gateway.until(lambda: len(gateway.manifests) == 3)
    collector.until(lambda: not collector.supervisor.pairs.running)
    assert collector.stop()
    found = manifests(tmp_path)
    pair = found[0]["pair"]
    (mptcp,) = [m for m in found if m["kind"] == "mptcp"]
    assert {f["name"] for f in mptcp["files"]} == {f"captures/{pair}-a.pcap", f"captures/{pair}-b.pcap"}
    assert all(m["environment"]["captures"]["shared_by_pair"] for m in found)
    told = account(tmp_path)["captures"]
    assert len(told) == 2  # each file once
    assert all(c["run"] is None and c["pair"] == pair and c["cut"] for c in told)
    assert kinds(gateway)["capture_budget"] == 2


def test_runs_go_on_without_a_capture_that_cannot_begin(tmp_path: Path, gateway: Gateway) -> None:
    collector = Rehearsal(tmp_path, gateway)
    collector.captures.broken = {"wwan1"}
    collector.start()
    collector.pollers["a"].poll(-70.0)
    gateway.until(lambda: len(gateway.manifests) == 3)
    collector.stop()
    (mptcp,) = [m for m in manifests(tmp_path) if m["kind"] == "mptcp"]
    assert [Path(f["name"]).name for f in mptcp["files"]] == [f"{mptcp['id']}-a.pcap"]
    assert mptcp["environment"]["captures"]["problems"] == {"b": "tcpdump: no such device"}


@pytest.mark.parametrize(
    ("how", "reason"),
    [("failure", "connect: timeout"), ("crash", "status 9: no such thing as luck"), ("nonsense", "break the schema")],
)
def test_failure_is_a_result(tmp_path: Path, gateway: Gateway, how: str, reason: str) -> None:
    collector = Rehearsal(tmp_path, gateway, how)
    collector.start()
    answers = list(
        ask(
            tmp_path / "status.sock",
            {"op": "start", "experiment": "download", "parameters": {"kind": "tcp", "path": "b"}},
        )
    )
    assert answers[0]["type"] == "accepted"
    assert answers[-1]["type"] == "done"
    assert answers[-1]["ok"] is False
    collector.stop()
    (manifest,) = manifests(tmp_path)
    assert manifest["failure"] is not None
    assert reason in manifest["failure"]["reason"]
    assert manifest["pairing"] == "single"
    assert manifest["trigger"] == "request"
    (run,) = [p for p in points(gateway) if p.measurement == "run"]
    assert run.fields["ok"] is False
    assert reason in str(run.fields["failure"])


@pytest.mark.parametrize("how", ["long", "deaf"])
def test_stopping_in_the_middle_of_a_run_keeps_what_was_measured(
    tmp_path: Path, gateway: Gateway, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tandem.app.experiment_process.STOP_S", 0.5)
    collector = Rehearsal(tmp_path, gateway, how)
    collector.start()
    collector.pollers["a"].poll(-70.0)
    collector.until(lambda: any(r["subflows"] for r in (collector.supervisor.status()["run"] or {}).get("runs", [])))
    began = time.monotonic()
    assert collector.stop()
    assert time.monotonic() - began < 10
    (manifest,) = manifests(tmp_path)
    assert manifest["failure"] == {"reason": "stopped", "retry": False}
    assert (manifest["result"] is not None) == (how == "long")
    assert manifest["records"]["subflow"] == 6
    assert list(gateway.manifests) == [manifest["id"]]
    assert account(tmp_path)["records"]["pending"] == 0


def test_never_two_pairs_at_once(tmp_path: Path, gateway: Gateway) -> None:
    collector = Rehearsal(tmp_path, gateway, "long")
    collector.start()
    socket = tmp_path / "status.sock"
    first = ask(socket, {"op": "start", "experiment": "download", "parameters": {}})
    assert next(first)["type"] == "accepted"
    (refused,) = ask(socket, {"op": "start", "experiment": "download", "parameters": {}})
    assert refused == {"type": "refused", "reason": "another pair is running; try again when it has ended"}
    (refused,) = ask(socket, {"op": "start", "experiment": "download", "parameters": {"kind": "tcp"}})
    assert "needs its path" in refused["reason"]
    collector.stop()
    assert list(first)[-1]["ok"] is False


def test_the_status_tells_what_people_want_to_know(tmp_path: Path, gateway: Gateway) -> None:
    collector = Rehearsal(tmp_path, gateway, "long")
    collector.start()
    collector.pollers["a"].poll(-70.0)
    collector.pollers["b"].poll(None, failure="port_lost")
    collector.until(lambda: any(r["subflows"] for r in (collector.supervisor.status()["run"] or {}).get("runs", [])))
    (status,) = ask(tmp_path / "status.sock", {"op": "status"})
    assert status["mobile"] is True
    assert status["mobile_since_s"] >= 0
    assert status["modems"]["a"]["rsrp_dbm"] == -70.0
    assert status["modems"]["a"]["history_rsrp_dbm"] == [-70.0]
    assert status["modems"]["b"]["state"] == "port_lost"
    assert status["modems"]["b"]["history_rsrp_dbm"] == [None]
    assert status["run"]["of"] == 3
    (run,) = status["run"]["runs"]
    assert (
        run["subflows"][0]["history_bit_per_s"] == [8000, 8000, 8000, 0][: len(run["subflows"][0]["history_bit_per_s"])]
    )
    assert "mobility_start" in [e["kind"] for e in status["events"]]
    collector.stop()


def test_a_full_disk_stops_no_poll_and_loses_nothing_while_memory_lasts(
    tmp_path: Path, gateway: Gateway, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    collector = Rehearsal(tmp_path, gateway)
    collector.start()
    append, full = Spool.append, [True]

    def refusing(self: Spool, records: list[Record], dropped: int = 0) -> None:
        if full[0]:
            raise SpoolFullError("/x: disk is full; mend: free disk space")
        append(self, records, dropped)

    monkeypatch.setattr(Spool, "append", refusing)
    for n in range(50):
        collector.pollers["a"].poll(-95.0 - n % 5)
    collector.until(lambda: collector.supervisor.status()["trouble"] is not None)
    assert "disk is full" in collector.supervisor.status()["trouble"]
    collector.until(lambda: collector.supervisor.status()["polls"]["made"] == 50)
    time.sleep(1.2)  # one more commit that fails must not be one more line
    full[0] = False
    gateway.until(lambda: sum(p.measurement == "radio" for p in points(gateway)) == 50)
    assert collector.stop()
    assert len([r for r in caplog.records if "free disk space" in r.message]) == 1
    assert account(tmp_path)["records"]["dropped"] == 0


def test_a_disk_that_cannot_be_read_ends_no_measuring(
    tmp_path: Path, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(_self: Spool) -> int:
        raise SpoolFullError("/x: disk I/O error; mend: free disk space")

    monkeypatch.setattr(Spool, "used_bytes", refusing)
    collector = Rehearsal(tmp_path, gateway)
    collector.start()
    collector.pollers["a"].poll(-95.0)
    gateway.until(lambda: {"radio", "health"} <= {p.measurement for p in points(gateway)})
    assert "spool_bytes" not in next(p for p in points(gateway) if p.measurement == "health").fields
    assert collector.stop()


def test_a_run_that_cannot_be_started_ends_the_others_of_its_pair(
    tmp_path: Path, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []

    class Scarce(ExperimentProcess):
        def __init__(self, *args: Any) -> None:
            if begun:
                raise OSError(11, "Resource temporarily unavailable")
            super().__init__(*args)
            begun.append(args[-1])

    monkeypatch.setattr("tandem.app.pair_run.ExperimentProcess", Scarce)
    collector = Rehearsal(tmp_path, gateway, "slow", on_mobility_start="simultaneous")
    collector.start()
    pair = collector.supervisor.request("download", {"pairing": "simultaneous"})
    collector.until(lambda: collector.supervisor.done(pair) is not None)
    done = collector.supervisor.done(pair)
    assert done is not None
    assert (done["runs"], done["ok"]) == (begun, False)
    assert [m["id"] for m in manifests(tmp_path)] == begun
    assert collector.captures.running == []
    collector.stop()


def test_what_was_not_sent_is_sent_by_the_next_life(tmp_path: Path, gateway: Gateway) -> None:
    gateway.answer = lambda _m, _p, _l: (503, {"error": "down"}, {"Retry-After": "0"})
    collector = Rehearsal(tmp_path, gateway)
    object.__setattr__(collector.config, "drain_s", 0.2)
    collector.start()
    collector.pollers["a"].poll(-95.0)
    collector.until(lambda: collector.supervisor.status()["spool"]["made"] >= 4)
    assert not collector.stop()
    assert account(tmp_path)["records"]["sent"] == 0
    made = account(tmp_path)["records"]["made"]
    gateway.answer = lambda _m, _p, _l: None
    again = Rehearsal(tmp_path, gateway)
    again.start()
    gateway.until(lambda: len(gateway.lines) > made)
    assert again.stop()
    told = account(tmp_path)["records"]
    assert told["made"] == told["sent"] == len(gateway.lines) > made
    assert sorted(gateway.lines) == list(range(1, len(gateway.lines) + 1))


def test_what_the_machine_lacks_stops_the_start_and_leaves_nothing_behind(tmp_path: Path, gateway: Gateway) -> None:
    collector = Rehearsal(tmp_path, gateway)
    collector.paths.refusal = "ip rule add: Operation not permitted; mend: run as root"
    with pytest.raises(EnvironmentLackError, match="mend: run as root"):
        collector.supervisor.start()
    assert not (tmp_path / "status.sock").exists()
    Spool(tmp_path / "spool", "boot").close()  # its lock is free again


def test_two_collectors_in_one_folder_are_one_too_many(tmp_path: Path, gateway: Gateway) -> None:
    collector = Rehearsal(tmp_path, gateway)
    collector.start()
    second = Supervisor(collector.config, collector._parts())
    with pytest.raises(EnvironmentLackError, match="another collector"):
        second.start()
    (status,) = ask(tmp_path / "status.sock", {"op": "status"})  # the first still answers
    assert status["probe"] == "probe-1"
    collector.stop()


def test_states_of_paths_are_shown_and_their_changes_become_events(tmp_path: Path, gateway: Gateway) -> None:
    collector = Rehearsal(tmp_path, gateway)
    collector.paths.changes = [
        PathChange("path_state", "b", "eth2 has 192.168.8.100, as path a", state="colliding"),
        PathChange("subflow_restored", "b", "after 21 ms", took_ms=21.5),
    ]
    collector.start()
    (status,) = ask(tmp_path / "status.sock", {"op": "status"})
    assert status["paths"]["a"]["state"] == "up"
    collector.paths.wake()
    gateway.until(lambda: kinds(gateway)["subflow_restored"] == 1)
    assert collector.stop()
    told = {p.tags["kind"]: p for p in points(gateway) if p.measurement == "event"}
    assert told["path_state"].fields["state"] == "colliding"
    assert told["path_state"].tags["path"] == "b"
    assert told["subflow_restored"].fields["took_ms"] == 21.5


def test_what_a_connection_lost_is_in_its_result(tmp_path: Path, gateway: Gateway) -> None:
    collector = Rehearsal(tmp_path, gateway, how="lossy")
    collector.start()
    collector.pollers["a"].poll(-70.0)
    gateway.until(lambda: len(gateway.manifests) == 3)
    assert collector.stop()
    losses = {m["kind"]: (m["result"] or {}).get("subflow_losses") for m in manifests(tmp_path)}
    assert losses == {"mptcp": [{"path": "b", "at_monotonic_ns": 5, "back_after_ms": 21.5}], "tcp": None}


def test_the_class_of_the_movement_is_in_the_status_and_in_health_while_it_is_known(
    tmp_path: Path, gateway: Gateway
) -> None:
    collector = Rehearsal(tmp_path, gateway, on_mobility_start="off")
    collector.start()
    (before,) = ask(tmp_path / "status.sock", {"op": "status"})
    collector.detectors.speed_class = "high"
    collector.pollers["a"].poll(-70.0)  # moving
    collector.until(lambda: collector.supervisor.live.status()["speed_class"] == "high")
    (status,) = ask(tmp_path / "status.sock", {"op": "status"})
    assert (before["speed_class"], status["speed_class"], status["mobile"]) == (None, "high", True)
    assert "at high speed" in summary(status)
    assert collector.stop()
    assert [p.fields.get("speed_class") for p in points(gateway) if p.measurement == "health"][-1] == "high"
