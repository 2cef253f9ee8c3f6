"""Everything that the registry knows of one probe but its name, taken out of every table that knows probes or runs."""

from __future__ import annotations

import sqlite3

from tandem_server.registry.table import Opening

KEPT = ("probes",)
"""The name stays, revoked: nobody gets it again, and what still comes under it is refused."""
_PASSES = 3
"""Deleting fires triggers, which may write; after the second pass nothing is left that they could write about."""


class NotErasableError(ValueError):
    """There is no such probe, or its tokens are good: what it sends would be there again at once."""


class Erasure:
    """See the module. The file itself names its tables, so that one that is added later is erased too."""

    def __init__(self, write: Opening) -> None:
        self._write = write

    def count(self, probe: str) -> dict[str, int]:
        """Rows by table that ``erase`` would delete. NotErasableError."""
        with self._write() as connection:
            _check(connection, probe)
            return _rows(connection, probe)

    def erase(self, probe: str) -> dict[str, int]:
        """Delete them, in one transaction; rows by table. NotErasableError."""
        with self._write() as connection:
            _check(connection, probe)
            connection.execute("PRAGMA defer_foreign_keys = ON")
            gone = _rows(connection, probe)
            for _ in range(_PASSES):
                for table, where in _places(connection):
                    connection.execute(f"DELETE FROM {table} WHERE {where}", (probe,))  # noqa: S608  the file's own names
            left = _rows(connection, probe)
            if left:
                raise sqlite3.IntegrityError(f"rows of {probe} come back in {', '.join(left)}")
        return gone


def scrub(connection: sqlite3.Connection) -> None:
    """Outside of a transaction: what was deleted is in the file and its journal no more."""
    connection.execute("VACUUM")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _check(connection: sqlite3.Connection, probe: str) -> None:
    row = connection.execute("SELECT revoked_utc_ns FROM probes WHERE name = ?", (probe,)).fetchone()
    if row is None:
        raise NotErasableError(f"no probe {probe!r}; hint: tandem-server probe list")
    if row[0] is None:
        raise NotErasableError(
            f"{probe} may still send; hint: tandem-server probe revoke {probe}, then erase it once more"
        )


def _places(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    """Each table that knows probes or runs, with the condition of a probe's rows; those of runs first, while the runs are known."""
    found = []
    for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall():
        columns = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
        if table in KEPT:
            continue
        if "probe" in columns:
            found.append((table, "probe = ?"))
        elif "run" in columns:
            found.append((table, "run IN (SELECT id FROM runs WHERE probe = ?)"))
    return sorted(found, key=lambda place: (place[1] == "probe = ?", place[0] == "runs", place[0]))


def _rows(connection: sqlite3.Connection, probe: str) -> dict[str, int]:
    counts = {
        table: int(connection.execute(f"SELECT count(*) FROM {table} WHERE {where}", (probe,)).fetchone()[0])  # noqa: S608
        for table, where in _places(connection)
    }
    return {table: count for table, count in counts.items() if count}
