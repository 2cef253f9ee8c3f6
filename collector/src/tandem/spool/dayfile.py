"""One file of the spool: an SQLite database with the blobs of (at most) one day and that day's counts.

WAL with ``synchronous=FULL``: a commit is on disk when it returns. The counts are written in the same transaction as the rows
they count. The file's name carries the first number in it, so that the order of names is the order of records whatever the
clock did.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from tandem.spool.blob import BlobError, Item, unpack
from tandem.spool.counts import Tally
from tandem.spool.errors import DamagedError

SUFFIXES = ("", "-wal", "-shm")
UNFINISHED = ".new"
"""At the end of the name of a file that is being made."""

PAGE_BYTES = 512
"""Small pages, since a commit writes whole ones: 38 % fewer bytes a day than with 4096 (README, bytes written)."""

_SCHEMA = """
CREATE TABLE blob(id INTEGER PRIMARY KEY, records INTEGER NOT NULL, kept INTEGER NOT NULL, written_utc_ns INTEGER NOT NULL,
                  body BLOB NOT NULL);
CREATE TABLE count(name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
"""
_VERSION = 2
_LAST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Row:
    """A blob as stored. ``id``: the number of its first record; ``kept``: dropped last; ``body``: see ``blob``."""

    id: int
    records: int
    kept: bool
    written_utc_ns: int
    body: bytes

    def items(self) -> list[Item]:
        """Its records; DamagedError when they are not those that were put in under this number."""
        try:
            items = unpack(self.body)
        except BlobError as error:
            raise DamagedError(str(error)) from error
        if [item.seq for item in items] != list(range(self.id, self.id + self.records)) or not items:
            raise DamagedError(f"blob {self.id} holds other records")
        return items


def name_of(first: int, day: str, generation: int = 0) -> str:
    """The file's name; ``day`` as YYYYMMDD by the clock of that moment, for people; ``generation``: how often it was written anew."""
    return f"{first:012d}-{day}{f'-{generation}' if generation else ''}.sqlite"


class DayFile:
    """An open file. Every method raises sqlite3.Error as it comes; the spool knows what to make of it."""

    def __init__(self, path: Path) -> None:
        """Open ``path``. sqlite3.DatabaseError when it is no spool file."""
        self.path = path
        self.closed = False
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=10)
        try:
            self._db.execute("PRAGMA journal_mode=WAL")
            self.sync_each(each=True)
            self.tally = self._read_tally()
        except UnicodeDecodeError as error:
            self._db.close()
            raise DamagedError(str(error)) from error
        except BaseException:
            self._db.close()
            raise

    def sync_each(self, *, each: bool) -> None:
        """Whether a commit is on disk when it returns. Else a power cut may undo the last ones: for files that take no new records,
        since a record whose removal is undone is only sent again."""
        self._db.execute(f"PRAGMA synchronous={'FULL' if each else 'NORMAL'}")

    def _read_tally(self) -> Tally:
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if version != _VERSION:
            raise DamagedError(f"version {version} of the spool, expected {_VERSION}")
        try:
            tally = Tally.of_rows(self._db.execute("SELECT name, value FROM count").fetchall())
        except ValueError as error:
            raise DamagedError(str(error)) from error
        if tally.first != self.first or tally.last < tally.first - 1 or tally.pending < 0:
            raise DamagedError("counts that are not this file's")
        return tally

    @property
    def first(self) -> int:
        """The first number in it, by its name."""
        return int(self.path.name.partition("-")[0])

    @property
    def day(self) -> str:
        """YYYYMMDD, by the clock when the file was made."""
        return self.path.stem.split("-")[1]

    def commit(self, tally: Tally, add: Sequence[Row] = (), remove: Iterable[int] = ()) -> None:
        """Rows in, rows out, and the counts that then hold: all or nothing, on disk on return."""
        if tally.pending < 0:
            raise DamagedError(f"{-tally.pending} records more were settled than were there")
        self._db.execute("BEGIN IMMEDIATE")
        try:
            # First out, then in: the new ones take the pages that were given free, and the file does not grow.
            self._db.executemany("DELETE FROM blob WHERE id=?", [(i,) for i in remove])
            self._db.executemany(
                "INSERT INTO blob VALUES (?,?,?,?,?)",
                [(r.id, r.records, r.kept, r.written_utc_ns, r.body) for r in add],
            )
            self._db.executemany("INSERT OR REPLACE INTO count VALUES (?,?)", tally.rows())
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise
        self.tally = tally

    def rows(
        self, newest: bool, limit: int, skip: Iterable[int] = (), low: int = 0, high: int | None = None
    ) -> list[Row]:
        """At most ``limit`` blobs from one end, without those of the ids ``skip``; of the ids ``low`` to ``high`` only."""
        passed = set(skip)
        order = "DESC" if newest else "ASC"
        columns = "id, records, kept, written_utc_ns, body"
        found = self._db.execute(
            f"SELECT {columns} FROM blob WHERE id BETWEEN ? AND ? ORDER BY id {order} LIMIT ?",  # noqa: S608 words of our own
            (low, _LAST if high is None else high, limit + len(passed)),
        )
        return [self._row(row) for row in found if row[0] not in passed][:limit]

    def _row(self, row: tuple[object, ...]) -> Row:
        i, n, kept, written, body = row
        if not (type(i) is int and type(n) is int and type(written) is int and isinstance(body, bytes)):
            raise DamagedError("a row of wrong types")
        if not (self.tally.first <= i and 0 < n <= self.tally.last - i + 1):
            raise DamagedError(f"a row with the numbers {i} to {i + n - 1}, which are not this file's")
        return Row(i, n, bool(kept), written, body)

    def ids(self) -> list[int]:
        """Ids of all blobs."""
        return [i for (i,) in self._db.execute("SELECT id FROM blob")]

    def droppable(self, kept: bool, skip: Iterable[int], least_bytes: int) -> list[tuple[int, int]]:
        """Ids and record counts of the oldest blobs of one class, as many as hold ``least_bytes`` or all there are."""
        passed = set(skip)
        found, size = [], 0
        for i, n, length in self._db.execute(
            "SELECT id, records, length(body) FROM blob WHERE kept=? ORDER BY id", (int(kept),)
        ):
            if type(n) is not int or n <= 0 or type(length) is not int:
                raise DamagedError("a row of wrong types")
            if size >= least_bytes:
                break
            if i not in passed:
                found.append((i, n))
                size += length
        return found

    def oldest(self) -> bytes | None:
        """The oldest blob; None when there is none."""
        row = self._db.execute("SELECT body FROM blob ORDER BY id LIMIT 1").fetchone()
        return None if row is None else bytes(row[0])

    def lowest(self) -> int | None:
        """The first number of the first blob; None when there is none."""
        row = self._db.execute("SELECT min(id) FROM blob").fetchone()
        return None if row[0] is None else int(row[0])

    def used_bytes(self) -> int:
        """Size of the database without its free pages."""
        page, pages, free = (self._pragma(p) for p in ("page_size", "page_count", "freelist_count"))
        return page * (pages - free)

    def give_back(self) -> None:
        """Return free pages to the disk."""
        self._db.execute("PRAGMA incremental_vacuum").fetchall()
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def _pragma(self, name: str) -> int:
        return int(self._db.execute(f"PRAGMA {name}").fetchone()[0])

    def close(self) -> None:
        """Close; the WAL goes into the file."""
        self.closed = True
        self._db.close()

    def delete(self) -> None:
        """Close and remove the file."""
        self.close()
        for suffix in reversed(SUFFIXES):
            self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)


def make(path: Path, first: int, rows: Iterable[Row] = (), tally: Tally | None = None) -> None:
    """A file with ``rows`` and ``tally``, made beside its name and renamed: one without tables, or not whole, is damage then, never
    one cut off in the making. The folder is the caller's to sync. sqlite3.Error and OSError as they come."""
    draft = path.with_name(path.name + UNFINISHED)
    for suffix in ("", "-journal"):
        draft.with_name(draft.name + suffix).unlink(missing_ok=True)
    with closing(sqlite3.connect(draft, isolation_level=None)) as db:
        db.execute(f"PRAGMA page_size={PAGE_BYTES}")
        db.execute("PRAGMA auto_vacuum=INCREMENTAL")  # so that dropping gives room back to the disk
        db.execute("PRAGMA synchronous=FULL")
        db.execute("BEGIN")
        for statement in filter(str.strip, _SCHEMA.split(";")):
            db.execute(statement)
        db.executemany(
            "INSERT INTO blob VALUES (?,?,?,?,?)", ((r.id, r.records, r.kept, r.written_utc_ns, r.body) for r in rows)
        )
        db.executemany("INSERT INTO count VALUES (?,?)", (tally or Tally(first, first - 1)).rows())
        db.execute(f"PRAGMA user_version={_VERSION}")
        db.execute("COMMIT")
    draft.replace(path)
