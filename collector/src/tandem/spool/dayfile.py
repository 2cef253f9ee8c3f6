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

from tandem.spool.counts import Tally

SUFFIXES = ("", "-wal", "-shm")
UNFINISHED = ".new"
"""At the end of the name of a file that is being made."""

_SCHEMA = """
CREATE TABLE blob(id INTEGER PRIMARY KEY, records INTEGER NOT NULL, kept INTEGER NOT NULL, written_utc_ns INTEGER NOT NULL,
                  body BLOB NOT NULL);
CREATE INDEX blob_kept ON blob(kept, id);
CREATE TABLE count(name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
"""
_VERSION = 1


@dataclass(frozen=True, slots=True)
class Row:
    """A blob as stored. ``id``: the number of its first record; ``kept``: dropped last; ``body``: see ``blob``."""

    id: int
    records: int
    kept: bool
    written_utc_ns: int
    body: bytes


def name_of(first: int, day: str) -> str:
    """The file's name; ``day`` as YYYYMMDD by the clock of that moment, for people."""
    return f"{first:012d}-{day}.sqlite"


class DayFile:
    """An open file. Every method raises sqlite3.Error as it comes; the spool knows what to make of it."""

    def __init__(self, path: Path, first: int | None = None) -> None:
        """Open ``path``, or make it with ``first`` as its first number. sqlite3.DatabaseError when it is no spool file; OSError
        when a new one cannot get its name."""
        self.path = path
        self.closed = False
        if first is not None:
            _make(path, first)
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=10)
        try:
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=FULL")
            self.tally = self._read_tally()
        except BaseException:
            self._db.close()
            raise

    def _read_tally(self) -> Tally:
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if version != _VERSION:
            raise sqlite3.DatabaseError(f"no such table: version {version} of the spool, expected {_VERSION}")
        try:
            return Tally.of_rows(self._db.execute("SELECT name, value FROM count").fetchall())
        except KeyError as missing:
            raise sqlite3.DatabaseError(f"no such table: count {missing}") from missing

    @property
    def day(self) -> str:
        """YYYYMMDD, by the clock when the file was made."""
        return self.path.stem.partition("-")[2]

    def commit(self, tally: Tally, add: Sequence[Row] = (), remove: Iterable[int] = ()) -> None:
        """Rows in, rows out, and the counts that then hold: all or nothing, on disk on return."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            self._db.executemany(
                "INSERT INTO blob VALUES (?,?,?,?,?)",
                [(r.id, r.records, r.kept, r.written_utc_ns, r.body) for r in add],
            )
            self._db.executemany("DELETE FROM blob WHERE id=?", [(i,) for i in remove])
            self._db.executemany("INSERT OR REPLACE INTO count VALUES (?,?)", tally.rows())
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise
        self.tally = tally

    def rows(self, *, newest: bool, limit: int, skip: Iterable[int] = ()) -> list[Row]:
        """At most ``limit`` blobs from one end, without those of the ids ``skip``."""
        passed = set(skip)
        order = "DESC" if newest else "ASC"
        found = self._db.execute(
            f"SELECT id, records, kept, written_utc_ns, body FROM blob ORDER BY id {order} LIMIT ?",  # noqa: S608 two words
            (limit + len(passed),),
        )
        return [Row(i, n, bool(k), t, b) for i, n, k, t, b in found if i not in passed][:limit]

    def droppable(self, kept: bool, limit: int, skip: Iterable[int]) -> list[tuple[int, int]]:
        """Ids and record counts of the oldest blobs of one class."""
        passed = set(skip)
        query = "SELECT id, records FROM blob WHERE kept=? ORDER BY id LIMIT ?"
        return [row for row in self._db.execute(query, (kept, limit + len(passed))) if row[0] not in passed][:limit]

    def oldest_utc_ns(self) -> int | None:
        """When the oldest blob was written; None when there is none."""
        row = self._db.execute("SELECT written_utc_ns FROM blob ORDER BY id LIMIT 1").fetchone()
        return None if row is None else int(row[0])

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


def _make(path: Path, first: int) -> None:
    """A file without rows, made beside its name and renamed: one without tables is damage then, never one cut off in the making."""
    draft = path.with_name(path.name + UNFINISHED)
    for suffix in ("", "-journal"):
        draft.with_name(draft.name + suffix).unlink(missing_ok=True)
    rows = ",".join(f"('{name}',{value})" for name, value in Tally(first, first - 1).rows())
    with closing(sqlite3.connect(draft, isolation_level=None)) as db:
        db.execute("PRAGMA auto_vacuum=INCREMENTAL")  # so that dropping gives room back to the disk
        db.execute("PRAGMA synchronous=FULL")
        db.executescript(
            f"BEGIN;{_SCHEMA}INSERT INTO count VALUES {rows};PRAGMA user_version={_VERSION};COMMIT;"  # noqa: S608 numbers of our own
        )
    draft.replace(path)
