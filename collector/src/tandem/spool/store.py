"""The files with what is given out of them: changes to a file, and its mending when it proves damaged on the way."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from tandem.spool.blob import Item
from tandem.spool.dayfile import DayFile, Row
from tandem.spool.errors import disk_refused, says_damaged, says_full
from tandem.spool.files import Files
from tandem.spool.notices import Notices
from tandem.spool.outstanding import Outstanding

_T = TypeVar("_T")


class Store:
    """Not safe for several threads: the spool locks. Every method raises SpoolFullError when the disk takes nothing."""

    def __init__(self, folder: Path, noted: tuple[int, bool]) -> None:
        """``noted``: see ``witness``. Raises sqlite3.Error and OSError as they come."""
        self.folder = folder
        self.notices = Notices()
        self.out = Outstanding()
        self.files = Files(folder, self.notices, noted)

    def current(self, day: str) -> int:
        """See ``Files``."""
        try:
            return self.files.current(day)
        except (OSError, sqlite3.Error) as error:  # a new day's file that the disk does not take
            raise disk_refused(self.folder, error) from error

    def put(self, first: int, rows: Sequence[Row], made: Mapping[str, int], last: int, dropped: int) -> None:
        """``rows`` into the file ``first``, and what is settled out of it: one commit. ``last``: the last number in ``rows``."""
        settled = self.out.settled.get(first, [])

        def change(file: DayFile) -> None:
            tally = file.tally.copy()
            tally.last = last
            tally.dropped += dropped
            for measurement, count in made.items():
                tally.made[measurement] = tally.made.get(measurement, 0) + count
            tally.sent += sum(sent for _, sent, _ in settled)
            tally.rejected += sum(rejected for _, _, rejected in settled)
            file.commit(tally, add=rows, remove=[blob for blob, _, _ in settled])

        self.on(first, change)
        self.out.settled.pop(first, None)

    def settle(self, *, durably: bool = False) -> None:
        """Take out of all files what is settled. ``durably``: on disk on return, also in files that take no new records."""
        for first, settled in list(self.out.settled.items()):

            def remove(file: DayFile, settled: list[tuple[int, int, int]] = settled) -> None:
                tally = file.tally.copy()
                tally.sent += sum(sent for _, sent, _ in settled)
                tally.rejected += sum(rejected for _, _, rejected in settled)
                if durably:
                    file.sync_each(each=True)
                file.commit(tally, remove=[blob for blob, _, _ in settled])

            self.on(first, remove)
            del self.out.settled[first]
        try:
            if durably:
                self.files.only_newest_syncs()
            self.files.fold_empty()
        except OSError as error:
            raise disk_refused(self.folder, error) from error

    def drop(self, first: int, blobs: Iterable[tuple[int, int]]) -> int:
        """Give blobs (id and records) of the file ``first`` up; how many records that are."""
        gone = dict(blobs)

        def remove(file: DayFile) -> int:
            # A file that was mended on the way has counted what it lost.
            there = gone.keys() & set(file.ids())
            tally = file.tally.copy()
            lost = sum(gone[blob] for blob in there)
            tally.dropped += lost
            file.commit(tally, remove=there)
            return lost

        return self.on(first, remove)

    def lose(self, first: int, records: int, why: str) -> None:
        """``records`` that count as pending in the file ``first`` are nowhere: count them as dropped."""

        def count(file: DayFile) -> None:
            tally = file.tally.copy()
            tally.dropped += records
            file.commit(tally)

        self.on(first, count)
        self.notices.say("spool_dropped", f"{records} {why}")

    def read(
        self, place: tuple[int, int, int | None], limit: int, passed: set[int], *, newest: bool
    ) -> list[tuple[Row, list[Item]]]:
        """At most ``limit`` whole blobs from one end of ``place`` (a file and a range of numbers, see ``passing.places``), without those
        of the ids ``passed``."""
        first, low, high = place
        found = self.on(first, lambda file: [(row, row.items()) for row in file.rows(newest, limit, passed, low, high)])
        whole = low <= first and (high is None or high >= self.files.days[first].tally.last)
        if not found and whole:
            # All of it is in the caller's hands; what else counts as pending went with a page that nobody missed.
            known = self.out.elsewhere(first)
            missing = self.files.days[first].tally.pending - sum(known.values())
            if missing > 0 and passed <= known.keys():
                self.lose(first, missing, "records were in no page of their file any more")
        return found

    def used_bytes(self) -> int:
        """Bytes of the records on disk with their database, without its free pages."""
        return sum(self.on(first, DayFile.used_bytes) for first in list(self.files.days))

    def on(self, first: int, action: Callable[[DayFile], _T]) -> _T:
        """Do ``action`` on a file; when it proves damaged, salvage it first and do it on what is left."""
        if self.files.days[first].closed:
            self._rebuild(first, "it could not be mended before")
        try:
            return action(self.files.days[first])
        except (sqlite3.Error, OverflowError) as error:
            if isinstance(error, sqlite3.Error) and not says_damaged(error):
                if says_full(error):
                    raise disk_refused(self.folder, error) from error
                raise
            self._rebuild(first, str(error))
        try:
            return action(self.files.days[first])
        except sqlite3.Error as error:
            if says_full(error) or says_damaged(error):
                raise disk_refused(self.folder, error) from error
            raise

    def _rebuild(self, first: int, why: str) -> None:
        try:
            saved = self.files.replace_damaged(first, why, self.out.elsewhere(first))
        except (OSError, sqlite3.Error) as refused:
            raise disk_refused(self.folder, refused) from refused
        self.out.saved(first, saved)
