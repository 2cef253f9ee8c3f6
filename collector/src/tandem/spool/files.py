"""The spool's daily files and the account of those that are gone."""

from __future__ import annotations

import sqlite3
import time
from dataclasses import dataclass
from pathlib import Path

from tandem.spool.account import Account
from tandem.spool.counts import Counts, Tally
from tandem.spool.dayfile import SUFFIXES, UNFINISHED, DayFile, Row, name_of
from tandem.spool.durable import sync_folder
from tandem.spool.errors import says_damaged
from tandem.spool.salvage import salvage

_REWRITE = 256
"""Blobs of one transaction when what was salvaged is written anew."""


@dataclass(frozen=True, slots=True)
class Notice:
    """Something people should know: ``kind`` is one of ``schema.metrics.EVENT_KINDS``."""

    kind: str
    detail: str


class Files:
    """All files of ``folder``, open; ``days``: by the first number in each. Raises sqlite3.Error and OSError as they come."""

    def __init__(self, folder: Path, notices: list[Notice]) -> None:
        self._folder, self._notices = folder, notices
        self.days: dict[int, DayFile] = {}
        account_lost = self._read_account()
        for path in folder.glob(f"*.sqlite{UNFINISHED}*"):
            path.unlink()
        paths = sorted(folder.glob("*.sqlite"))
        for number, path in enumerate(paths):
            if path.name in self.account.gone:
                _unlink(path)
                continue
            following = _first_of(paths[number + 1]) if number + 1 < len(paths) else None
            self._open(path, following)
        self.account.gone.clear()
        self._close_holes(account_lost)

    def _read_account(self) -> bool:
        path = self._folder / "account.json"
        try:
            self.account = Account.read(path)
        except ValueError as error:
            path.replace(self._quarantine() / f"account-{time.time_ns()}.json")
            self._notices.append(Notice("spool_dropped", f"the spool's account was damaged and begins anew: {error}"))
            self.account = Account(path)
            return True
        return False

    def _open(self, path: Path, following: int | None) -> None:
        first = _first_of(path)
        try:
            self.days[first] = DayFile(path)
        except sqlite3.Error as error:
            if not says_damaged(error):
                raise
            self._rebuild(path, first, None, following, str(error))

    def _close_holes(self, account_lost: bool) -> None:
        """Numbers that no file and no account knows of: a file was deleted, or the account was damaged."""
        top = max((day.tally.last for day in self.days.values()), default=0)
        missing = top - self.counts().made
        if missing > 0:
            # Files go only when all in them is settled, so with a lost account these were settled, most of them sent.
            self.account.folded.last += missing
            if account_lost:
                self.account.folded.sent += missing
            else:
                self.account.folded.dropped += missing
                self._notices.append(Notice("spool_dropped", f"{missing} records are gone with a file of the spool"))
            self.account.write()

    @property
    def last(self) -> int:
        """The last number given out; 0 at the beginning. Numbers have no gaps, so it is the count of all made."""
        return self.counts().made

    def counts(self) -> Counts:
        """Over all files, there and gone, as committed."""
        tallies = [self.account.folded, *(day.tally for day in self.days.values())]
        made: dict[str, int] = {}
        for tally in tallies:
            for name, count in tally.made.items():
                made[name] = made.get(name, 0) + count
        return Counts(
            sum(t.last - t.first + 1 for t in tallies),
            sum(t.sent for t in tallies),
            sum(t.rejected for t in tallies),
            sum(t.dropped for t in tallies),
            made,
        )

    def current(self, day: str) -> int:
        """The key in ``days`` of the file that takes records on ``day`` (YYYYMMDD); made when the day has changed."""
        if self.days:
            newest = self.days[max(self.days)]
            if newest.day == day or newest.tally.last < newest.tally.first:
                return max(self.days)
        first = self.last + 1
        self.days[first] = DayFile(self._folder / name_of(first, day), first)
        sync_folder(self._folder)
        return first

    def fold_empty(self) -> None:
        """Delete files, except the newest, in which nothing waits."""
        for first in sorted(self.days)[:-1]:
            day = self.days[first]
            if day.tally.pending == 0:
                self.account.fold(day.path.name, day.tally)
                # Out of the days before anything can fail: counted twice it would never be again.
                del self.days[first]
                self.account.write()
                day.delete()

    def replace_damaged(self, first: int, why: str, elsewhere: dict[int, int]) -> set[int]:
        """Move an open file that proved damaged to quarantine and write what can be read of it anew; the blobs saved.

        ``elsewhere``: blobs (with their records) that the caller has in memory or has settled: they are not lost.
        """
        day = self.days[first]
        day.close()
        return self._rebuild(day.path, first, day.tally, None, why, elsewhere)

    def _rebuild(
        self,
        path: Path,
        first: int,
        known: Tally | None,
        following: int | None,
        why: str,
        elsewhere: dict[int, int] | None = None,
    ) -> set[int]:
        """``known``: the counts, where the file was open; ``following``: the first number of the next file."""
        moved = self._quarantine() / f"{path.name}.damaged-{time.time_ns()}"
        for suffix in SUFFIXES:
            source = path.with_name(path.name + suffix)
            if source.exists():
                source.replace(moved.with_name(moved.name + suffix))
        rows, read = salvage(moved)
        tally = self._reckon(first, rows, known or read, following)
        saved = sum(row.records for row in rows)
        ids = {row.id for row in rows}
        lost = tally.pending - saved - sum(n for blob, n in (elsewhere or {}).items() if blob not in ids)
        tally.dropped += lost
        day = DayFile(path, first)
        for start in range(0, len(rows), _REWRITE):
            day.commit(day.tally, add=rows[start : start + _REWRITE])
        day.commit(tally)
        self.days[first] = day
        sync_folder(self._folder)
        self._notices.append(
            Notice(
                "spool_dropped", f"{path.name} was damaged ({why}): {saved} records saved, {lost} lost, in quarantine"
            )
        )
        return ids

    def _reckon(self, first: int, rows: list[Row], tally: Tally | None, following: int | None) -> Tally:
        """The counts of a damaged file, before what is lost is counted as dropped."""
        saved = sum(row.records for row in rows)
        highest = max((row.id + row.records - 1 for row in rows), default=first - 1)
        if tally is None:
            # Nobody can tell what was sent; no number given out may be given out again.
            last = max(highest, self.account.reserved if following is None else following - 1)
            return Tally(first, last)
        tally = tally.copy()
        tally.last = max(tally.last, highest)
        if saved > tally.pending:
            tally.sent = max(
                0, tally.sent - (saved - tally.pending)
            )  # rows whose removal was lost: they are sent again
        return tally

    def _quarantine(self) -> Path:
        folder = self._folder / "quarantine"
        folder.mkdir(exist_ok=True)
        return folder

    def close(self) -> None:
        """Close all files."""
        for day in self.days.values():
            if not day.closed:
                day.close()


def _first_of(path: Path) -> int:
    number = path.name.partition("-")[0]
    if not number.isdigit():
        raise OSError(f"{path.name} is no file of a spool")
    return int(number)


def _unlink(path: Path) -> None:
    for suffix in reversed(SUFFIXES):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
