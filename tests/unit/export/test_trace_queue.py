"""What is to go up, made anew from the disk at every start."""

import hashlib
import json
from pathlib import Path

from tandem.export import TraceQueue
from tandem.schema.trace import Receipt


def manifest(folder: Path, run: str, ended_utc_ns: int, *names: str) -> None:
    rows = []
    for name in names:
        file = folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(name.encode())
        rows.append({"name": name, "bytes": len(name), "sha256": hashlib.sha256(name.encode()).hexdigest()})
    (folder / "runs").mkdir(exist_ok=True)
    (folder / "runs" / f"{run}.json").write_text(json.dumps({"id": run, "ended_utc_ns": ended_utc_ns, "files": rows}))


def receive(queue: TraceQueue, at_ns: int = 1) -> str:
    wanted = queue.next()
    queue.received(wanted, Receipt("probe-1", wanted.name, wanted.run, wanted.bytes, wanted.sha256, at_ns))
    return wanted.name


def test_results_go_before_captures_and_what_is_oldest_first(tmp_path: Path) -> None:
    manifest(tmp_path, "run-new", 20, "captures/new.pcap", "results/new.jsonl")
    manifest(tmp_path, "run-old", 10, "captures/old.pcap")
    queue = TraceQueue(tmp_path)
    queue.scan()
    queue.ask_for(["captures/new.pcap"])
    assert [receive(queue) for _ in range(3)] == ["captures/new.pcap", "results/new.jsonl", "captures/old.pcap"]
    assert queue.next() is None


def test_a_capture_of_two_runs_is_of_none(tmp_path: Path) -> None:
    manifest(tmp_path, "run-1", 1, "captures/pair-a.pcap")
    manifest(tmp_path, "run-2", 2, "captures/pair-a.pcap")
    queue = TraceQueue(tmp_path)
    queue.scan()
    wanted = queue.next()
    assert wanted.run is None
    assert queue.counts()["waiting"] == 1


def test_after_a_power_cut_it_is_as_it_was(tmp_path: Path) -> None:
    manifest(tmp_path, "run-1", 1, "captures/a.pcap", "captures/b.pcap")
    manifest(tmp_path, "run-2", 2, "captures/c.pcap")
    queue = TraceQueue(tmp_path)
    queue.scan()
    assert receive(queue) == "captures/a.pcap"
    again = TraceQueue(tmp_path)
    again.scan()
    assert [receive(again), receive(again)] == ["captures/b.pcap", "captures/c.pcap"]
    assert (tmp_path / "traces/settled").read_text().split() == ["run-1", "run-2"]
    (tmp_path / "traces/settled").unlink()
    third = TraceQueue(tmp_path)
    third.scan()
    assert third.next() is None
    assert [kept.name for kept in third.kept()] == ["captures/a.pcap", "captures/b.pcap", "captures/c.pcap"]


def test_settled_manifests_are_not_read_again(tmp_path: Path) -> None:
    manifest(tmp_path, "run-1", 1, "captures/a.pcap")
    queue = TraceQueue(tmp_path)
    queue.scan()
    receive(queue)
    (tmp_path / "runs/run-1.json").write_text("no manifest any more")
    again = TraceQueue(tmp_path)
    again.scan()
    assert (again.next(), len(again.kept())) == (None, 1)


def test_another_content_under_a_received_name_waits(tmp_path: Path) -> None:
    manifest(tmp_path, "run-1", 1, "captures/a.pcap")
    queue = TraceQueue(tmp_path)
    queue.scan()
    wanted = queue.next()
    queue.receipts.keep(Receipt("probe-1", wanted.name, "run-1", wanted.bytes, "b" * 64, 1))
    again = TraceQueue(tmp_path)
    again.scan()
    assert again.next() == wanted


def test_only_what_has_a_receipt_is_deleted(tmp_path: Path) -> None:
    manifest(tmp_path, "run-1", 1, "captures/a.pcap", "captures/b.pcap")
    queue = TraceQueue(tmp_path)
    queue.scan()
    receive(queue)
    (kept,) = queue.kept()
    assert queue.delete(kept)
    assert not (tmp_path / "captures/a.pcap").exists()
    assert (tmp_path / "captures/b.pcap").exists()
    assert queue.receipts.of("captures/a.pcap") is not None
    assert queue.kept() == []
    rows = {row["name"]: (row["state"], row["kept"]) for row in queue.rows()}
    assert rows == {"captures/a.pcap": ("received", False), "captures/b.pcap": ("waiting", True)}


def test_looking_writes_nothing(tmp_path: Path) -> None:
    manifest(tmp_path, "run-1", 1)
    before = sorted(tmp_path.rglob("*"))
    queue = TraceQueue(tmp_path, remember=False)
    queue.scan()
    assert sorted(tmp_path.rglob("*")) == before


def test_a_capture_whose_run_was_killed_goes_up_as_it_is(tmp_path: Path) -> None:
    manifest(tmp_path, "run-1", 1, "captures/run-1-a.pcap")
    for name in ("run-0123456789ab-a.pcap", "pair-0123456789ab-b.pcap", "run-0123456789ab-b.pcap.tmp"):
        (tmp_path / "captures" / name).write_bytes(b"left behind")
    queue = TraceQueue(tmp_path)
    queue.scan()
    rows = {row["name"]: (row["run"], row["sha256"]) for row in queue.rows() if row["name"] != "captures/run-1-a.pcap"}
    assert rows == {
        "captures/run-0123456789ab-a.pcap": ("run-0123456789ab", None),
        "captures/pair-0123456789ab-b.pcap": (None, None),
    }
    wanted = next(one for one in [queue.next()] if one is not None)
    assert wanted.name == "captures/run-1-a.pcap", "what is oldest goes first"
