"""Traces that the server has for good, and what became of each capture once it was here: its tables wait, were made, or could not be.
``pending_uploads.py`` has those on their way."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from typing import Literal

from tandem.schema.trace import SERVER_CAPTURES, Encoding, Receipt
from tandem_server.registry.table import Table

SCHEMA = """
CREATE TABLE traces (
    probe TEXT NOT NULL REFERENCES probes(name),
    name TEXT NOT NULL,
    run TEXT,
    sha256 TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    received_utc_ns INTEGER NOT NULL,
    place TEXT NOT NULL,
    encoding TEXT NOT NULL,
    stored_bytes INTEGER NOT NULL,
    PRIMARY KEY (probe, name)
) STRICT;
CREATE INDEX traces_of_run ON traces (run);
CREATE INDEX traces_by_content ON traces (probe, sha256);
"""
"""``place``: where in the store; ``stored_bytes``, ``encoding``: as it is there."""

_RECEIVED = "probe, name, run, sha256, bytes, received_utc_ns, place, encoding, stored_bytes"


@dataclass(frozen=True, slots=True)
class TraceRow:
    """A trace that the server has. ``bytes``, ``sha256``: of the file; ``place``: ``PROBE/NAME…`` in the folder or ``s3://BUCKET/KEY``;
    ``encoding``, ``stored_bytes``: as it is there."""

    probe: str
    name: str
    run: str | None
    sha256: str
    bytes: int
    received_utc_ns: int
    place: str
    encoding: Encoding
    stored_bytes: int

    @property
    def receipt(self) -> Receipt:
        """As the probe gets it."""
        return Receipt(self.probe, self.name, self.run, self.bytes, self.sha256, self.received_utc_ns)


class Traces(Table):
    """The tables of traces. What is in ``traces`` is never changed or removed."""

    def received(self, probe: str | None = None, run: str | None = None) -> list[TraceRow]:
        """Every trace that the server has, in the order of arrival; of one probe and one run when named."""
        rows = self._rows(
            f"SELECT {_RECEIVED} FROM traces"  # noqa: S608  constants of this module
            " WHERE (?1 IS NULL OR probe = ?1) AND (?2 IS NULL OR run = ?2) ORDER BY received_utc_ns, probe, name",
            (probe, run),
        )
        return [TraceRow(*row) for row in rows]

    def of_run(self, probe: str, run: str) -> list[TraceRow]:
        """Those of one run in the order of arrival: what else there is costs nothing."""
        rows = self._rows(
            f"SELECT {_RECEIVED} FROM traces WHERE run = ? AND probe = ? ORDER BY received_utc_ns, name",  # noqa: S608  constants
            (run, probe),
        )
        return [TraceRow(*row) for row in rows]

    def sums(self) -> dict[str, tuple[int, int, int]]:
        """By probe, how many there are, their bytes, and their bytes as they are stored: of the registry's running sums."""
        rows = self._rows("SELECT probe, received, bytes, stored_bytes FROM trace_sums")
        return {probe: (received, size, stored) for probe, received, size, stored in rows}

    def add(self, row: TraceRow) -> None:
        """Write down one that the server made itself. sqlite3.Error: also when it is there, or its probe is not."""
        with self._write() as connection:
            insert(connection, row)

    def server_bytes(self) -> int:
        """What the captures take that the server made itself, of all probes."""
        (total,) = self._row(
            "SELECT coalesce(sum(stored_bytes), 0) FROM traces WHERE name GLOB ?", (f"{SERVER_CAPTURES}*",)
        )
        return int(total)

    def named(self, probe: str, name: str) -> TraceRow | None:
        """The trace received from ``probe`` under ``name``."""
        return self._one("name = ?", probe, name)

    def of_content(self, probe: str, sha256: str) -> TraceRow | None:
        """The first trace of ``probe`` with this content. Another probe's is nobody else's business."""
        return self._one("sha256 = ? ORDER BY received_utc_ns, name LIMIT 1", probe, sha256)

    def _one(self, where: str, probe: str, value: str) -> TraceRow | None:
        try:
            value.encode()
        except UnicodeEncodeError:
            return None  # half of a surrogate pair: a manifest's JSON can hold it, the name of a received trace cannot
        row = self._row(
            f"SELECT {_RECEIVED} FROM traces WHERE probe = ? AND {where}",  # noqa: S608  constants of this module
            (probe, value),
        )
        return None if row is None else TraceRow(*row)


def row_of(connection: sqlite3.Connection, where: str, probe: str, value: str) -> TraceRow | None:
    row = connection.execute(
        f"SELECT {_RECEIVED} FROM traces WHERE probe = ? AND {where}",  # noqa: S608  constants of this module
        (probe, value),
    ).fetchone()
    return None if row is None else TraceRow(*row)


def insert(connection: sqlite3.Connection, row: TraceRow) -> None:
    values = ", ".join("?" * len(_RECEIVED.split(",")))
    connection.execute(f"INSERT INTO traces ({_RECEIVED}) VALUES ({values})", astuple(row))  # noqa: S608  constants of this module


# --- Their tables -----------------------------------------------------------------------------------------------------------

_CAPTURE = "name GLOB 'captures/*.pcap*'"
CAPTURES = f"""
CREATE TABLE trace_tables (
    probe TEXT NOT NULL REFERENCES probes(name),
    name TEXT NOT NULL,
    state TEXT NOT NULL,
    why TEXT,
    version INTEGER NOT NULL,
    changed_utc_ns INTEGER NOT NULL,
    PRIMARY KEY (probe, name)
) STRICT;
CREATE INDEX trace_tables_due ON trace_tables (version);
INSERT INTO trace_tables SELECT probe, name, 'waiting', NULL, 0, received_utc_ns FROM traces WHERE {_CAPTURE};
CREATE TRIGGER trace_to_analyse AFTER INSERT ON traces WHEN new.{_CAPTURE} BEGIN
    INSERT INTO trace_tables VALUES (new.probe, new.name, 'waiting', NULL, 0, new.received_utc_ns);
END;
"""  # noqa: S608  a constant of this module
"""``version``: of the analysis that it was given to; 0 while it waits."""

TablesState = Literal["waiting", "analysed", "failed"]
_ROW = "t.probe, t.name, t.run, t.sha256, t.bytes, t.received_utc_ns, t.place, t.encoding, t.stored_bytes"
_OWN = "s.state, s.why, s.version, s.changed_utc_ns"
_JOINED = f"SELECT {_ROW}, {_OWN} FROM trace_tables s JOIN traces t ON t.probe = s.probe AND t.name = s.name"  # noqa: S608  constants


@dataclass(frozen=True, slots=True)
class TablesOf:
    """One capture's. ``why``: one line, where it failed."""

    state: TablesState
    why: str | None
    version: int
    changed_utc_ns: int


class TraceTables(Table):
    """The table of captures that are analysed. A capture enters it when it is received."""

    def due(self, version: int, probe: str | None = None, *, failed: bool = False) -> list[TraceRow]:
        """Captures that no analysis of this version was given yet, in the order of arrival; ``failed``: and those that it failed with."""
        rows = self._rows(
            f"{_JOINED} WHERE (s.version < ?1 OR (?3 AND s.state = 'failed')) AND (?2 IS NULL OR s.probe = ?2)"
            " ORDER BY t.received_utc_ns, t.probe, t.name",
            (version, probe, failed),
        )
        return [TraceRow(*row[:9]) for row in rows]

    def under(self, probe: str, prefix: str) -> list[tuple[TraceRow, TablesOf]]:
        """Captures of a probe whose names begin so, by name."""
        rows = self._rows(
            f"{_JOINED} WHERE s.probe = ? AND s.name >= ? AND s.name < ? ORDER BY s.name",
            (probe, prefix, f"{prefix}\U0010ffff"),
        )
        return [(TraceRow(*row[:9]), TablesOf(*row[9:])) for row in rows]

    def of(self, probe: str | None = None) -> dict[tuple[str, str], TablesOf]:
        """By probe and name."""
        rows = self._rows(
            "SELECT probe, name, state, why, version, changed_utc_ns FROM trace_tables WHERE ?1 IS NULL OR probe = ?1",
            (probe,),
        )
        return {(of, name): TablesOf(*own) for of, name, *own in rows}

    def mark(self, probe: str, names: Iterable[str], version: int, why: str | None = None) -> bool:
        """Write down that these were analysed, or ``why`` not. False: some are not known (any more), their probe was erased."""
        state, now, wanted = ("analysed" if why is None else "failed"), time.time_ns(), list(names)
        with self._write() as connection:
            changed = [
                connection.execute(
                    "UPDATE trace_tables SET state = ?, why = ?, version = ?, changed_utc_ns = ? WHERE probe = ? AND name = ?",
                    (state, why, version, now, probe, name),
                ).rowcount
                for name in wanted
            ]
        return all(changed)

    def again(self) -> None:
        """All wait: their tables are gone."""
        with self._write() as connection:
            connection.execute(
                "UPDATE trace_tables SET state = 'waiting', why = NULL, version = 0, changed_utc_ns = ?",
                (time.time_ns(),),
            )
