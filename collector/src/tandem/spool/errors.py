"""What can go wrong with the spool, in the words of the one who must mend it."""

from __future__ import annotations

import sqlite3
from pathlib import Path


class SpoolError(Exception):
    """The spool cannot be used; the message is one line with the mend."""


class SpoolBusyError(SpoolError):
    """Another process writes this spool."""


class SpoolFullError(SpoolError):
    """The disk took nothing: full, read-only or failing. What was to be appended is not in the spool."""


class DamagedError(sqlite3.DatabaseError):
    """The file's content is not as it was written, though SQLite sees nothing wrong."""


_FULL = ("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_NOMEM")
_DAMAGED = (
    "SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_FORMAT", "SQLITE_MISMATCH", "SQLITE_CONSTRAINT", "SQLITE_SCHEMA",
    # A block that cannot be read: on a worn card that is for ever.
    "SQLITE_IOERR_READ", "SQLITE_IOERR_SHORT_READ", "SQLITE_IOERR_CORRUPTFS", "SQLITE_IOERR_DATA",
)  # fmt: skip


def says_full(error: sqlite3.Error) -> bool:
    """Whether the disk, not the file's content, is why SQLite failed."""
    return _name(error).startswith(_FULL) and not says_damaged(error)


def says_damaged(error: sqlite3.Error) -> bool:
    """Whether the file's content is no database any more. A missing table is damage too: every file is made with its tables."""
    if isinstance(error, DamagedError) or _name(error).startswith(_DAMAGED):
        return True
    # A schema or a row that is readable and not ours.
    words = ("no such table", "no such column", "Could not decode", "malformed", "has no column", "not an error")
    return any(word in str(error) for word in words)


def _name(error: sqlite3.Error) -> str:
    # Errors that Python's module raises itself carry no name.
    return str(getattr(error, "sqlite_errorname", ""))


def disk_refused(folder: Path, error: Exception) -> SpoolFullError:
    """The error for people."""
    return SpoolFullError(f"{folder}: {error}; mend: free disk space; measuring goes on, records wait in memory")
