"""The spool as a queue: order, counts, quarantine, the cap; which spool it is; and records of boots without a time."""

import json
import random
from typing import Any

import pytest

from tandem.app.daemon.main_loop import spool_records
from tandem.schema.record import Record
from tandem.spool import Spool, SpoolError
from tandem.spool.database import Database

BOOT = "b1c0ffee-0000-4000-8000-000000000001"


def radio(n: int) -> Record:
    return Record.make("radio", {"path": "a", "operator": "A"}, {"state": "idle", "rsrp_dbm": -90.5, "eci": n}, n)


def event(n: int) -> Record:
    return Record.make("event", {"kind": "handover", "path": "a"}, {"from_eci": n, "to_eci": n + 1}, n)


def numbers(spool: Spool, limit: int = 10_000) -> list[int]:
    batch = spool.take(limit)
    spool.release(batch)
    return [item.seq for item in batch.items]


def test_records_come_back_as_they_were_freshest_first_and_the_oldest_in_every_batch(tmp_path):
    spool = Spool(tmp_path, BOOT)
    made = [event(n) if n == 50 else radio(n) for n in range(1, 101)]
    for record in made:
        spool.append([record])
    assert numbers(spool, 10) == [100, 99, 98, 97, 96, 1, 2, 3, 4, 5]
    batch = spool.take(100)
    assert sorted((i.record for i in batch.items), key=lambda r: r.monotonic_ns) == made
    assert {i.boot for i in batch.items} == {BOOT}
    spool.close()


def test_numbers_go_on_after_a_restart_without_gaps(tmp_path):
    for life in range(3):
        spool = Spool(tmp_path, BOOT)
        spool.append([radio(life)])
        spool.append([radio(life)])
        spool.close()
    spool = Spool(tmp_path, BOOT)
    assert sorted(numbers(spool)) == [1, 2, 3, 4, 5, 6]
    assert spool.oldest() == (BOOT, 0)
    while (batch := spool.take(3)) is not None:
        spool.acknowledge(batch)
    spool.flush()
    counts = spool.counts()
    assert (counts.made, counts.sent, counts.pending) == (6, 6, 0)
    assert counts.by_measurement == {"radio": 6}
    spool.close()
    again = Spool(tmp_path, BOOT)
    again.append([event(7)])
    assert numbers(again) == [7]
    assert again.counts().by_measurement == {"radio": 6, "event": 1}
    again.close()


def test_rejected_records_go_to_quarantine_with_the_reason(tmp_path):
    spool = Spool(tmp_path, BOOT)
    (tmp_path / "quarantine").mkdir()
    (tmp_path / "quarantine" / "rejected.jsonl").write_text('{"seq": 1, "rea')  # cut off, as by a power cut
    spool.append([radio(1), radio(2), radio(3)])
    batch = spool.take(10)
    spool.reject(batch, 2, "radio.eci: too odd")
    spool.acknowledge(batch)
    counts = spool.counts()
    assert (counts.made, counts.sent, counts.rejected, counts.pending) == (3, 2, 1, 0)
    (_cut, told) = (tmp_path / "quarantine" / "rejected.jsonl").read_text().splitlines()
    assert json.loads(told).items() >= {"seq": 2, "reason": "radio.eci: too odd"}.items()
    assert json.loads(told)["fields"]["eci"] == 2
    assert [n.kind for n in spool.notices()] == ["record_rejected"]
    spool.close()
    assert Spool(tmp_path, BOOT).counts() == counts


def test_over_the_cap_the_oldest_are_dropped_and_counted_events_and_summaries_of_runs_last(tmp_path):
    spool = Spool(tmp_path, BOOT, limit_bytes=96 * 1024)
    phase = Record.make("phase", {"run": "r", "experiment": "dash"}, {"name": "play", "number": 1, "of": 1}, 1)
    usage = Record.make("run_usage", {"run": "r", "path": "a"}, {"received_bytes": 1}, 1)
    spool.append([phase, usage, Record.make("run", {"run": "r", "kind": "tcp"}, {"ok": True}, 1)])
    for second in range(300):
        spool.append([event(second), *(radio(second * 1000 + n) for n in range(60))])
    counts = spool.counts()
    assert counts.dropped > 0
    assert counts.made == 3 + 300 * 61 == counts.dropped + counts.pending
    assert spool.used_bytes() <= 96 * 1024
    kept = set()
    while (batch := spool.take(1000)) is not None:
        kept |= {(i.record.measurement, i.seq) for i in batch.items}
        spool.acknowledge(batch)
    assert len(kept) == counts.pending
    assert {("phase", 1), ("run_usage", 2), ("run", 3)} <= kept
    assert sum(1 for what, _ in kept if what == "event") == 300
    assert max(seq for _, seq in kept) == counts.made  # the newest stay
    assert any(n.kind == "spool_dropped" for n in spool.notices())
    spool.close()


def test_one_synced_commit_an_append_also_while_a_backlog_is_acknowledged(tmp_path, monkeypatch):
    spool = Spool(tmp_path, BOOT)
    for n in range(600):
        spool.append([radio(n), event(n)])
    synced: list[int | str] = []
    commit = Database.commit

    def counted(file: Database, *args: Any, **more: Any) -> int:
        (mode,) = file._db.execute("PRAGMA synchronous").fetchone()
        synced.append(mode)
        return commit(file, *args, **more)

    monkeypatch.setattr(Database, "commit", counted)
    monkeypatch.setattr("tandem.spool.durable.os.fsync", lambda _fd: synced.append("file"))
    for n in range(100):
        spool.append([radio(n)])
        batch = spool.take(8)
        assert batch is not None
        spool.acknowledge(batch)
    assert synced == [2] * 100
    spool.close()


def test_what_a_drained_backlog_took_is_given_back_to_the_disk(tmp_path):
    spool = Spool(tmp_path, BOOT)
    noise = random.Random(1)
    for n in range(60):
        texts = [noise.randbytes(200).hex() for _ in range(500)]
        spool.append([Record.make("radio", {"path": "a", "operator": text}, {"eci": n}, n) for text in texts])
    assert spool.used_bytes() > 5 << 20
    while (batch := spool.take(10_000)) is not None:
        spool.acknowledge(batch)
    for n in range(50):
        spool.append([radio(n)])
    spool.close()
    assert (tmp_path / "queue.sqlite").stat().st_size < 5 << 20
    spool = Spool(tmp_path, BOOT)
    assert len(numbers(spool, 100_000)) == 50
    spool.close()


def test_what_is_dropped_second_after_second_is_told_once_a_minute(tmp_path, monkeypatch):
    seconds = [1000.0]
    monkeypatch.setattr("tandem.spool.spool.time.monotonic", lambda: seconds[0])
    spool = Spool(tmp_path, BOOT, limit_bytes=64 * 1024)
    told = []
    for second in range(240):
        spool.append([radio(second * 7919 * (n + 1) % 100_003) for n in range(60)])
        seconds[0] += 1
        told += spool.notices()
    seconds[0] += 60
    told += spool.notices()
    assert {n.kind for n in told} == {"spool_dropped"}
    assert 2 <= len(told) <= 5
    assert sum(int(n.detail.split()[0]) for n in told) == spool.counts().dropped
    spool.close()


def test_a_spool_keeps_its_id_another_folder_gets_another_and_two_collectors_do_not_write_one(tmp_path):
    seen = []
    for folder in ("a", "a", "b"):
        spool = Spool(tmp_path / folder, BOOT)
        seen.append(spool.identity)
        spool.append([radio(1)])
        with pytest.raises(SpoolError, match="another collector"):
            Spool(tmp_path / folder, BOOT)
        spool.close()
    assert seen[0] == seen[1]
    assert seen[0].first == seen[2].first == 1
    assert seen[0].id != seen[2].id


def test_settled_is_the_number_up_to_which_nothing_waits(tmp_path):
    spool = Spool(tmp_path, BOOT)
    assert spool.settled() == 0
    for n in range(3):
        spool.append([radio(n), event(n)])
    assert spool.settled() == 0
    newest = spool.take(1, newest_only=True)
    assert newest is not None
    spool.acknowledge(newest)
    spool.append([radio(9)])
    assert spool.settled() == 0
    while (batch := spool.take(1)) is not None:
        spool.acknowledge(batch)
        spool.flush()
    assert spool.settled() == 7
    spool.append([radio(10)])
    assert spool.settled() == 7
    (record,) = spool_records(spool, 0.0, 4, 123)
    counts = {"made": 8, "sent": 7, "rejected": 0, "dropped": 0, "settled": 7, "manifests": 4}
    assert {**record.fields, "oldest_s": 0} == {"spool": spool.identity.id, "first": 1, **counts, "oldest_s": 0}
    spool.close()


def test_what_was_dropped_or_refused_is_settled(tmp_path):
    spool = Spool(tmp_path, BOOT)
    spool.append([radio(1), radio(2)], dropped=2)
    batch = spool.take(10)
    assert sorted(item.seq for item in batch.items) == [3, 4], "the dropped came before"
    spool.reject(batch, batch.items[0].seq, "no")
    spool.acknowledge(batch)
    spool.flush()
    (record,) = spool_records(spool, None, 0, 1)
    assert [record.fields[k] for k in ("made", "sent", "rejected", "dropped", "settled")] == [4, 1, 1, 2, 4]
    assert "oldest_s" not in record.fields
    spool.close()


def test_both_ends_pass_over_whole_boots(tmp_path):
    spool = Spool(tmp_path, "boot-1")
    for count in (10, 10, 10, 5):
        spool.append([radio(n) for n in range(count)])
    held = [(11, 20), (31, None)]
    batch = spool.take(100, held=held)
    assert sorted(item.seq for item in batch.items) == [*range(1, 11), *range(21, 31)]
    assert spool.take(100, held=held) is None
    spool.acknowledge(batch)
    rest = spool.take(100)
    assert sorted(item.seq for item in rest.items) == [*range(11, 21), *range(31, 36)]
    spool.release(rest)
    assert spool.take(100, newest_only=True, held=[(1, None)]) is None
    spool.close()
