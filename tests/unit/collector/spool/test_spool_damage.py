"""Damaged files: what can be read is saved, the rest is counted, the file goes to quarantine."""

import contextlib
import errno
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.schema.record import Record
from tandem.spool import Spool, SpoolFullError
from tandem.spool.database import NAME, PAGE_BYTES, UNFINISHED, BlobError, Item, pack, unpack


def radio(n: int) -> Record:
    return Record.make("radio", {"path": "a", "operator": "A" * 200}, {"eci": n, "rsrp_dbm": -90.0 - n % 7}, n)


def filled(folder: Path, appends: int) -> Path:
    spool = Spool(folder, "boot")
    for n in range(appends):
        spool.append([radio(n * 20 + k) for k in range(20)])
    spool.close()
    return folder / NAME


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


def assert_begun_anew(spool: Spool, folder: Path, lost: int, made: int) -> None:
    """The damaged file is in quarantine, what waited in it is counted, and another spool goes on behind its last number."""
    counts = spool.counts()
    assert (counts.made, counts.dropped, counts.pending) == (made, lost, 0)
    assert spool.identity.first == made + 1
    (notice,) = spool.notices()
    assert notice.kind == "spool_dropped"
    assert f"{lost} records that waited are lost" in notice.detail
    assert any(file.stat().st_size for file in (folder / "quarantine").glob(f"{NAME}.damaged-*"))
    spool.append([radio(1)])
    assert drain(spool) == {made + 1}
    assert spool.counts().pending == 0


def pages_zeroed(file: Path, first: int) -> None:
    content = bytearray(file.read_bytes())
    content[first * PAGE_BYTES :] = bytes(len(content) - first * PAGE_BYTES)
    file.write_bytes(content)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE state SET content='no counts'",
        """UPDATE state SET content=replace(content, '"sent":0', '"sent":7')""",  # a changed digit
    ],
)
def test_a_file_whose_counts_cannot_be_read_is_set_aside_and_another_spool_begins(tmp_path, damage):
    file = filled(tmp_path, 200)
    before = Spool(tmp_path, "boot")
    before.close()
    changed(file, damage)
    spool = Spool(tmp_path, "boot")
    assert spool.identity.id != before.identity.id
    assert_begun_anew(spool, tmp_path, 4000, 4000)
    spool.close()


@pytest.mark.parametrize("content", [b"", b"no database " * 1000])
def test_a_file_that_is_no_database_is_set_aside(tmp_path, content):
    filled(tmp_path, 3).write_bytes(content)
    spool = Spool(tmp_path, "boot")
    (notice,) = spool.notices()
    assert "all records that waited are lost" in notice.detail
    assert (spool.counts().made, spool.identity.first) == (0, 1)
    spool.append([radio(1)])
    assert drain(spool) == {1}
    spool.close()


def test_a_log_without_its_file_is_never_played_into_another(tmp_path):
    spool = Spool(tmp_path / "live", "boot")
    spool.append([radio(n) for n in range(20)])
    shutil.copytree(tmp_path / "live", tmp_path / "killed")
    spool.close()
    (tmp_path / "killed" / NAME).unlink()
    spool = Spool(tmp_path / "killed", "boot")
    assert spool.counts().made == 0
    assert "not there" in spool.notices()[0].detail
    assert (tmp_path / "killed" / NAME).exists()
    spool.append([radio(1)])
    assert drain(spool) == {1}
    spool.close()


@pytest.mark.parametrize("boot", ["boot", "another"])
def test_a_log_that_lost_its_end_lets_no_number_be_used_twice(tmp_path, boot):
    spool = Spool(tmp_path / "live", "boot")
    for n in range(3):
        spool.append([radio(n * 20 + k) for k in range(20)])
    shutil.copytree(tmp_path / "live", tmp_path / "killed")
    spool.close()
    log = tmp_path / "killed" / f"{NAME}-wal"
    log.write_bytes(log.read_bytes()[: log.stat().st_size * 2 // 3])  # to SQLite commits that never finished
    spool = Spool(tmp_path / "killed", boot)
    counts = spool.counts()
    assert 0 < counts.pending < 60
    # Exact in the same boot; in another the note of the last number may be old.
    assert counts.made == (60 if boot == "boot" else counts.pending + 10_000)
    assert 0 < counts.dropped == counts.made - counts.pending
    assert any("the end of" in n.detail for n in spool.notices())
    identity = spool.identity
    spool.close()
    spool = Spool(tmp_path / "killed", boot)
    assert (spool.counts(), spool.identity, spool.notices()) == (counts, identity, [])
    spool.append([radio(1)])
    assert max(drain(spool)) == counts.made + 1
    spool.close()


@pytest.mark.parametrize("damage", ["UPDATE blob SET body=x'00' WHERE id=21", "DELETE FROM blob WHERE id=21"])
def test_one_blob_that_cannot_be_read_or_found_costs_that_blob(tmp_path, damage):
    file = filled(tmp_path, 10)
    changed(file, damage)
    spool = Spool(tmp_path, "boot")
    assert drain(spool) == set(range(1, 201)) - set(range(21, 41))
    counts = spool.counts()
    assert (counts.sent, counts.dropped, counts.pending) == (180, 20, 0)
    assert "DELETE" in damage or [n.detail for n in spool.notices()] == ["20 records cannot be read any more"]
    assert not (tmp_path / "quarantine").exists()
    spool.close()


def test_the_quarantine_stays_within_its_bounds(tmp_path, monkeypatch):
    monkeypatch.setattr("tandem.spool.spool.REJECTED_BYTES", 2000)
    monkeypatch.setattr("tandem.spool.spool.DAMAGED_BYTES", 0)
    spool = Spool(tmp_path, "boot", limit_bytes=20_000)
    for n in range(40):
        spool.append([radio(n)])
        batch = spool.take(10)
        spool.reject(batch, batch.items[0].seq, "no")
        spool.acknowledge(batch)
    assert spool.counts().rejected == 40
    quarantine = tmp_path / "quarantine"
    assert sum(p.stat().st_size for p in quarantine.iterdir()) < 6000
    spool.close()
    for _ in range(5):
        (tmp_path / NAME).write_bytes(bytes(9000))
        Spool(tmp_path, "boot", limit_bytes=20_000).close()
    assert 9000 < sum(p.stat().st_size for p in quarantine.glob("*.damaged-*")) <= 20_000


def test_damage_while_a_batch_is_out_keeps_the_counts_exact(tmp_path):
    file = filled(tmp_path, 200)
    spool = Spool(tmp_path, "boot")
    first, second = spool.take(200), spool.take(200)
    pages_zeroed(file, 8)
    spool._db._db.execute("PRAGMA cache_size=0")  # SQLite must look at the disk, as after a restart
    spool.acknowledge(first)
    assert drain(spool) == set()
    assert spool.counts().pending == len(second.items), "they are in memory"
    spool.append([radio(1)])
    spool.acknowledge(second)
    sent = {i.seq for i in (*first.items, *second.items)}
    assert (spool.counts().sent, spool.counts().dropped) == (len(sent), 4000 - len(sent))
    assert spool.counts().pending == 1
    assert drain(spool) == {4001}
    spool.close()


def test_a_batch_that_comes_back_to_another_file_is_counted(tmp_path):
    file = filled(tmp_path, 200)
    spool = Spool(tmp_path, "boot")
    batch = spool.take(200)
    pages_zeroed(file, 8)
    spool._db._db.execute("PRAGMA cache_size=0")
    assert drain(spool) == set()
    spool.release(batch)
    assert drain(spool) == set()
    assert (spool.counts().dropped, spool.counts().pending) == (4000, 0)
    spool.close()


def test_a_full_disk_takes_nothing_and_loses_nothing(tmp_path, monkeypatch):
    spool = Spool(tmp_path, "boot")
    spool.append([radio(1)])
    page_limit = "PRAGMA max_page_count=8"
    spool._db._db.execute(page_limit)
    big = [
        Record.make("radio", {"path": "a", "operator": str(n) * 40}, {"eci": n * 7919 % 100003}, n) for n in range(5000)
    ]
    with pytest.raises(SpoolFullError, match="free disk space"):
        spool.append(big)
    assert spool.counts().made == 1
    spool._db._db.execute("PRAGMA max_page_count=1000000")
    spool.append(big)
    assert spool.counts().made == 5001
    assert len(drain(spool)) == 5001

    def refuse(*_args: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    spool.append([radio(2)])
    batch = spool.take(1)
    spool.reject(batch, batch.items[0].seq, "no")
    monkeypatch.setattr("tandem.spool.spool.Quarantine.reject", refuse)
    with pytest.raises(SpoolFullError):
        spool.acknowledge(batch)
    assert spool.counts().pending == 1  # a rejected record is not forgotten before it is in quarantine
    monkeypatch.undo()
    spool.close()


def test_a_disk_that_takes_no_new_file_in_place_of_a_damaged_one_loses_nothing_more(tmp_path, monkeypatch):
    file = filled(tmp_path, 200)
    spool = Spool(tmp_path, "boot")
    pages_zeroed(file, 8)
    spool._db._db.execute("PRAGMA cache_size=0")

    def refuse(*_args: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("tandem.spool.spool.make", refuse)
    for _ in range(2):
        with pytest.raises(SpoolFullError, match="free disk space"):
            spool.take(10)
    monkeypatch.undo()
    assert_begun_anew(spool, tmp_path, 4000, 4000)
    spool.close()


def test_a_file_whose_making_was_cut_off_is_no_damage(tmp_path):
    filled(tmp_path, 1)
    cut = tmp_path / f"{NAME}{UNFINISHED}"
    cut.touch()  # as a kill -9 leaves it before its tables are committed
    spool = Spool(tmp_path, "boot")
    assert not cut.exists()
    assert spool.notices() == []
    spool.append([radio(2)])
    assert (spool.counts().made, spool.counts().dropped) == (21, 0)
    spool.close()


def test_a_file_of_another_version_is_kept_aside(tmp_path):
    changed(filled(tmp_path, 2), "PRAGMA user_version=99")
    spool = Spool(tmp_path, "boot")
    assert "version" in spool.notices()[0].detail
    assert len(list((tmp_path / "quarantine").glob(f"{NAME}.damaged-*"))) >= 1
    spool.close()


@given(st.binary(max_size=200))
def test_any_bytes_are_a_blob_or_refused(content):
    with pytest.raises(BlobError):
        unpack(content)


@given(st.integers(0, 400), st.integers(0, 255))
def test_a_changed_byte_in_a_blob_never_goes_unnoticed_as_another_record(at, value):
    items = [Item(n, "boot", radio(n)) for n in range(1, 8)]
    blob = bytearray(pack(items))
    blob[at % len(blob)] = value
    with contextlib.suppress(BlobError):
        assert unpack(bytes(blob)) == items


FUZZER = Path(__file__).resolve().parents[3] / "bench/fuzz_spool.py"


def test_damaged_spools_are_read_or_refused_and_counted():
    command = [sys.executable, str(FUZZER), "--rounds", "40", "--seconds", "3600", "--seed", "7"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "40 damaged spools, 0 wrong" in done.stdout
