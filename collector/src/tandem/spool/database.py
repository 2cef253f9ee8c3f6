"""The spool's one SQLite file, ``queue.sqlite``: blobs of records by number, which spool it is, and what became of every number.

WAL with ``synchronous=FULL``: a commit is on disk when it returns. Which spool it is and the counts are one row with a checksum,
written in the same transaction as the blobs that they count.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import zlib
from collections.abc import Collection, Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from tandem.schema.record import Record
from tandem.spool.durable import sync_folder

BLOB_RECORDS = 500
"""Records of one blob at most, so that a batch of 1000 lines can always be filled from both ends."""

KEPT_LONGEST = ("event", "run_begun", "run", "run_usage", "phase", "dash", "aggregation", "verdict")
"""Events, and what a run begins and ends with and comes to. They are dropped last, and so have blobs of their own: few, and what everything
else is read by."""


class BlobError(ValueError):
    """The bytes are no blob of this version, or damaged."""


@dataclass(frozen=True, slots=True)
class Item:
    """A record with its number (from 1, without gaps) and the boot in which it was made."""

    seq: int
    boot: str
    record: Record


def pack(items: Sequence[Item]) -> bytes:
    """``items`` (at least one, all of one boot) as bytes."""
    rows = [[i.seq, i.record.measurement, i.record.tags, i.record.fields, i.record.monotonic_ns] for i in items]
    text = json.dumps([items[0].boot, rows], separators=(",", ":"), default=dict)
    # Level 1: at level 6 a second's records are 4 % smaller for three times the processor time, which a small Pi lacks.
    return zlib.compress(text.encode(), 1)


def unpack(blob: bytes) -> list[Item]:
    """The inverse of ``pack``; BlobError whatever is wrong with the bytes (deflate carries a checksum)."""
    try:
        boot, rows = json.loads(zlib.decompress(blob))
        if not isinstance(boot, str):
            raise BlobError(f"boot is {boot!r}")
        return [_item(boot, *row) for row in rows]
    except (zlib.error, ValueError, TypeError, RecursionError) as error:
        raise BlobError(f"no blob of records: {error}") from error


def beginning(blob: bytes) -> tuple[str, int] | None:
    """The boot of its records and their least CLOCK_MONOTONIC ns; None when the bytes are no blob."""
    try:
        items = unpack(blob)
    except BlobError:
        return None
    return items[0].boot, min(item.record.monotonic_ns for item in items)


def _item(boot: str, seq: object, measurement: object, tags: object, fields: object, mono: object) -> Item:
    if not (
        isinstance(seq, int) and isinstance(measurement, str) and isinstance(tags, dict) and isinstance(fields, dict)
    ):
        raise BlobError("a row of wrong types")
    if not isinstance(mono, int):
        raise BlobError("a row without a time")
    return Item(seq, boot, Record(measurement, tags, fields, mono))


NAME = "queue.sqlite"
SUFFIXES = ("", "-wal", "-shm")
UNFINISHED = ".new"
"""At the end of the name of a file that is being made."""

PAGE_BYTES = 512
"""Small pages, since a commit writes whole ones: 38 % fewer bytes a day than with 4096."""

_SCHEMA = """
CREATE TABLE blob(id INTEGER PRIMARY KEY, records INTEGER NOT NULL, kept INTEGER NOT NULL, body BLOB NOT NULL);
CREATE TABLE state(content TEXT NOT NULL);
"""
_VERSION = 4
_LAST = 2**63 - 1
_FREE_BYTES = 4 << 20
"""So much may lie free in the file, or as much as is used, before a commit returns ``_GIVEN_BACK`` pages to the disk."""
_GIVEN_BACK = 256
_LOG_BYTES = 4 << 20


class SpoolError(Exception):
    """The spool cannot be used; the message is one line with a hint."""


class SpoolFullError(SpoolError):
    """The disk took nothing: full, read-only or failing. What was to be appended is not in the spool."""


class DamagedError(sqlite3.DatabaseError):
    """The file's content is not as it was written, though SQLite sees nothing wrong."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Which spool it is. ``first``: the first number that ``id`` holds for; above 1 where a damaged file with lower numbers came before."""

    id: str
    first: int

    @classmethod
    def new(cls, first: int) -> Identity:
        """One that nobody had before."""
        return cls(os.urandom(6).hex(), first)


@dataclass(frozen=True, slots=True)
class Counts:
    """How many records went where, over all restarts. ``made`` = ``sent`` + ``pending`` + ``rejected`` + ``dropped``, always.

    ``made``: records numbered, so the last number; ``sent``: acknowledged by the gateway; ``rejected``: in quarantine; ``dropped``: given
    up for want of room or lost by damage; ``by_measurement``: those of ``made`` whose measurement is known.
    """

    made: int = 0
    sent: int = 0
    rejected: int = 0
    dropped: int = 0
    by_measurement: dict[str, int] = field(default_factory=dict)

    @property
    def pending(self) -> int:
        return self.made - self.sent - self.rejected - self.dropped

    def plus(self, sent: int, rejected: int, dropped: int) -> Counts:
        return replace(self, sent=self.sent + sent, rejected=self.rejected + rejected, dropped=self.dropped + dropped)


@dataclass(frozen=True, slots=True)
class Row:
    """A blob as stored. ``id``: the number of its first record; ``kept``: dropped last; ``body``: see ``blob``."""

    id: int
    records: int
    kept: bool
    body: bytes

    def items(self) -> list[Item] | None:
        """Its records; None when they are not those that were put in under this number."""
        try:
            items = unpack(self.body)
        except BlobError:
            return None
        return items if [item.seq for item in items] == list(range(self.id, self.id + self.records)) else None


class Database:
    """The open file. Every method raises sqlite3.Error as it comes; the spool knows what to make of it. ``identity``, ``counts``: as
    committed."""

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=10)
        try:
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=FULL")
            # Debian's SQLite overwrites what it deletes, which a card would have to write; it saves little that is not in the log as well.
            self._db.execute("PRAGMA secure_delete=OFF")
            self._db.execute(f"PRAGMA journal_size_limit={_LOG_BYTES}")
            self.identity, self.counts = _read_state(self._db)
        except BaseException:
            self._db.close()
            raise

    def commit(
        self,
        counts: Counts,
        add: Sequence[Row] = (),
        remove: Iterable[int] = (),
        limit_bytes: int | None = None,
        out: Collection[int] = (),
    ) -> int:
        """Blobs in, blobs out, and the counts that then hold: all or nothing, on disk on return. When more than ``limit_bytes`` are
        used the oldest blobs that are not ``out`` are dropped, and a sixty-fourth more, so that it is seldom done; so many records."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            # First out, then in: the new ones take the pages that were given free, and the file does not grow.
            self._db.executemany("DELETE FROM blob WHERE id=?", [(i,) for i in remove])
            self._db.executemany("INSERT INTO blob VALUES (?,?,?,?)", [(r.id, r.records, r.kept, r.body) for r in add])
            lost = 0 if limit_bytes is None else self._make_room(limit_bytes, out)
            counts = counts.plus(0, 0, lost)
            if counts.pending < 0:
                raise DamagedError(f"{-counts.pending} records more were settled than were there")
            free = self._pragma("freelist_count") * PAGE_BYTES
            if free > _FREE_BYTES and free > self.used_bytes():
                for _ in range(_GIVEN_BACK):  # Python steps such a statement once, which is a page
                    self._db.execute("PRAGMA incremental_vacuum(1)")
            self._db.execute("UPDATE state SET content=?", (_state(self.identity, counts),))
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise
        self.counts = counts
        return lost

    def _make_room(self, limit_bytes: int, out: Collection[int]) -> int:
        used, lost = self.used_bytes(), 0
        if used <= limit_bytes:
            return 0
        goal = limit_bytes - limit_bytes // 64
        for kept in (0, 1):
            while used > goal and (found := self._oldest(kept, out, used - goal)):
                self._db.executemany("DELETE FROM blob WHERE id=?", [(i,) for i, _ in found])
                lost += sum(records for _, records in found)
                used = self.used_bytes()
        return lost

    def _oldest(self, kept: int, out: Collection[int], least_bytes: int) -> list[tuple[int, int]]:
        """Ids and record counts of the oldest blobs of one class, as many as hold ``least_bytes`` or all there are."""
        found, size = [], 0
        query = "SELECT id, records, length(body) FROM blob WHERE kept=? ORDER BY id"
        with closing(self._db.execute(query, (kept,))) as rows:
            for i, records, length in rows:
                if size >= least_bytes:
                    break
                if type(records) is not int or records <= 0 or type(length) is not int:
                    raise DamagedError("a row of wrong types")
                if i not in out:
                    found.append((i, records))
                    size += length
        return found

    def rows(self, low: int, high: int | None, *, newest: bool) -> Generator[Row, None, None]:
        """The blobs with ids from ``low`` to ``high``, in their order; ``newest``: in the opposite one. To be closed before a commit."""
        query = f"SELECT id, records, kept, body FROM blob WHERE id BETWEEN ? AND ? ORDER BY id {'DESC' if newest else 'ASC'}"  # noqa: S608
        before: Row | None = None
        with closing(self._db.execute(query, (low, _LAST if high is None else high))) as found:
            for i, records, kept, body in found:
                if not (type(i) is int and type(records) is int and isinstance(body, bytes)):
                    raise DamagedError("a row of wrong types")
                row = Row(i, records, bool(kept), body)
                if not (i > 0 and 0 < records <= self.counts.made - i + 1):
                    raise DamagedError(f"a row with the numbers {i} to {i + records - 1}, which were not given out")
                # A damaged tree may lead in circles.
                first, second = (row, before) if newest else (before, row)
                if first is not None and second is not None and second.id < first.id + first.records:
                    raise DamagedError("rows out of order")
                before = row
                yield row

    def lowest(self) -> int | None:
        """The first number of the first blob; None when there is none."""
        (lowest,) = self._db.execute("SELECT min(id) FROM blob").fetchone()
        return None if lowest is None else int(lowest)

    def used_bytes(self) -> int:
        """Size of the database without its free pages."""
        return PAGE_BYTES * (self._pragma("page_count") - self._pragma("freelist_count"))

    def _pragma(self, name: str) -> int:
        return int(self._db.execute(f"PRAGMA {name}").fetchone()[0])

    def close(self) -> None:
        """Close; the WAL goes into the file."""
        self._db.close()


def make(path: Path, identity: Identity, counts: Counts) -> None:
    """An empty file, made beside its name and renamed: one that is not whole is damage then, never one cut off in the making. Durable
    on return. sqlite3.Error and OSError as they come."""
    draft = path.with_name(path.name + UNFINISHED)
    for suffix in ("", "-journal"):
        draft.with_name(draft.name + suffix).unlink(missing_ok=True)
    with closing(sqlite3.connect(draft, isolation_level=None)) as db:
        db.execute(f"PRAGMA page_size={PAGE_BYTES}")
        db.execute("PRAGMA auto_vacuum=INCREMENTAL")  # so that what is free can be given back to the disk
        db.execute("PRAGMA synchronous=FULL")
        db.execute("BEGIN")
        for statement in filter(str.strip, _SCHEMA.split(";")):
            db.execute(statement)
        db.execute("INSERT INTO state VALUES (?)", (_state(identity, counts),))
        db.execute(f"PRAGMA user_version={_VERSION}")
        db.execute("COMMIT")
    draft.replace(path)
    sync_folder(path.parent)


def _state(identity: Identity, counts: Counts) -> str:
    text = json.dumps([identity.id, identity.first, asdict(counts)], separators=(",", ":"))
    return f"{zlib.crc32(text.encode()):08x} {text}"


def _read_state(db: sqlite3.Connection) -> tuple[Identity, Counts]:
    """DamagedError when it is not as it was written."""
    try:
        if db.execute("PRAGMA user_version").fetchone() != (_VERSION,):
            raise DamagedError(f"no spool of version {_VERSION}")
        ((content,),) = db.execute("SELECT content FROM state").fetchall()
        check, _, text = content.partition(" ")
        if int(check, 16) != zlib.crc32(text.encode()):
            raise DamagedError("counts that are not as they were written")
        name, first, counts = json.loads(text)
        return Identity(name, first), Counts(**counts)
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedError(f"counts that cannot be read: {error}") from error


def last_counts(path: Path) -> Counts | None:
    """What a damaged file still says of its numbers, by its counts or else by its blobs; None when nothing can be read."""
    with contextlib.suppress(*ERRORS), closing(sqlite3.connect(path, isolation_level=None)) as db:
        with contextlib.suppress(*ERRORS):
            return _read_state(db)[1]
        last, waiting = db.execute("SELECT max(id + records - 1), sum(records) FROM blob").fetchone()
        if type(last) is int and type(waiting) is int and 0 < waiting <= last < 2**53:
            return Counts(last, last - waiting)
    return None


ERRORS = (sqlite3.Error, OverflowError, UnicodeDecodeError)
"""What SQLite and Python's module raise over a file, whatever is in it."""

_FULL = ("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_NOMEM")
_DAMAGED = (
    "SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_FORMAT", "SQLITE_MISMATCH", "SQLITE_CONSTRAINT", "SQLITE_SCHEMA",
    # A block that cannot be read: on a worn card that is for ever.
    "SQLITE_IOERR_READ", "SQLITE_IOERR_SHORT_READ", "SQLITE_IOERR_CORRUPTFS", "SQLITE_IOERR_DATA",
)  # fmt: skip


def is_full(error: sqlite3.Error) -> bool:
    """Whether the disk, not the file's content, is why SQLite failed."""
    return _name(error).startswith(_FULL) and not is_damaged(error)


def is_damaged(error: Exception) -> bool:
    """Whether the file's content is no database any more. A missing table is damage too: every file is made with its tables."""
    if isinstance(error, DamagedError | OverflowError | UnicodeDecodeError) or _name(error).startswith(_DAMAGED):
        return True
    # A schema or a row that is readable and not ours.
    words = ("no such table", "no such column", "Could not decode", "malformed", "has no column", "not an error")
    return any(word in str(error) for word in words)


def _name(error: Exception) -> str:
    # Errors that Python's module raises itself carry no name.
    return str(getattr(error, "sqlite_errorname", ""))


def disk_refused(folder: Path, error: Exception) -> SpoolFullError:
    return SpoolFullError(f"{folder}: {error}; hint: free disk space; measuring goes on, records wait in memory")
