"""The queue itself: numbers records, keeps them on disk, hands them out, counts what became of each."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from tandem.schema.record import Record
from tandem.spool.account import RESERVE
from tandem.spool.blob import BLOB_RECORDS, KEPT_LONGEST, BlobError, Item, pack, unpack
from tandem.spool.counts import Counts
from tandem.spool.dayfile import DayFile, Row
from tandem.spool.errors import SpoolBusyError, SpoolError, SpoolFullError, disk_refused, says_damaged, says_full
from tandem.spool.files import Files, Notice
from tandem.spool.outstanding import Batch, Outstanding
from tandem.spool.quarantine import quarantine

DEFAULT_LIMIT_BYTES = 1 << 29
_DROP_AT_ONCE = 32
_T = TypeVar("_T")


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
        self._out = Outstanding()
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
            try:
                first = self._files.current(time.strftime("%Y%m%d", time.gmtime(self._utc_ns() / 1e9)))
            except (OSError, sqlite3.Error) as error:  # a new day's file that the disk does not take
                raise disk_refused(self.folder, error) from error
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
                what = f"{dropped} records did not fit into memory while the disk was full"
                self._notices.append(Notice("spool_dropped", what))
            with contextlib.suppress(SpoolFullError):
                # The records are stored: a disk too full to make room must not have the caller append them again.
                self._enforce()

    def _reserve(self, last: int) -> None:
        account = self._files.account
        if last > account.reserved:
            before, account.reserved = account.reserved, last + RESERVE
            try:
                account.write()
            except OSError as error:
                account.reserved = before
                raise disk_refused(self.folder, error) from error

    # --- out --------------------------------------------------------------------------------------------------------

    def take(self, limit: int, *, newest_only: bool = False) -> Batch | None:
        """About ``limit`` records at most (whole blobs, one at least), or None when nothing waits.

        Half of it from the newest end, newest first, so that a person sees now; the rest from the oldest, so that no backlog
        starves (``newest_only``: nothing from the oldest). What is out is not given out again until it is released.
        """
        with self._lock:
            chosen: list[tuple[int, Row]] = []
            for most, newest in ((limit, True),) if newest_only else ((limit // 2, True), (limit, False)):
                self._choose(chosen, most, newest=newest)
            items: list[Item] = []
            parts: list[tuple[int, int, int]] = []
            for first, row in chosen:
                try:
                    items.extend(unpack(row.body))
                except BlobError as error:
                    self._drop(first, [(row.id, row.records)], f"{row.records} records were unreadable: {error}")
                    continue
                parts.append((first, row.id, row.records))
                self._out.take(first, row.id, row.records)
            return Batch(tuple(items), tuple(parts)) if parts else None

    def _choose(self, chosen: list[tuple[int, Row]], limit: int, *, newest: bool) -> None:
        have = sum(row.records for _, row in chosen)
        for first in sorted(self._files.days, reverse=newest):
            while have < limit or not chosen:
                passed = self._out.of(first) | {row.id for _, row in chosen}
                rows = self._on(first, lambda f, p=passed: f.rows(newest=newest, limit=_DROP_AT_ONCE, skip=p))  # type: ignore[misc]  # mypy cannot infer a lambda with defaults
                for row in rows:
                    if chosen and have + row.records > limit:
                        return
                    chosen.append((first, row))
                    have += row.records
                if len(rows) < _DROP_AT_ONCE:
                    break

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
                raise disk_refused(self.folder, error) from error
            for first, blob, records in batch.parts:
                count = sum(1 for item, _ in rejected if blob <= item.seq < blob + records)
                self._out.settle(first, blob, records - count, count)
            if rejected:
                what = f"{len(rejected)} records rejected, first: {rejected[0][1]}"
                self._notices.append(Notice("record_rejected", what))

    def release(self, batch: Batch) -> None:
        """``batch`` could not be sent: it waits again."""
        with self._lock:
            for first, blob, records in batch.parts:
                if not self._out.release(blob):
                    why = f"{records} records were lost by damage while they were being sent"
                    self._drop(first, [(blob, records)], why)

    def flush(self) -> None:
        """Make durable what was acknowledged. SpoolFullError as ``append``."""
        with self._lock:
            self._settle()

    def _settle(self) -> None:
        for first, settled in list(self._out.settled.items()):

            def remove(file: DayFile, settled: list[tuple[int, int, int]] = settled) -> None:
                tally = file.tally.copy()
                tally.sent += sum(sent for _, sent, _ in settled)
                tally.rejected += sum(rejected for _, _, rejected in settled)
                file.commit(tally, remove=[blob for blob, _, _ in settled])

            self._on(first, remove)
            del self._out.settled[first]
        try:
            self._files.fold_empty()
        except OSError as error:
            raise disk_refused(self.folder, error) from error

    # --- room -------------------------------------------------------------------------------------------------------

    def _enforce(self) -> None:
        """Drop while there is too much: oldest first, ``KEPT_LONGEST`` last."""
        lost = 0
        for kept in (False, True):
            for first in sorted(self._files.days):
                while self.used_bytes() > self._limit:
                    out = self._out.of(first)
                    blobs = self._on(first, lambda f, k=kept, o=out: f.droppable(k, _DROP_AT_ONCE, o))  # type: ignore[misc]  # as above
                    if not blobs:
                        break
                    self._drop(first, blobs, None)
                    lost += sum(records for _, records in blobs)
        if lost:
            for first in self._files.days:
                self._on(first, DayFile.give_back)
            what = f"{lost} records dropped: the spool is larger than {self._limit} bytes"
            self._notices.append(Notice("spool_dropped", what))

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
            settled = [s for parts in self._out.settled.values() for s in parts]
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
                raise disk_refused(self.folder, error) from error
            if not says_damaged(error):
                raise
            self._rebuild(first, str(error))
            return action(self._files.days[first])

    def _rebuild(self, first: int, why: str) -> None:
        try:
            saved = self._files.replace_damaged(first, why, self._out.elsewhere(first))
        except OSError as refused:
            raise disk_refused(self.folder, refused) from refused
        self._out.saved(first, saved)
