"""The spool's daily files and the account of those that are gone."""

from __future__ import annotations

import re
import sqlite3
import time
from pathlib import Path

from tandem.spool.account import Account
from tandem.spool.counts import Counts, Tally
from tandem.spool.dayfile import SUFFIXES, UNFINISHED, DayFile, make, name_of
from tandem.spool.durable import sync_folder
from tandem.spool.errors import says_damaged
from tandem.spool.notices import Notices
from tandem.spool.quarantine import Quarantine
from tandem.spool.salvage import reckon, salvage

_NAME = re.compile(r"([0-9]{12})-([0-9]{8})(?:-([0-9]{1,6}))?\.sqlite\Z")
"""First number, day, generation. What is named otherwise is not ours."""


class Files:
    """All files of ``folder``, open; ``days``: by the first number in each. Raises sqlite3.Error and OSError as they come."""

    def __init__(self, folder: Path, notices: Notices, noted: tuple[int, bool] = (0, False)) -> None:
        """``noted``: see ``witness``."""
        self._folder, self._notices = folder, notices
        self.quarantine = Quarantine(folder / "quarantine")
        self.days: dict[int, DayFile] = {}
        self.account, complaints = Account.read(folder)
        for complaint in complaints:
            notices.say("spool_dropped", f"a copy of the spool's account was damaged and is written anew: {complaint}")
        self.account.reserved = max(self.account.reserved, noted[0])
        try:
            self._open_all()
            self._close_holes(account_lost=len(complaints) == 2)
            self._close_end(*noted)
            if complaints:
                self.account.write()
            self.only_newest_syncs()
        except BaseException:
            self.close()
            raise

    def _open_all(self) -> None:
        for path in self._folder.glob(f"*.sqlite{UNFINISHED}*"):
            path.unlink()
        found: dict[int, list[tuple[int, Path]]] = {}
        for path in self._folder.glob("*.sqlite"):
            name = _NAME.match(path.name)
            if name is None:
                continue
            if path.name in self.account.gone:
                _unlink(path)
            else:
                found.setdefault(int(name[1]), []).append((int(name[3] or 0), path))
        firsts = sorted(found)
        for number, first in enumerate(firsts):
            *earlier, (_, path) = sorted(found[first])
            for _, replaced in earlier:  # a power cut came between writing it anew and putting it away
                self._put_away(replaced)
            self._open(path, first, firsts[number + 1] if number + 1 < len(firsts) else None)
        self.account.gone.clear()
        newest = self.account.newest
        if newest and newest not in self.days and newest > max(self.days, default=0):
            self._missed(newest)

    def _open(self, path: Path, first: int, following: int | None) -> None:
        try:
            self.days[first] = DayFile(path)
        except sqlite3.Error as error:
            if not says_damaged(error):
                raise
            self._rebuild(path, first, None, following, str(error))

    def _missed(self, first: int) -> None:
        """The newest file is not there: which of the reserved numbers were in it nobody can tell, and none may be used again."""
        tally, lost = reckon(first, [], None, self.account.reserved, 0)
        path = self._folder / name_of(first, time.strftime("%Y%m%d", time.gmtime()))
        make(path, first, (), tally)
        sync_folder(self._folder)
        self.days[first] = DayFile(path)
        self._notices.say("spool_dropped", f"the newest file of the spool is not there: up to {lost} records lost")

    def _close_holes(self, *, account_lost: bool) -> None:
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
                self._notices.say("spool_dropped", f"{missing} records are gone with a file of the spool")
            self.account.write()

    def _close_end(self, noted: int, exact: bool) -> None:
        """Numbers that were given out and that the newest file does not know of: the end of its log is lost."""
        if noted <= self.last:
            return
        upto = noted if exact else self.account.reserved
        if not self.days:
            self._missed(self.last + 1)
            return
        day = self.days[max(self.days)]
        tally = day.tally.copy()
        lost = upto - self.last
        tally.last += lost
        tally.dropped += lost
        day.commit(tally)
        self._notices.say("spool_dropped", f"up to {lost} records lost: the end of {day.path.name} is damaged")

    def only_newest_syncs(self) -> None:
        """One sync a commit is enough: see ``DayFile.sync_each``."""
        newest = max(self.days, default=0)
        for first, day in self.days.items():
            day.sync_each(each=first == newest)

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
            self.account.forgotten,
            self.account.forgotten_files,
        )

    def current(self, day: str) -> int:
        """The key in ``days`` of the file that takes records on ``day`` (YYYYMMDD); made when the day has changed."""
        if self.days:
            newest = self.days[max(self.days)]
            if newest.day == day or newest.tally.last < newest.tally.first:
                return max(self.days)
        first = self.last + 1
        path = self._folder / name_of(first, day)
        if not path.exists():  # it may: its name was refused to the account the last time
            make(path, first)
            sync_folder(self._folder)
        self.account.newest = first
        self.account.write()
        self.days[first] = DayFile(path)
        self.only_newest_syncs()
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

    def forget(self, rejected: int = 0, files: int = 0) -> None:
        """Count what had to leave the quarantine."""
        if rejected or files:
            self.account.forgotten += rejected
            self.account.forgotten_files += files
            self.account.write()

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
        """``known``: the counts, where the file was open; ``following``: the first number of the next file.

        The new file is whole before it has its name, a name of its own: whenever the power is cut, one of the two is there whole.
        """
        top = self.account.reserved if following is None else following - 1
        rows, read = salvage(path, first, known.last if known else top or None)
        ids = {row.id for row in rows}
        out = sum(n for blob, n in (elsewhere or {}).items() if blob not in ids)
        tally, lost = reckon(first, rows, known or read, top, out)
        name = _NAME.match(path.name)
        assert name is not None, path  # only such files were opened  # noqa: S101
        renewed = self._folder / name_of(first, name[2], int(name[3] or 0) + 1)
        make(renewed, first, rows, tally)
        sync_folder(self._folder)
        self.days[first] = DayFile(renewed)
        self.only_newest_syncs()
        self._put_away(path)
        saved = sum(row.records for row in rows)
        what = f"{path.name} was damaged ({why}): {saved} records saved, {lost} lost, in quarantine"
        self._notices.say("spool_dropped", what)
        return ids

    def _put_away(self, path: Path) -> None:
        parts = [path.with_name(path.name + suffix) for suffix in SUFFIXES]
        self.forget(files=self.quarantine.put(parts))

    def close(self) -> None:
        """Close all files."""
        for day in self.days.values():
            if not day.closed:
                day.close()


def _unlink(path: Path) -> None:
    for suffix in reversed(SUFFIXES):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
