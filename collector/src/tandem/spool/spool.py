"""The queue itself: numbers records, keeps them on disk, hands them out, counts what became of each."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from tandem.schema.record import Record
from tandem.spool.account import RESERVE
from tandem.spool.blob import BlobError, Item, pack, unpack
from tandem.spool.counts import Counts
from tandem.spool.dayfile import DayFile, Row
from tandem.spool.errors import SpoolBusyError, SpoolError, SpoolFullError, says_damaged, says_full
from tandem.spool.files import Files, Notice
from tandem.spool.quarantine import quarantine

KEPT_LONGEST = ("event", "run")
"""Measurements that are dropped last: few, and what everything else is read by."""

BLOB_RECORDS = 500
"""Records of one blob at most, so that a batch of 1000 lines can always be filled from both ends."""

DEFAULT_LIMIT_BYTES = 512 * 1024 * 1024
_DROP_AT_ONCE = 32
_T = TypeVar("_T")


@dataclass(slots=True)
class Batch:
    """What ``take`` gave out. It must come back by ``acknowledge`` or ``release``."""

    items: tuple[Item, ...]
    parts: tuple[tuple[int, int, int], ...]
    """First number of the file, id of the blob, records in it."""
    rejected: dict[int, str] = field(default_factory=dict)


class Spool:
    """The spool in ``folder``, made where there is none. For any number of threads; one process at a time (SpoolBusyError).

    ``boot``: the boot id of what is appended from now on. ``limit_bytes``: when more than this is pending, the oldest records
    are dropped and counted, those of ``KEPT_LONGEST`` last. ``notices`` tells what people should know of.
    """

    def __init__(
        self,
        folder: Path,
        boot: str,
        limit_bytes: int = DEFAULT_LIMIT_BYTES,
        utc_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self.folder, self._boot, self._limit, self._utc_ns = folder, boot, limit_bytes, utc_ns
        self._lock = threading.RLock()
        self._notices: list[Notice] = []
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock_fd = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        except OSError as error:
            raise SpoolError(f"{folder}: {error.strerror}; mend: make it a writable folder") from error
        try:
            fcntl.flock(self._lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self._lock_fd)
            raise SpoolBusyError(f"{folder}: another collector writes this spool; mend: stop it first") from error
        self._taken: dict[int, tuple[int, int]] = {}
        self._orphans: set[int] = set()
        self._settled: dict[int, list[tuple[int, int, int]]] = {}
        try:
            self._files = Files(folder, self._notices)
        except (OSError, sqlite3.Error) as error:
            os.close(self._lock_fd)
            raise SpoolError(f"{folder}: {error}; mend: free disk space, or move the folder away") from error

    # --- in ---------------------------------------------------------------------------------------------------------

    def append(self, records: Sequence[Record], dropped: int = 0) -> None:
        """Number the records and store them: on disk on return. ``dropped``: so many before them were given up already.

        One transaction, so call it about once a second with all there is. SpoolFullError when the disk takes nothing; the
        records then have no numbers and stay with the caller.
        """
        with self._lock:
            self._settle()
            if not records and not dropped:
                return
            first = self._files.current(self._day())
            last = self._files.last + dropped
            rows: list[Row] = []
            for kept in (True, False):
                chosen = [r for r in records if (r.measurement in KEPT_LONGEST) == kept]
                for start in range(0, len(chosen), BLOB_RECORDS):
                    part = chosen[start : start + BLOB_RECORDS]
                    items = [Item(last + 1 + n, self._boot, record) for n, record in enumerate(part)]
                    last += len(items)
                    rows.append(Row(items[0].seq, len(items), kept, self._utc_ns(), pack(items)))
            self._reserve(last)
            made = Counter(record.measurement for record in records)

            def put(file: DayFile) -> None:
                tally = file.tally.copy()
                tally.last = last
                tally.dropped += dropped
                for measurement, count in made.items():
                    tally.made[measurement] = tally.made.get(measurement, 0) + count
                file.commit(tally, add=rows)

            self._on(first, put)
            if dropped:
                self._notices.append(
                    Notice("spool_dropped", f"{dropped} records did not fit into memory while the disk was full")
                )
            self._enforce()

    def _day(self) -> str:
        return time.strftime("%Y%m%d", time.gmtime(self._utc_ns() / 1e9))

    def _reserve(self, last: int) -> None:
        account = self._files.account
        if last > account.reserved:
            before, account.reserved = account.reserved, last + RESERVE
            try:
                account.write()
            except OSError as error:
                account.reserved = before
                raise _full(self.folder, error) from error

    # --- out --------------------------------------------------------------------------------------------------------

    def take(self, limit: int) -> Batch | None:
        """About ``limit`` records at most (whole blobs, one at least), or None when nothing waits.

        Half of it from the newest end, newest first, so that a person sees now; the rest from the oldest, so that no backlog
        starves. What is out is not given out again until it is released.
        """
        with self._lock:
            chosen: list[tuple[int, Row]] = []
            self._choose(chosen, limit // 2, newest=True)
            self._choose(chosen, limit, newest=False)
            items: list[Item] = []
            parts: list[tuple[int, int, int]] = []
            for first, row in chosen:
                try:
                    items.extend(unpack(row.body))
                except BlobError as error:
                    self._drop(first, [(row.id, row.records)], f"{row.records} records were unreadable: {error}")
                    continue
                parts.append((first, row.id, row.records))
                self._taken[row.id] = (first, row.records)
            return Batch(tuple(items), tuple(parts)) if parts else None

    def _choose(self, chosen: list[tuple[int, Row]], limit: int, *, newest: bool) -> None:
        have = sum(row.records for _, row in chosen)
        for first in sorted(self._files.days, reverse=newest):
            while have < limit or not chosen:
                passed = self._out(first) | {row.id for _, row in chosen}
                rows = self._on(first, lambda f, p=passed: f.rows(newest=newest, limit=_DROP_AT_ONCE, skip=p))  # type: ignore[misc]  # mypy cannot infer a lambda with defaults
                for row in rows:
                    if chosen and have + row.records > limit:
                        return
                    chosen.append((first, row))
                    have += row.records
                if len(rows) < _DROP_AT_ONCE:
                    break

    def _out(self, first: int) -> set[int]:
        """Ids that are not to be had: given out, or settled but not yet removed."""
        return self._taken.keys() | {blob for blob, _, _ in self._settled.get(first, ())}

    def reject(self, batch: Batch, seq: int, reason: str) -> None:
        """Note that the record numbered ``seq`` of ``batch`` is not wanted; ``acknowledge`` puts it into quarantine."""
        batch.rejected[seq] = reason

    def acknowledge(self, batch: Batch) -> None:
        """The gateway has every record of ``batch`` that was not rejected. The rejected ones are in quarantine on return; the
        removal is durable with the next ``append`` or ``flush``: a crash before it sends them again, which is harmless."""
        rejected = [(item, batch.rejected[item.seq]) for item in batch.items if item.seq in batch.rejected]
        with self._lock:
            try:
                quarantine(self.folder / "quarantine", rejected)
            except OSError as error:
                self.release(batch)
                raise _full(self.folder, error) from error
            refused = {item.seq for item, _ in rejected}
            for first, blob, records in batch.parts:
                count = sum(1 for seq in refused if blob <= seq < blob + records)
                self._taken.pop(blob, None)
                self._orphans.discard(blob)
                self._settled.setdefault(first, []).append((blob, records - count, count))
            if rejected:
                self._notices.append(
                    Notice("record_rejected", f"{len(rejected)} records rejected, first: {rejected[0][1]}")
                )

    def release(self, batch: Batch) -> None:
        """``batch`` could not be sent: it waits again."""
        with self._lock:
            for first, blob, records in batch.parts:
                self._taken.pop(blob, None)
                if blob in self._orphans:  # its file was damaged while it was out
                    self._orphans.discard(blob)
                    self._drop(
                        first, [(blob, records)], f"{records} records were lost by damage while they were being sent"
                    )

    def flush(self) -> None:
        """Make durable what was acknowledged. SpoolFullError as ``append``."""
        with self._lock:
            self._settle()

    def _settle(self) -> None:
        for first, settled in list(self._settled.items()):

            def remove(file: DayFile, settled: list[tuple[int, int, int]] = settled) -> None:
                tally = file.tally.copy()
                tally.sent += sum(sent for _, sent, _ in settled)
                tally.rejected += sum(rejected for _, _, rejected in settled)
                file.commit(tally, remove=[blob for blob, _, _ in settled])

            self._on(first, remove)
            del self._settled[first]
        try:
            self._files.fold_empty()
        except OSError as error:
            raise _full(self.folder, error) from error

    # --- room -------------------------------------------------------------------------------------------------------

    def _enforce(self) -> None:
        """Drop while there is too much: oldest first, ``KEPT_LONGEST`` last."""
        lost = 0
        for kept in (False, True):
            for first in sorted(self._files.days):
                while self.used_bytes() > self._limit:
                    out = self._out(first)
                    blobs = self._on(first, lambda f, k=kept, o=out: f.droppable(k, _DROP_AT_ONCE, o))  # type: ignore[misc]  # as above
                    if not blobs:
                        break
                    self._drop(first, blobs, None)
                    lost += sum(records for _, records in blobs)
        if lost:
            for first in self._files.days:
                self._on(first, DayFile.give_back)
            self._notices.append(
                Notice("spool_dropped", f"{lost} records dropped: the spool is larger than {self._limit} bytes")
            )

    def _drop(self, first: int, blobs: Iterable[tuple[int, int]], why: str | None) -> None:
        gone = list(blobs)

        def remove(file: DayFile) -> None:
            tally = file.tally.copy()
            tally.dropped += sum(records for _, records in gone)
            file.commit(tally, remove=[blob for blob, _ in gone])

        self._on(first, remove)
        if why:
            self._notices.append(Notice("spool_dropped", why))

    # --- state ------------------------------------------------------------------------------------------------------

    def counts(self) -> Counts:
        """What became of every record so far; what was acknowledged counts at once."""
        with self._lock:
            counted = self._files.counts()
            settled = [s for parts in self._settled.values() for s in parts]
            return Counts(
                counted.made,
                counted.sent + sum(sent for _, sent, _ in settled),
                counted.rejected + sum(rejected for _, _, rejected in settled),
                counted.dropped,
                counted.by_measurement,
            )

    def used_bytes(self) -> int:
        """Bytes of the records on disk with their database, without its free pages."""
        with self._lock:
            return sum(self._on(first, DayFile.used_bytes) for first in list(self._files.days))

    def oldest_s(self) -> float | None:
        """Age of the oldest record not yet acknowledged, in seconds of the clock; None when there is none."""
        with self._lock:
            for first in sorted(self._files.days):
                written = self._on(first, DayFile.oldest_utc_ns)
                if written is not None:
                    return max(0.0, (self._utc_ns() - written) / 1e9)
        return None

    def notices(self) -> list[Notice]:
        """What happened since the last call, for event records and the log."""
        with self._lock:
            found, self._notices[:] = list(self._notices), []
            return found

    def close(self) -> None:
        """Flush and close. What is given out waits again when the spool is opened the next time."""
        with self._lock:
            try:
                self._settle()
            finally:
                self._files.close()
                os.close(self._lock_fd)

    def _on(self, first: int, action: Callable[[DayFile], _T]) -> _T:
        """Do ``action`` on a file; when it proves damaged, salvage it first and do it on what is left."""
        try:
            return action(self._files.days[first])
        except sqlite3.Error as error:
            if says_full(error):
                raise _full(self.folder, error) from error
            if not says_damaged(error):
                raise
            self._rebuild(first, str(error))
            return action(self._files.days[first])

    def _rebuild(self, first: int, why: str) -> None:
        out = {blob: records for blob, (file, records) in self._taken.items() if file == first}
        settled = {blob: sent + rejected for blob, sent, rejected in self._settled.get(first, ())}
        try:
            saved = self._files.replace_damaged(first, why, out | settled)
        except OSError as refused:
            raise _full(self.folder, refused) from refused
        self._orphans |= out.keys() - saved


def _full(folder: Path, error: Exception) -> SpoolFullError:
    return SpoolFullError(f"{folder}: {error}; mend: free disk space; measuring goes on, records wait in memory")
