"""Damaged files: what can be read is saved, the rest is counted, the file goes to quarantine."""

import contextlib
import errno
import json
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tandem.schema.record import Record
from tandem.spool import Spool, SpoolFullError
from tandem.spool.blob import BlobError, Item, pack, unpack
from tandem.spool.dayfile import PAGE_BYTES, UNFINISHED


def radio(n: int) -> Record:
    return Record.make("radio", {"path": "a", "operator": "A" * 200}, {"eci": n, "rsrp_dbm": -90.0 - n % 7}, n)


def filled(folder: Path, appends: int) -> Path:
    spool = Spool(folder, "boot")
    for n in range(appends):
        spool.append([radio(n * 20 + k) for k in range(20)])
    spool.close()
    (file,) = folder.glob("*.sqlite")
    return file


def changed(file: Path, statement: str) -> None:
    with contextlib.closing(sqlite3.connect(file)) as db, db:
        db.execute(statement)


def drain(spool: Spool) -> set[int]:
    seen: set[int] = set()
    while (batch := spool.take(1000)) is not None:
        seen |= {i.seq for i in batch.items}
        spool.acknowledge(batch)
    spool.flush()
    return seen


def test_without_its_counts_a_file_gives_back_every_record_and_no_number_twice(tmp_path: Path) -> None:
    file = filled(tmp_path, 200)
    content = bytearray(file.read_bytes())
    db = sqlite3.connect(file)
    (page,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name='count'").fetchone()
    db.close()
    content[(page - 1) * PAGE_BYTES : page * PAGE_BYTES] = bytes(PAGE_BYTES)
    file.write_bytes(content)
    spool = Spool(tmp_path, "boot")
    counts = spool.counts()
    assert counts.pending == 4000
    assert counts.made == counts.pending + counts.dropped
    spool.append([radio(1)])
    assert drain(spool) == {*range(1, 4001), counts.made + 1}
    spool.close()


def test_a_changed_digit_in_the_counts_is_noticed(tmp_path: Path) -> None:
    file = filled(tmp_path, 3)
    changed(file, "UPDATE count SET value=7 WHERE name='sent'")
    spool = Spool(tmp_path, "boot")
    assert spool.counts().pending == 60
    assert any("not as they were written" in n.detail for n in spool.notices())
    spool.close()


def test_a_newest_file_that_is_not_there_leaves_its_numbers_unused(tmp_path: Path) -> None:
    now = [1_790_000_000 * 10**9]
    spool = Spool(tmp_path, "boot", utc_ns=lambda: now[0])
    spool.append([radio(1)])
    now[0] += 86_400 * 10**9
    spool.append([radio(2), radio(3)])
    spool.close()
    max(tmp_path.glob("*.sqlite")).unlink()
    spool = Spool(tmp_path, "boot", utc_ns=lambda: now[0])
    spool.append([radio(4)])
    counts = spool.counts()
    assert counts.made > 3
    assert counts.pending == 2
    assert drain(spool) == {1, counts.made}
    spool.close()


@pytest.mark.parametrize(("boot", "made"), [("boot", 60), ("another", 10_020)])
def test_a_log_that_lost_its_end_lets_no_number_be_used_twice(tmp_path: Path, boot: str, made: int) -> None:
    spool = Spool(tmp_path / "live", "boot")
    for n in range(3):
        spool.append([radio(n * 20 + k) for k in range(20)])
    shutil.copytree(tmp_path / "live", tmp_path / "killed")
    spool.close()
    (log,) = (tmp_path / "killed").glob("*-wal")
    log.write_bytes(log.read_bytes()[: log.stat().st_size * 2 // 3])  # to SQLite commits that never finished
    spool = Spool(tmp_path / "killed", boot)
    counts = spool.counts()
    assert counts.made == made  # exact in the same boot, by the reservation in another
    assert 0 < counts.dropped == counts.made - counts.pending
    assert any("the end of" in n.detail for n in spool.notices())
    spool.append([radio(1)])
    assert max(drain(spool)) == made + 1
    spool.close()


def test_a_file_written_anew_is_the_one_that_counts_when_the_power_went_before_the_old_one_was_put_away(
    tmp_path: Path,
) -> None:
    file = filled(tmp_path, 10)
    old = file.read_bytes()
    changed(file, "UPDATE blob SET body=x'00' WHERE id=21")
    spool = Spool(tmp_path, "boot")
    drain(spool)
    counts = spool.counts()
    assert (counts.sent, counts.dropped) == (180, 20)
    spool.close()
    file.write_bytes(old)
    spool = Spool(tmp_path, "boot")
    assert spool.counts() == counts
    assert spool.take(10) is None
    spool.close()


def test_the_quarantine_stays_within_its_bounds_and_what_leaves_it_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tandem.spool.quarantine.REJECTED_BYTES", 2000)
    monkeypatch.setattr("tandem.spool.quarantine.DAMAGED_BYTES", 20_000)
    spool = Spool(tmp_path, "boot")
    for n in range(40):
        spool.append([radio(n)])
        batch = spool.take(10)
        spool.reject(batch, batch.items[0].seq, "no")
        spool.acknowledge(batch)
    counts = spool.counts()
    quarantine = tmp_path / "quarantine"
    kept = sum(len(p.read_text().splitlines()) for p in quarantine.glob("rejected*.jsonl"))
    assert counts.rejected == 40 == kept + counts.forgotten
    assert counts.forgotten > 0
    assert sum(p.stat().st_size for p in quarantine.iterdir()) < 6000
    spool.close()
    for life in range(5):
        newest = max(tmp_path.glob("*.sqlite"))
        newest.write_bytes(bytes(9000))
        spool = Spool(tmp_path, "boot")
        spool.append([radio(life)])
        spool.close()
    damaged = list(quarantine.glob("*.damaged-*"))
    spool = Spool(tmp_path, "boot")
    assert sum(p.stat().st_size for p in damaged) <= 20_000
    assert spool.counts().forgotten_files + len(damaged) >= 5
    assert spool.counts().forgotten == counts.forgotten
    spool.close()


def test_a_line_cut_off_in_the_quarantine_does_not_spoil_the_next(tmp_path: Path) -> None:
    spool = Spool(tmp_path, "boot")
    (tmp_path / "quarantine").mkdir()
    (tmp_path / "quarantine" / "rejected.jsonl").write_text('{"seq": 1, "rea')
    spool.append([radio(1)])
    batch = spool.take(10)
    assert batch is not None
    spool.reject(batch, 1, "no")
    spool.acknowledge(batch)
    lines = (tmp_path / "quarantine" / "rejected.jsonl").read_text().splitlines()
    assert json.loads(lines[-1])["reason"] == "no"
    spool.close()


def test_damage_while_a_batch_is_out_keeps_the_counts_exact(tmp_path: Path) -> None:
    file = filled(tmp_path, 200)
    spool = Spool(tmp_path, "boot")
    first, second = spool.take(200), spool.take(200)
    assert first is not None
    assert second is not None
    content = bytearray(file.read_bytes())
    for block in range(2, len(content) // 4096):
        content[block * 4096 : (block + 1) * 4096] = bytes(4096)
    file.write_bytes(content)
    spool._store.files.days[1]._db.execute("PRAGMA cache_size=0")  # SQLite must look at the disk, as after a restart
    spool.acknowledge(first)
    seen = drain(spool)
    spool.release(second)
    seen |= drain(spool)
    spool.append([radio(1)])
    counts = spool.counts()
    assert counts.made == 4001
    assert counts.pending == 1
    assert counts.sent == len(seen | {i.seq for i in first.items})
    assert counts.sent + counts.dropped == 4000
    spool.close()


def test_a_full_disk_takes_nothing_and_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spool = Spool(tmp_path, "boot")
    spool.append([radio(1)])
    page_limit = "PRAGMA max_page_count=8"
    spool._store.files.days[1]._db.execute(page_limit)
    big = [
        Record.make("radio", {"path": "a", "operator": str(n) * 40}, {"eci": n * 7919 % 100003}, n) for n in range(5000)
    ]
    with pytest.raises(SpoolFullError, match="free disk space"):
        spool.append(big)
    assert spool.counts().made == 1
    spool._store.files.days[1]._db.execute("PRAGMA max_page_count=1000000")
    spool.append(big)
    assert spool.counts().made == 5001
    assert len(drain(spool)) == 5001

    def refuse(*_args: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    spool.append([radio(2)])
    batch = spool.take(1)
    spool.reject(batch, batch.items[0].seq, "no")
    monkeypatch.setattr("tandem.spool.quarantine.Quarantine.reject", refuse)
    with pytest.raises(SpoolFullError):
        spool.acknowledge(batch)
    assert spool.counts().pending == 1  # a rejected record is not forgotten before it is in quarantine
    monkeypatch.undo()
    spool.close()


def test_a_disk_that_takes_no_new_days_file_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1_790_000_000 * 10**9]
    spool = Spool(tmp_path, "boot", utc_ns=lambda: now[0])
    spool.append([radio(1)])
    now[0] += 86_400 * 10**9

    def refuse(*_args: object) -> None:
        raise sqlite3.OperationalError("unable to open database file")

    monkeypatch.setattr("tandem.spool.files.DayFile", refuse)
    with pytest.raises(SpoolFullError, match="free disk space"):
        spool.append([radio(2)])
    monkeypatch.undo()
    spool.append([radio(2)])
    assert spool.counts().made == 2
    assert drain(spool) == {1, 2}
    spool.close()


def test_a_disk_too_full_to_make_room_does_not_have_records_stored_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = Spool(tmp_path, "boot", limit_bytes=1)

    def refuse(*_args: object) -> None:
        raise SpoolFullError("the disk takes nothing")

    monkeypatch.setattr(spool._store, "drop", refuse)
    spool.append([radio(1)])  # stored: raising would have the caller append it again
    assert spool.counts().made == 1
    monkeypatch.undo()
    spool.append([radio(2)])
    assert spool.counts().made == 2
    spool.close()


def test_a_days_file_whose_making_was_cut_off_is_no_damage(tmp_path: Path) -> None:
    spool = Spool(tmp_path, "boot")
    spool.append([radio(1)])
    spool.close()
    cut = tmp_path / f"000000000002-20261122.sqlite{UNFINISHED}"
    cut.touch()  # as a kill -9 leaves it before its tables are committed
    spool = Spool(tmp_path, "boot")
    assert not cut.exists()
    assert spool.notices() == []
    assert (spool.counts().made, spool.counts().dropped) == (1, 0)
    spool.append([radio(2)])
    assert spool.counts().made == 2
    spool.close()


def test_a_file_of_another_version_is_kept_aside(tmp_path: Path) -> None:
    file = filled(tmp_path, 2)
    changed(file, "PRAGMA user_version=99")
    spool = Spool(tmp_path, "boot")
    assert spool.counts().made == 40
    assert len(drain(spool)) == 40
    spool.close()


@given(st.binary(max_size=200))
def test_any_bytes_are_a_blob_or_refused(content: bytes) -> None:
    with pytest.raises(BlobError):
        unpack(content)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 400), st.integers(0, 255))
def test_a_changed_byte_in_a_blob_never_goes_unnoticed_as_another_record(at: int, value: int) -> None:
    items = [Item(n, "boot", radio(n)) for n in range(1, 8)]
    blob = bytearray(pack(items))
    blob[at % len(blob)] = value
    with contextlib.suppress(BlobError):
        assert unpack(bytes(blob)) == items


FUZZER = Path(__file__).resolve().parents[2] / "bench/fuzz_spool.py"


def test_damaged_spools_are_read_or_refused_and_counted() -> None:
    done = subprocess.run(
        [sys.executable, str(FUZZER), "--rounds", "40", "--seconds", "3600", "--seed", "7"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "40 damaged spools, 0 wrong" in done.stdout
