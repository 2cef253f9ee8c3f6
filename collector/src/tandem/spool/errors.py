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


_FULL = ("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_NOMEM")
_DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_FORMAT")


def says_full(error: sqlite3.Error) -> bool:
    """Whether the disk, not the file's content, is why SQLite failed."""
    return _name(error).startswith(_FULL)


def says_damaged(error: sqlite3.Error) -> bool:
    """Whether the file's content is no database any more. A missing table is damage too: every file is made with its tables."""
    return _name(error).startswith(_DAMAGED) or "no such table" in str(error)


def _name(error: sqlite3.Error) -> str:
    # Errors that Python's module raises itself carry no name.
    return str(getattr(error, "sqlite_errorname", ""))


def disk_refused(folder: Path, error: Exception) -> SpoolFullError:
    """The error for people."""
    return SpoolFullError(f"{folder}: {error}; mend: free disk space; measuring goes on, records wait in memory")
