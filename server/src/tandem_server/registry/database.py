"""The registry's file: SQLite in WAL mode, opened by several processes and threads at once. And everything that it knows of one probe
but its name, taken out of every table that knows probes or runs."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from tandem_server.registry import backfill, campaigns, ledger, probes, runs, traces
from tandem_server.registry.backfill import BackfillQueue
from tandem_server.registry.campaigns import CampaignQueue
from tandem_server.registry.ledger import Counted, LedgerRuns
from tandem_server.registry.probes import Enrolments, LastSeen, Probes
from tandem_server.registry.runs import Runs, Sessions
from tandem_server.registry.table import Opening
from tandem_server.registry.traces import PendingUploads, Traces, TraceTables

KEPT = ("probes",)
"""The name stays, revoked: nobody gets it again, and what still comes under it is refused."""
_PASSES = 3
"""Deleting fires triggers, which may write; after the second pass nothing is left that they could write about."""


class NotErasableError(ValueError):
    """There is no such probe, or its tokens are good: what it sends would be there again at once."""


class Erasure:
    """Takes out all of one probe. The file itself names its tables, so that one that is added later is erased too."""

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


# --- The file --------------------------------------------------------------------------------------------------------

_STEPS = (
    probes.SCHEMA + runs.SCHEMA,
    campaigns.SCHEMA,
    traces.SCHEMA + traces.OFFERS,
    probes.LAST_SEEN + ledger.COUNTED,
    probes.OLD_TOKENS,
    ledger.JUDGED_RUNS,
    backfill.SCHEMA,
    probes.INVITATIONS,
    campaigns.FORMS,
    campaigns.ZONES,
    traces.CAPTURES,
    ledger.NO_ROUND_TRIPS,
    probes.NO_LEASES + ledger.SAMPLED,
)
"""What each version added, from the first on: a file of an earlier one gets what it lacks."""

_VERSION = len(_STEPS)
_BUSY_MS, _UPDATE_MS = 10_000, 300_000
_IDLE = 16
"""So many connections are kept for who asks next; each has the file and its journal open."""


class RegistryError(RuntimeError):
    """The registry's file cannot be used; the message is one line with the hint."""


class Registry:
    """The tables of one file, for any thread; writers wait up to 10 s. ``read_only``: SQLite refuses every change, and the file must be
    there and of this version."""

    def __init__(self, file: Path, *, read_only: bool = False) -> None:
        self.file, self._read_only = file, read_only
        self._idle: list[sqlite3.Connection] = []
        self.probes = Probes(self._read, self._write)
        self.enrolments = Enrolments(self._read, self._write)
        self.sessions = Sessions(self._read, self._write)
        self.runs = Runs(self._read, self._write)
        self.campaigns = CampaignQueue(self._read, self._write)
        self.traces = Traces(self._read, self._write)
        self.pending_uploads = PendingUploads(self._read, self._write)
        self.trace_tables = TraceTables(self._read, self._write)
        self.seen = LastSeen(self._read, self._write)
        self.counted = Counted(self._read, self._write)
        self.ledger_runs = LedgerRuns(self._read, self._write)
        self.late = BackfillQueue(self._read, self._write)
        self.erasure = Erasure(self._write)
        if read_only:
            self._check()
            return
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))
            # A file of six months takes its time to be brought up to date; several processes start at once, and wait for that.
            with self._read() as connection:
                connection.execute(f"PRAGMA busy_timeout = {_UPDATE_MS}")
            with self._write() as connection:  # the same one: no other is open yet
                self._prepare(connection)
            with self._read() as connection:
                connection.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
        except (OSError, sqlite3.Error) as error:
            raise RegistryError(f"{file}: {error}; hint: name a registry file that can be written") from error

    def _check(self) -> None:
        try:
            with self._read() as connection:
                version = connection.execute("PRAGMA user_version").fetchone()[0]
        except (OSError, sqlite3.Error) as error:
            hint = "start the gateway first, as the same user"
            raise RegistryError(f"{self.file}: {error}; hint: {hint}") from error
        if version != _VERSION:
            hint = "start the gateway of this version, which brings it up to date"
            raise RegistryError(f"{self.file}: version {version}, this one reads {_VERSION}; hint: {hint}")

    @contextlib.contextmanager
    def locked(self, name: str, *, wait: bool = False) -> Iterator[bool]:
        """Whether the block has the lock ``name``, which one block of all processes has at a time; ``wait``: until it has. The kernel takes
        it from a process that ends in whatever way. OSError."""
        file = self.file.with_name(f".{self.file.name}.{name}.lock")
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            ours = True
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                ours = False
            yield ours
        finally:
            os.close(descriptor)

    def scrub(self) -> None:
        """What was deleted leaves the file, too. Waits for others' transactions; needs as much room as the file takes."""
        with self._read() as connection:
            scrub(connection)

    def close(self) -> None:
        """Close the connections; none may be in use."""
        while self._idle:
            self._idle.pop().close()

    def __enter__(self) -> Registry:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _prepare(self, connection: sqlite3.Connection) -> None:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version > _VERSION:
            raise RegistryError(
                f"{self.file}: made by another, later version ({version}, this one reads {_VERSION}); hint: use that version"
            )
        for step in _STEPS[version:]:
            for statement in _statements(step):
                connection.execute(statement)
        if version < _VERSION:
            connection.execute(f"PRAGMA user_version = {_VERSION}")

    @contextlib.contextmanager
    def _read(self) -> Iterator[sqlite3.Connection]:
        """A connection that nobody else has meanwhile. For single SELECTs: each sees a whole state and waits for nobody."""
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._connect()
        try:
            yield connection
        except BaseException:
            connection.close()  # with it goes what it had begun
            raise
        if len(self._idle) < _IDLE:
            self._idle.append(connection)
        else:
            connection.close()

    @contextlib.contextmanager
    def _write(self) -> Iterator[sqlite3.Connection]:
        """One transaction: committed at the end, undone on any error."""
        with self._read() as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")

    def _connect(self) -> sqlite3.Connection:
        place = f"{self.file.resolve().as_uri()}?mode={'ro' if self._read_only else 'rwc'}"
        made = sqlite3.connect(place, timeout=_BUSY_MS / 1000, isolation_level=None, check_same_thread=False, uri=True)
        if not self._read_only:
            made.execute("PRAGMA journal_mode = WAL")
            made.execute("PRAGMA synchronous = FULL")
            made.execute("PRAGMA foreign_keys = ON")
        return made


def _statements(text: str) -> Iterator[str]:
    """One after the other: a trigger's body has semicolons of its own."""
    statement = ""
    for part in text.split(";"):
        statement += part + ";"
        if part.strip() and sqlite3.complete_statement(statement):
            yield statement
            statement = ""
