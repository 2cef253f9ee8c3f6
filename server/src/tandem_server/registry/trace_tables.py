"""What became of each capture once it was here: it waits, its tables were made, or it could not be analysed (docs/reference/ledger.md)."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from tandem_server.registry.probes import Opening
from tandem_server.registry.traces import TraceRow

_CAPTURE = "name GLOB 'captures/*.pcap*'"
SCHEMA = f"""
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


class TraceTables:
    """The table of captures that are analysed. A capture enters it when it is received."""

    def __init__(self, read: Opening, write: Opening) -> None:
        self._read, self._write = read, write

    def due(self, version: int, probe: str | None = None, *, failed: bool = False) -> list[TraceRow]:
        """Captures that no analysis of this version was given yet, in the order of arrival; ``failed``: and those that it failed with."""
        with self._read() as connection:
            rows = connection.execute(
                f"{_JOINED} WHERE (s.version < ?1 OR (?3 AND s.state = 'failed')) AND (?2 IS NULL OR s.probe = ?2)"
                " ORDER BY t.received_utc_ns, t.probe, t.name",
                (version, probe, failed),
            ).fetchall()
        return [TraceRow(*row[:9]) for row in rows]

    def under(self, probe: str, prefix: str) -> list[tuple[TraceRow, TablesOf]]:
        """Captures of a probe whose names begin so, by name."""
        with self._read() as connection:
            rows = connection.execute(
                f"{_JOINED} WHERE s.probe = ? AND s.name >= ? AND s.name < ? ORDER BY s.name",
                (probe, prefix, f"{prefix}\U0010ffff"),
            ).fetchall()
        return [(TraceRow(*row[:9]), TablesOf(*row[9:])) for row in rows]

    def of(self, probe: str | None = None) -> dict[tuple[str, str], TablesOf]:
        """By probe and name."""
        with self._read() as connection:
            rows = connection.execute(
                "SELECT probe, name, state, why, version, changed_utc_ns FROM trace_tables WHERE ?1 IS NULL OR probe = ?1",
                (probe,),
            ).fetchall()
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
