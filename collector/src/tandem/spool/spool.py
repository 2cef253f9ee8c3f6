"""The queue itself: numbers records, keeps them on disk, hands them out, counts what became of each."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from tandem.schema.record import Record
from tandem.spool.database import (
    BLOB_RECORDS,
    ERRORS,
    KEPT_LONGEST,
    NAME,
    SUFFIXES,
    UNFINISHED,
    Counts,
    DamagedError,
    Database,
    Identity,
    Item,
    Row,
    SpoolError,
    beginning,
    disk_refused,
    is_damaged,
    is_full,
    last_counts,
    make,
    pack,
)
from tandem.spool.durable import LastSequenceMarker, sync_folder

DEFAULT_LIMIT_BYTES = 1 << 29
DAMAGED_BYTES = 64 << 20
"""Of damaged files so much is kept beyond ``limit_bytes``, so that the newest one always is."""
PASSED_OVER = 10_000
"""So many numbers stay unused where the log lost its end in another boot: the note of the last one may be a minute old."""
NOTICE_EVERY_S = 60.0
"""What repeats is reported as a sum once in so long: each notice becomes a record itself."""

Range = tuple[int, int | None]
"""First and last number; None: no end."""
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Notice:
    """Something people should know: ``kind`` is one of ``schema.metrics.EVENT_KINDS``."""

    kind: str
    detail: str


@dataclass(slots=True)
class Batch:
    """What ``Spool.take`` gave out. It must come back by ``acknowledge`` or ``release``. ``rejected``: reason by number."""

    items: tuple[Item, ...]
    blobs: dict[int, int]
    """Number of records by id."""
    rejected: dict[int, str] = field(default_factory=dict)


class Spool:
    """The spool in ``folder``, made where there is none. For any number of threads; one process at a time (SpoolError).

    ``boot``: the boot id of what is appended from now on. ``limit_bytes``: when more than this is pending, the oldest records
    are dropped and counted, those of ``KEPT_LONGEST`` last. ``notices`` tells what people should know of.
    """

    def __init__(self, folder: Path, boot: str, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        self.folder, self.limit_bytes, self._boot = folder, limit_bytes, boot
        self._lock = threading.RLock()
        self._quarantine = Quarantine(folder / "quarantine", limit_bytes + DAMAGED_BYTES)
        self._path = folder / NAME
        self._db: Database | None = None
        self._counts = Counts()
        self.identity = Identity.new(1)
        """Which spool this is. A new card, an emptied folder, a damaged file: another one follows."""
        self._out: dict[int, int] = {}
        """Blobs given out: records by id."""
        self._settled: dict[int, int] = {}
        """Blobs acknowledged and not yet removed."""
        self._since = {"sent": 0, "rejected": 0, "dropped": 0}
        """What is not yet in the counts on disk."""
        self._notices: list[Notice] = []
        self._sums: dict[str, tuple[int, str]] = {}
        self._summed_s: dict[str, float] = {}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock_fd = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        except OSError as error:
            raise SpoolError(f"{folder}: {error.strerror}; hint: make it a writable folder") from error
        try:
            fcntl.flock(self._lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self._lock_fd)
            raise SpoolError(f"{folder}: another collector writes this spool; hint: stop it first") from error
        self._marker = LastSequenceMarker(self._lock_fd, boot)
        try:
            self._open()
        except (OSError, sqlite3.Error) as error:
            os.close(self._lock_fd)
            raise SpoolError(f"{folder}: {error}; hint: free disk space, or move the folder away") from error

    # --- the file ---------------------------------------------------------------------------------------------------

    def _open(self) -> None:
        for draft in self.folder.glob(NAME + UNFINISHED + "*"):
            draft.unlink()
        files = [self._path.with_name(NAME + suffix) for suffix in SUFFIXES]
        if not self._path.exists() and not any(file.exists() for file in files):
            make(self._path, self.identity, self._counts)
        try:
            if not self._path.exists():
                raise sqlite3.DatabaseError("malformed: it is not there, its log is")
            self._db = Database(self._path)
            self.identity, self._counts = self._db.identity, self._db.counts
            self._pass_over(self._db)
        except ERRORS as error:
            if not is_damaged(error):
                raise
            known = last_counts(self._path) if self._path.exists() else None
            self._counts = known or self._counts
            self._renew(str(error), "all" if known is None else None)

    def _pass_over(self, db: Database) -> None:
        """No number twice: those that were given out and are not in the file count as dropped."""
        noted, exact = self._marker.noted()
        if noted <= db.counts.made:
            return
        last = noted if exact else max(noted, db.counts.made + PASSED_OVER)
        lost = last - db.counts.made
        db.commit(replace(db.counts, made=last).plus(0, 0, lost))
        self._counts = db.counts
        self._marker.note(last)
        words = f"{lost}" if exact else f"some of {lost}"
        self._notices.append(
            Notice(
                "spool_dropped",
                f"{NAME} lost the end of its log: {words} records are lost, all of these numbers count as dropped",
            )
        )

    def _renew(self, why: str, words: str | None = None) -> None:
        """The file is damaged: it goes to quarantine, what waited in it counts as dropped, another spool begins behind the last number."""
        if self._db is not None:
            with contextlib.suppress(sqlite3.Error):
                self._db.close()
            self._db = None
        # What is out is in memory, and what is settled is at the server.
        counts = self.counts()
        lost = max(0, counts.pending - sum(self._out.values()))
        self._counts, self.identity = counts.plus(0, 0, lost), Identity.new(counts.made + 1)
        self._settled.clear()
        self._since = dict.fromkeys(self._since, 0)
        what = f"{NAME} was damaged ({why}): {words or lost} records that waited are lost; it is in quarantine, a new spool begins"
        self._notices.append(Notice("spool_dropped", what))
        self._begin()

    def _begin(self) -> Database:
        self._quarantine.put(self._path.with_name(NAME + suffix) for suffix in SUFFIXES)
        make(self._path, self.identity, self._counts)
        self._marker.note(self._counts.made)
        self._db = Database(self._path)
        return self._db

    def _do(self, action: Callable[[Database], _T]) -> _T:
        """``action`` on the file; on a new one when it proves damaged. SpoolFullError when the disk takes nothing."""
        try:
            try:
                return action(self._db or self._begin())
            except ERRORS as error:
                if not is_damaged(error):
                    raise
                self._renew(str(error))
            return action(self._db or self._begin())
        except (OSError, sqlite3.Error) as error:
            if isinstance(error, OSError) or is_full(error) or is_damaged(error):
                raise disk_refused(self.folder, error) from error
            raise

    # --- in ---------------------------------------------------------------------------------------------------------

    def append(self, records: Sequence[Record], dropped: int = 0) -> None:
        """Number the records and store them: on disk on return. ``dropped``: so many before them were given up already.

        One commit with what was acknowledged since, so call it about once a second with all there is. Events and summaries have the
        first of the numbers. SpoolFullError when the disk takes nothing; the records then have no numbers and stay with the caller.
        """
        with self._lock:
            if records or dropped or self._settled or any(self._since.values()):
                self._do(lambda db: self._commit(db, records, dropped))
            if dropped:
                what = f"{dropped} records did not fit into memory while the disk was full"
                self._notices.append(Notice("spool_dropped", what))

    def _commit(self, db: Database, records: Sequence[Record] = (), dropped: int = 0) -> None:
        last, made, rows = db.counts.made + dropped, Counter(db.counts.by_measurement), []
        for kept in (True, False):
            chosen = [r for r in records if (r.measurement in KEPT_LONGEST) == kept]
            made.update(record.measurement for record in chosen)
            for start in range(0, len(chosen), BLOB_RECORDS):
                part = chosen[start : start + BLOB_RECORDS]
                items = [Item(last + 1 + n, self._boot, record) for n, record in enumerate(part)]
                last += len(items)
                rows.append(Row(items[0].seq, len(items), kept, pack(items)))
        counts = replace(db.counts.plus(**self._since), made=last, by_measurement=dict(made))
        lost = db.commit(counts.plus(0, 0, dropped), rows, self._settled, self.limit_bytes, self._out)
        self._counts = db.counts
        self._marker.note(self._counts.made)
        self._settled.clear()
        self._since = dict.fromkeys(self._since, 0)
        self._sum("spool_dropped", lost, f"records dropped: the spool is larger than {self.limit_bytes} bytes")

    def flush(self) -> None:
        """Make durable what was acknowledged. SpoolFullError as ``append``."""
        self.append(())

    # --- out --------------------------------------------------------------------------------------------------------

    def take(self, limit: int, *, newest_only: bool = False, held: Sequence[Range] = ()) -> Batch | None:
        """About ``limit`` records at most (whole blobs, one at least), or None when nothing waits. ``held``: the numbers of whole
        boots that are passed over, in order.

        Half of it from the newest end, newest first, so that a person sees now; the rest from the oldest, so that no backlog
        starves (``newest_only``: nothing from the oldest). What is out is not given out again until it is released.
        """
        ranges = _between(held)
        ends = ((limit, True),) if newest_only else ((limit // 2, True), (limit, False))
        with self._lock:
            batch = self._do(lambda db: self._choose(db, ends, ranges))
            self._out |= batch.blobs
            return batch if batch.blobs else None

    def _choose(self, db: Database, ends: Sequence[tuple[int, bool]], ranges: Sequence[Range]) -> Batch:
        """``ends``: how many records there may be after this end was looked at, and whether it is the newest."""
        batch, items = Batch((), {}), list[Item]()
        left = self.counts().pending - sum(self._out.values())
        for most, newest in ends:
            for row in self._waiting(db, ranges, newest=newest):
                if row.id in batch.blobs:
                    continue
                if batch.blobs and len(items) + row.records > most:
                    break
                left -= row.records
                if left < 0:
                    raise DamagedError("more records than were put in")
                found = row.items()
                if found is None:
                    self._settled[row.id] = row.records
                    self._lost(row.records, "records cannot be read any more")
                else:
                    batch.blobs[row.id] = row.records
                    items.extend(found)
            else:
                if left and ranges == _between(()):
                    self._lost(left, "records are in no page of the file any more")
                break
        batch.items = tuple(items)
        return batch

    def _waiting(self, db: Database, ranges: Sequence[Range], *, newest: bool) -> Iterator[Row]:
        """Blobs that are neither out nor settled."""
        for low, high in ranges[::-1] if newest else ranges:
            with contextlib.closing(db.rows(low, high, newest=newest)) as rows:
                yield from (row for row in rows if row.id not in self._out and row.id not in self._settled)

    def reject(self, batch: Batch, seq: int, reason: str) -> None:
        """Note that the record numbered ``seq`` of ``batch`` is not wanted; ``acknowledge`` puts it into quarantine."""
        batch.rejected[seq] = reason

    def acknowledge(self, batch: Batch) -> None:
        """The gateway has every record of ``batch`` that was not rejected. The rejected ones are in quarantine on return; the
        removal is durable with a later commit: a crash before it sends them again, which is harmless."""
        rejected = [(item, batch.rejected[item.seq]) for item in batch.items if item.seq in batch.rejected]
        with self._lock:
            try:
                self._quarantine.reject(rejected)
            except OSError as error:
                self.release(batch)
                raise disk_refused(self.folder, error) from error
            for blob, records in batch.blobs.items():
                del self._out[blob]
                self._settled[blob] = records
            self._since["sent"] += len(batch.items) - len(rejected)
            self._since["rejected"] += len(rejected)
            if rejected:
                self._sum("record_rejected", len(rejected), f"records rejected, the first: {rejected[0][1]}")

    def release(self, batch: Batch) -> None:
        """``batch`` could not be sent: it waits again, unless its file was damaged meanwhile (the next ``take`` misses it)."""
        with self._lock:
            for blob in batch.blobs:
                del self._out[blob]

    def _lost(self, records: int, why: str) -> None:
        self._since["dropped"] += records
        self._notices.append(Notice("spool_dropped", f"{records} {why}"))

    # --- state ------------------------------------------------------------------------------------------------------

    def counts(self) -> Counts:
        """What became of every record so far; what was acknowledged counts at once."""
        with self._lock:
            return self._counts.plus(**self._since)

    def settled(self) -> int:
        """Every number up to this one is sent, rejected or dropped; 0 when not even the first is."""
        with self._lock:
            lowest = self._do(Database.lowest)
            return self._counts.made if lowest is None else lowest - 1

    def used_bytes(self) -> int:
        """Bytes of the records on disk with their database, without its free pages."""
        with self._lock:
            return self._do(Database.used_bytes)

    def oldest(self) -> tuple[str, int] | None:
        """The boot of the oldest records not yet acknowledged, and their least CLOCK_MONOTONIC ns; None when there are none, or they
        cannot be read (the next ``take`` sees to that)."""

        def first(db: Database) -> bytes | None:
            with contextlib.closing(db.rows(0, None, newest=False)) as rows:
                return next((row.body for row in rows), None)

        with self._lock:
            body = self._do(first)
            return None if body is None else beginning(body)

    # --- for people ---------------------------------------------------------------------------------------------------

    def _sum(self, kind: str, count: int, what: str) -> None:
        """Something that may happen every second: reported once a minute, with how many there were and the first ``what``."""
        if count:
            before, first = self._sums.get(kind, (0, what))
            self._sums[kind] = before + count, first

    def notices(self) -> list[Notice]:
        """What happened since the last call, for event records and the log. A sum that is never told is in the counts all the same."""
        with self._lock:
            now_s = time.monotonic()
            for kind in [k for k in self._sums if now_s - self._summed_s.get(k, -NOTICE_EVERY_S) >= NOTICE_EVERY_S]:
                self._summed_s[kind] = now_s
                count, what = self._sums.pop(kind)
                self._notices.append(Notice(kind, f"{count} {what}"))
            found, self._notices = self._notices, []
            return found

    def close(self) -> None:
        """Flush and close. What is given out waits again when the spool is opened the next time."""
        with self._lock:
            try:
                self.flush()
            finally:
                if self._db is not None:
                    self._db.close()
                os.close(self._lock_fd)


def _between(held: Iterable[Range]) -> list[Range]:
    """The numbers from 0 on that are not in ``held``, which is in order."""
    left: list[Range] = []
    first = 0
    for low, high in held:
        if low > first:
            left.append((first, low - 1))
        if high is None:
            return left
        first = max(first, high + 1)
    return [*left, (first, None)]


# ---------------------------------------------------------------------------------------------------------------------
# What cannot be used is put aside for people, within bounds: rejected records as JSON lines with the reason, damaged
# files.
#
# A record may stand in ``rejected.jsonl`` twice after a crash; its ``seq`` tells.


REJECTED = "rejected.jsonl"
REJECTED_BEFORE = "rejected.1.jsonl"
REJECTED_BYTES = 4 << 20
"""Over this ``rejected.jsonl`` becomes ``rejected.1.jsonl``, which replaces that of before: 10,000 to 20,000 records are kept."""


class Quarantine:
    """In ``folder``, made when something is put in. ``damaged_bytes``: of all damaged files together; the oldest go first."""

    def __init__(self, folder: Path, damaged_bytes: int) -> None:
        self.folder, self._damaged_bytes = folder, damaged_bytes

    def reject(self, rejected: Iterable[tuple[Item, str]]) -> None:
        """Append to ``rejected.jsonl``, durable on return. OSError when the disk takes nothing."""
        text = "".join(_line(item, reason) for item, reason in rejected)
        if not text:
            return
        self._make()
        file = self.folder / REJECTED
        if file.exists() and file.stat().st_size > REJECTED_BYTES:
            file.replace(self.folder / REJECTED_BEFORE)
            sync_folder(self.folder)
        fd = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o640)
        try:
            size = os.fstat(fd).st_size
            if size and os.pread(fd, 1, size - 1) != b"\n":
                text = "\n" + text  # the last line was cut off by a power cut: this one must not grow out of it
            rest = memoryview(text.encode())
            while rest:
                rest = rest[os.write(fd, rest) :]
            os.fsync(fd)
        finally:
            os.close(fd)
        if not size:
            sync_folder(self.folder)

    def put(self, files: Iterable[Path]) -> None:
        """Move damaged files here, those that are there. OSError."""
        self._make()
        for source in files:
            with contextlib.suppress(FileNotFoundError):
                source.replace(self.folder / f"{source.name}.damaged-{time.time_ns()}")
        sync_folder(self.folder)
        sync_folder(self.folder.parent)
        kept = sorted((p for p in self.folder.glob("*.damaged-*")), key=lambda p: int(p.name.rpartition("-")[2]))
        size = sum(p.stat().st_size for p in kept)
        while size > self._damaged_bytes:
            oldest = kept.pop(0)
            size -= oldest.stat().st_size
            oldest.unlink()

    def _make(self) -> None:
        if not self.folder.is_dir():
            self.folder.mkdir()
            sync_folder(self.folder.parent)


def _line(item: Item, reason: str) -> str:
    row = {
        "seq": item.seq,
        "reason": reason,
        "measurement": item.record.measurement,
        "tags": dict(item.record.tags),
        "fields": dict(item.record.fields),
        "boot": item.boot,
        "monotonic_ns": item.record.monotonic_ns,
        "rejected_utc_ns": time.time_ns(),
    }
    return json.dumps(row) + "\n"
