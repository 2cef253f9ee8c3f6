"""Traces that the server has for good (docs/reference/probe-api.md, "Traces"); ``trace_offers.py``: those on their way."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from tandem.schema.trace import SERVER_CAPTURES, Encoding, Receipt
from tandem_server.registry.probes import Opening

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
        """As the probe is told."""
        return Receipt(self.probe, self.name, self.run, self.bytes, self.sha256, self.received_utc_ns)


class Traces:
    """The tables of traces. What is in ``traces`` is never changed or removed."""

    def __init__(self, read: Opening, write: Opening) -> None:
        self._read, self._write = read, write

    def received(self, probe: str | None = None, run: str | None = None) -> list[TraceRow]:
        """Every trace that the server has, in the order of arrival; of one probe and one run when named."""
        with self._read() as connection:
            rows = connection.execute(
                f"SELECT {_RECEIVED} FROM traces"  # noqa: S608  constants of this module
                " WHERE (?1 IS NULL OR probe = ?1) AND (?2 IS NULL OR run = ?2) ORDER BY received_utc_ns, probe, name",
                (probe, run),
            ).fetchall()
        return [TraceRow(*row) for row in rows]

    def of_run(self, probe: str, run: str) -> list[TraceRow]:
        """Those of one run in the order of arrival: what else there is costs nothing."""
        with self._read() as connection:
            rows = connection.execute(
                f"SELECT {_RECEIVED} FROM traces WHERE run = ? AND probe = ? ORDER BY received_utc_ns, name",  # noqa: S608  constants
                (run, probe),
            ).fetchall()
        return [TraceRow(*row) for row in rows]

    def sums(self) -> dict[str, tuple[int, int, int]]:
        """By probe, how many there are, their bytes, and their bytes as they are stored: of the registry's running sums."""
        with self._read() as connection:
            rows = connection.execute("SELECT probe, received, bytes, stored_bytes FROM trace_sums").fetchall()
        return {probe: (received, size, stored) for probe, received, size, stored in rows}

    def add(self, row: TraceRow) -> None:
        """Write down one that the server made itself. sqlite3.Error: also when it is there, or its probe is not."""
        with self._write() as connection:
            insert(connection, row)

    def server_bytes(self) -> int:
        """What the captures take that the server made itself, of all probes."""
        with self._read() as connection:
            (total,) = connection.execute(
                "SELECT coalesce(sum(stored_bytes), 0) FROM traces WHERE name GLOB ?", (f"{SERVER_CAPTURES}*",)
            ).fetchone()
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
        with self._read() as connection:
            row = connection.execute(
                f"SELECT {_RECEIVED} FROM traces WHERE probe = ? AND {where}",  # noqa: S608  constants of this module
                (probe, value),
            ).fetchone()
        return None if row is None else TraceRow(*row)


def row_of(connection: sqlite3.Connection, where: str, probe: str, value: str) -> TraceRow | None:
    row = connection.execute(
        f"SELECT {_RECEIVED} FROM traces WHERE probe = ? AND {where}",  # noqa: S608  constants of this module
        (probe, value),
    ).fetchone()
    return None if row is None else TraceRow(*row)


def insert(connection: sqlite3.Connection, row: TraceRow) -> None:
    connection.execute(
        f"INSERT INTO traces ({_RECEIVED}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608  constants of this module
        (
            row.probe,
            row.name,
            row.run,
            row.sha256,
            row.bytes,
            row.received_utc_ns,
            row.place,
            row.encoding,
            row.stored_bytes,
        ),
    )
