"""The queue itself: numbers records, keeps them on disk, hands them out, counts what became of each."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from tandem.schema.record import Record
from tandem.spool.account import RESERVE
from tandem.spool.blob import BLOB_RECORDS, KEPT_LONGEST, Item, beginning, pack
from tandem.spool.counts import Counts
from tandem.spool.dayfile import DayFile, Row
from tandem.spool.errors import SpoolBusyError, SpoolError, SpoolFullError, disk_refused
from tandem.spool.identity import identity
from tandem.spool.notices import Notice
from tandem.spool.outstanding import Batch
from tandem.spool.passing import Range, places
from tandem.spool.room import make_room
from tandem.spool.store import Store
from tandem.spool.witness import note, noted

DEFAULT_LIMIT_BYTES = 1 << 29
_READ_AT_ONCE = 32


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
        self.folder, self.limit_bytes, self._boot, self._utc_ns = folder, limit_bytes, boot, utc_ns
        self._lock = threading.RLock()
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
        try:
            self._store = Store(folder, noted(self._lock_fd, boot))
            self.identity = identity(folder, self._store.files.last)
        except (OSError, sqlite3.Error) as error:
            os.close(self._lock_fd)
            raise SpoolError(f"{folder}: {error}; mend: free disk space, or move the folder away") from error

    # --- in ---------------------------------------------------------------------------------------------------------

    def append(self, records: Sequence[Record], dropped: int = 0) -> None:
        """Number the records and store them: on disk on return. ``dropped``: so many before them were given up already.

        One commit with what was acknowledged since, so call it about once a second with all there is. Events and summaries have the
        first of the numbers. SpoolFullError when the disk takes nothing; the records then have no numbers and stay with the caller.
        """
        with self._lock:
            if not records and not dropped:
                self._store.settle()
                return
            first = self._store.current(time.strftime("%Y%m%d", time.gmtime(self._utc_ns() / 1e9)))
            last = self._store.files.last + dropped
            rows: list[Row] = []
            for kept in (True, False):
                chosen = [r for r in records if (r.measurement in KEPT_LONGEST) == kept]
                for start in range(0, len(chosen), BLOB_RECORDS):
                    part = chosen[start : start + BLOB_RECORDS]
                    items = [Item(last + 1 + n, self._boot, record) for n, record in enumerate(part)]
                    last += len(items)
                    rows.append(Row(items[0].seq, len(items), kept, self._utc_ns(), pack(items)))
            self._reserve(last)
            self._store.put(first, rows, Counter(record.measurement for record in records), last, dropped)
            note(self._lock_fd, last, self._boot)
            if dropped:
                what = f"{dropped} records did not fit into memory while the disk was full"
                self._store.notices.say("spool_dropped", what)
            with contextlib.suppress(SpoolFullError):
                # The records are stored: a disk too full for the rest must not have the caller append them again.
                self._store.settle()
                make_room(self._store, self.limit_bytes)

    def _reserve(self, last: int) -> None:
        account = self._store.files.account
        if last > account.reserved:
            before, account.reserved = account.reserved, last + RESERVE
            try:
                account.write()
            except OSError as error:
                account.reserved = before
                raise disk_refused(self.folder, error) from error

    # --- out --------------------------------------------------------------------------------------------------------

    def take(self, limit: int, *, newest_only: bool = False, passing: Sequence[Range] = ()) -> Batch | None:
        """About ``limit`` records at most (whole blobs, one at least), or None when nothing waits. ``passing``: the numbers of whole
        boots that are passed over, in order.

        Half of it from the newest end, newest first, so that a person sees now; the rest from the oldest, so that no backlog
        starves (``newest_only``: nothing from the oldest). What is out is not given out again until it is released.
        """
        with self._lock:
            parts: list[tuple[int, int, int]] = []
            items: list[Item] = []
            try:
                for most, newest in ((limit, True),) if newest_only else ((limit // 2, True), (limit, False)):
                    for place in places(self._store.files.days, passing, newest=newest):
                        if self._choose(parts, items, most, newest, place):
                            break
            except BaseException:
                for first, blob, records in parts:
                    self._release(first, blob, records)
                raise
            return Batch(tuple(items), tuple(parts)) if parts else None

    def _choose(
        self,
        parts: list[tuple[int, int, int]],
        items: list[Item],
        most: int,
        newest: bool,
        place: tuple[int, int, int | None],
    ) -> bool:
        """Add blobs of one file's range of numbers (``passing.places``); whether that is enough."""
        out, first = self._store.out, place[0]
        while len(items) < most or not parts:
            found = self._store.read(place, _READ_AT_ONCE, out.of(first), newest=newest)
            for row, its in found:
                if parts and len(items) + row.records > most:
                    return True
                out.take(first, row.id, row.records)
                parts.append((first, row.id, row.records))
                items.extend(its)
            if len(found) < _READ_AT_ONCE:
                return False
        return True

    def reject(self, batch: Batch, seq: int, reason: str) -> None:
        """Note that the record numbered ``seq`` of ``batch`` is not wanted; ``acknowledge`` puts it into quarantine."""
        batch.rejected[seq] = reason

    def acknowledge(self, batch: Batch) -> None:
        """The gateway has every record of ``batch`` that was not rejected. The rejected ones are in quarantine on return; the
        removal is durable with a later commit: a crash before it sends them again, which is harmless."""
        rejected = [(item, batch.rejected[item.seq]) for item in batch.items if item.seq in batch.rejected]
        with self._lock:
            try:
                self._store.files.forget(rejected=self._store.files.quarantine.reject(rejected))
            except OSError as error:
                self.release(batch)
                raise disk_refused(self.folder, error) from error
            for first, blob, records in batch.parts:
                count = sum(1 for item, _ in rejected if blob <= item.seq < blob + records)
                self._store.out.settle(first, blob, records - count, count)
            if rejected:
                self._store.notices.add("record_rejected", len(rejected), "records rejected", rejected[0][1])

    def release(self, batch: Batch) -> None:
        """``batch`` could not be sent: it waits again."""
        with self._lock:
            for first, blob, records in batch.parts:
                self._release(first, blob, records)

    def _release(self, first: int, blob: int, records: int) -> None:
        if not self._store.out.release(blob):
            self._store.lose(first, records, "records were lost by damage while they were being sent")

    def flush(self) -> None:
        """Make durable what was acknowledged. SpoolFullError as ``append``."""
        with self._lock:
            self._store.settle(durably=True)

    # --- state ------------------------------------------------------------------------------------------------------

    def counts(self) -> Counts:
        """What became of every record so far; what was acknowledged counts at once."""
        with self._lock:
            return self._store.out.counted(self._store.files.counts())

    def settled(self) -> int:
        """Every number up to this one is sent, rejected or dropped; 0 when not even the first is."""
        with self._lock:
            lowest = (self._store.on(first, DayFile.lowest) for first in sorted(self._store.files.days))
            return next((low - 1 for low in lowest if low is not None), self._store.files.last)

    def used_bytes(self) -> int:
        """Bytes of the records on disk with their database, without its free pages."""
        with self._lock:
            return self._store.used_bytes()

    def oldest(self) -> tuple[str, int] | None:
        """The boot of the oldest records not yet acknowledged, and their least CLOCK_MONOTONIC ns; None when there are none, or they
        cannot be read (the next ``take`` sees to that)."""
        with self._lock:
            bodies = (self._store.on(first, DayFile.oldest) for first in sorted(self._store.files.days))
            return next((beginning(body) for body in bodies if body is not None), None)

    def notices(self) -> list[Notice]:
        """What happened since the last call, for event records and the log."""
        with self._lock:
            return self._store.notices.collect()

    def close(self) -> None:
        """Flush and close. What is given out waits again when the spool is opened the next time."""
        with self._lock:
            try:
                self._store.settle()
            finally:
                self._store.files.close()
                os.close(self._lock_fd)
