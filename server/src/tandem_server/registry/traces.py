"""Traces: those that the server has for good, what became of each capture once it was here (its tables wait, were made, or could not be),
and those on their way: what was offered, how much of it is safe, each probe's bytes a day (docs/reference/probe-api.md, "Traces")."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable
from dataclasses import astuple, dataclass, replace
from typing import Literal

from tandem.schema.trace import SERVER_CAPTURES, Chunk, Encoding, Offer, Receipt
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
        with self._read() as connection:
            return row_of(connection, where, probe, value)


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


# --- On their way ----------------------------------------------------------------------------------------------------

OFFERS = """
CREATE TABLE trace_offers (
    probe TEXT NOT NULL REFERENCES probes(name),
    sha256 TEXT NOT NULL,
    name TEXT NOT NULL,
    run TEXT,
    bytes INTEGER NOT NULL,
    encoding TEXT NOT NULL,
    chunk_bytes INTEGER NOT NULL,
    stream_bytes INTEGER NOT NULL,
    checked_bytes INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    offered_utc_ns INTEGER NOT NULL,
    touched_utc_ns INTEGER NOT NULL,
    chunks BLOB NOT NULL,
    PRIMARY KEY (probe, sha256),
    UNIQUE (probe, name)
) STRICT;
CREATE INDEX trace_offers_by_age ON trace_offers (touched_utc_ns);
CREATE TABLE trace_days (
    probe TEXT NOT NULL REFERENCES probes(name),
    day INTEGER NOT NULL,
    bytes INTEGER NOT NULL DEFAULT 0,
    expired INTEGER NOT NULL DEFAULT 0,
    expired_bytes INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (probe, day)
) STRICT;
"""
"""``checked_bytes``: of the stream, whose chunks were checked and synced to disk. ``failed``: how often all chunks were there and did not
make the file. ``day``: days since 1970, UTC. ``expired``, ``expired_bytes``: of earlier versions."""

_OFFERED = "probe, name, run, bytes, sha256, encoding, chunk_bytes, stream_bytes, checked_bytes, failed, offered_utc_ns, touched_utc_ns"
_CHUNK_ROW_BYTES = 36


class NameTaken(ValueError):  # noqa: N818  (an answer, no accident)
    """Another content was received under this name, and stays."""


class TooManyUnfinished(ValueError):  # noqa: N818  (an answer, no accident)
    """The probe has as many unfinished traces as it may have."""


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A trace on its way, without its chunks."""

    probe: str
    name: str
    run: str | None
    bytes: int
    sha256: str
    encoding: Encoding
    chunk_bytes: int
    stream_bytes: int
    checked_bytes: int
    failed: int
    offered_utc_ns: int
    touched_utc_ns: int


class PendingUploads(Table):
    """The tables of offers and of days."""

    def offer(self, probe: str, offer: Offer, most_unfinished: int) -> TraceRow | Unfinished:
        """Write an offer down: what is known of it then. A trace that is there already gets this name too, and is returned. One on its way
        goes on, under the newest name; other chunks begin anew. Another unfinished content of this name gives way. NameTaken,
        TooManyUnfinished (0 or fewer of ``most_unfinished`` left)."""
        now, chunks = time.time_ns(), _packed(offer.chunks)
        form = (offer.encoding, offer.chunk_bytes, offer.stream_bytes)
        with self._write() as connection:
            taken = row_of(connection, "name = ?", probe, offer.name)
            if taken is not None and taken.sha256 != offer.sha256:
                raise NameTaken(f"another content was received as {offer.name!r}, and stays")
            if taken is not None:
                return taken
            there = row_of(connection, "sha256 = ? ORDER BY received_utc_ns, name LIMIT 1", probe, offer.sha256)
            if there is not None:
                return _again(connection, there, offer, now)
            connection.execute(
                "DELETE FROM trace_offers WHERE probe = ? AND name = ? AND sha256 <> ?",
                (probe, offer.name, offer.sha256),
            )
            count = connection.execute(
                "SELECT count(*) FROM trace_offers WHERE probe = ? AND sha256 <> ?", (probe, offer.sha256)
            ).fetchone()[0]
            if count >= most_unfinished:
                raise TooManyUnfinished(f"{count} traces are unfinished; hint: finish those first")
            connection.execute(
                "INSERT INTO trace_offers (probe, sha256, name, run, bytes, encoding, chunk_bytes, stream_bytes, checked_bytes,"
                " failed, offered_utc_ns, touched_utc_ns, chunks) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 0, 0, ?9, ?9, ?10)"
                " ON CONFLICT (probe, sha256) DO UPDATE SET name = excluded.name, run = excluded.run,"
                " bytes = excluded.bytes, encoding = excluded.encoding, chunk_bytes = excluded.chunk_bytes,"
                " stream_bytes = excluded.stream_bytes, touched_utc_ns = excluded.touched_utc_ns, chunks = excluded.chunks,"
                " checked_bytes = iif(chunks = excluded.chunks AND encoding = excluded.encoding, checked_bytes, 0),"
                " failed = iif(chunks = excluded.chunks AND encoding = excluded.encoding, failed, 0)",
                (probe, offer.sha256, offer.name, offer.run, offer.bytes, *form, now, chunks),
            )
            row = connection.execute(
                f"SELECT {_OFFERED} FROM trace_offers WHERE probe = ? AND sha256 = ?",  # noqa: S608  constants of this module
                (probe, offer.sha256),
            ).fetchone()
        return Unfinished(*row)

    def known(self, probe: str, sha256: str) -> Unfinished | None:
        """What is on its way under this hash, without its chunks."""
        row = self._row(
            f"SELECT {_OFFERED} FROM trace_offers WHERE probe = ? AND sha256 = ?",  # noqa: S608  constants
            (probe, sha256),
        )
        return None if row is None else Unfinished(*row)

    def offered(self, probe: str, sha256: str) -> tuple[Unfinished, Offer] | None:
        """The same with the offer; unpacking the chunks takes a while."""
        row = self._row(
            f"SELECT {_OFFERED}, chunks FROM trace_offers WHERE probe = ? AND sha256 = ?",  # noqa: S608  constants
            (probe, sha256),
        )
        if row is None:
            return None
        one = Unfinished(*row[:-1])
        chunks = _unpacked(row[-1])
        return one, Offer(one.name, one.run, one.bytes, one.sha256, one.encoding, one.chunk_bytes, chunks)

    def unfinished(self, probe: str | None = None) -> list[Unfinished]:
        """What is on its way, the longest untouched first."""
        rows = self._rows(
            f"SELECT {_OFFERED} FROM trace_offers"  # noqa: S608  constants of this module
            " WHERE ?1 IS NULL OR probe = ?1 ORDER BY touched_utc_ns, probe, name",
            (probe,),
        )
        return [Unfinished(*row) for row in rows]

    def checked(self, probe: str, sha256: str, checked_bytes: int, taken_bytes: int) -> int:
        """The stream's first ``checked_bytes`` are checked and on disk, and ``taken_bytes`` came since the last call. The
        bytes that this probe has sent today (UTC) in all."""
        now = time.time_ns()
        with self._write() as connection:
            connection.execute(
                "UPDATE trace_offers SET checked_bytes = ?, touched_utc_ns = ? WHERE probe = ? AND sha256 = ?",
                (checked_bytes, now, probe, sha256),
            )
            return _counted(connection, probe, day_of(now), taken_bytes)

    def count(self, probe: str, taken_bytes: int) -> int:
        """``taken_bytes`` came that went nowhere. The bytes that this probe has sent today (UTC) in all."""
        with self._write() as connection:
            return _counted(connection, probe, day_of(time.time_ns()), taken_bytes)

    def today_bytes(self, probe: str) -> int:
        """Bytes of traces that this probe has sent today (UTC)."""
        row = self._row("SELECT bytes FROM trace_days WHERE probe = ? AND day = ?", (probe, day_of(time.time_ns())))
        return 0 if row is None else int(row[0])

    def failed(self, probe: str, sha256: str) -> None:
        """All chunks came, each as offered, and did not make the file: from the beginning."""
        self._do(
            "UPDATE trace_offers SET checked_bytes = 0, failed = failed + 1 WHERE probe = ? AND sha256 = ?",
            (probe, sha256),
        )

    def finish(self, probe: str, offer: Offer, place: str, encoding: Encoding, stored_bytes: int) -> TraceRow:
        """It is in the store for good. NameTaken when another content has got its name meanwhile."""
        now = time.time_ns()
        with self._write() as connection:
            row = row_of(connection, "name = ?", probe, offer.name)
            if row is not None and row.sha256 != offer.sha256:
                raise NameTaken(f"another content was received as {offer.name!r}, and stays")
            if row is None:
                row = TraceRow(
                    probe, offer.name, offer.run, offer.sha256, offer.bytes, now, place, encoding, stored_bytes
                )
                insert(connection, row)
            connection.execute("DELETE FROM trace_offers WHERE probe = ? AND sha256 = ?", (probe, offer.sha256))
        return row

    def forget(self, probe: str, sha256: str) -> None:
        """It is offered no more."""
        self._do("DELETE FROM trace_offers WHERE probe = ? AND sha256 = ?", (probe, sha256))

    def expire(self, one: Unfinished) -> bool:
        """Give an offer up that was not touched since ``one`` was read; whether it was so."""
        return bool(
            self._do(
                "DELETE FROM trace_offers WHERE probe = ? AND sha256 = ? AND touched_utc_ns = ?",
                (one.probe, one.sha256, one.touched_utc_ns),
            )
        )


def _counted(connection: sqlite3.Connection, probe: str, day: int, taken_bytes: int) -> int:
    row = connection.execute(
        "INSERT INTO trace_days (probe, day, bytes) VALUES (?, ?, ?)"
        " ON CONFLICT (probe, day) DO UPDATE SET bytes = bytes + excluded.bytes RETURNING bytes",
        (probe, day, taken_bytes),
    ).fetchone()
    return int(row[0])


def day_of(utc_ns: int) -> int:
    """Days since 1970, UTC."""
    return utc_ns // (86_400 * 10**9)


def _again(connection: sqlite3.Connection, there: TraceRow, offer: Offer, now: int) -> TraceRow:
    """The same content under one more name: a row of its own, at the same place."""
    row = replace(there, name=offer.name, run=offer.run, received_utc_ns=now)
    insert(connection, row)
    return row


def _packed(chunks: tuple[Chunk, ...]) -> bytes:
    """36 bytes a chunk: its length, its hash."""
    return b"".join(chunk.bytes.to_bytes(4, "big") + bytes.fromhex(chunk.sha256) for chunk in chunks)


def _unpacked(packed: bytes) -> tuple[Chunk, ...]:
    rows = range(0, len(packed), _CHUNK_ROW_BYTES)
    return tuple(
        Chunk(int.from_bytes(packed[at : at + 4], "big"), packed[at + 4 : at + _CHUNK_ROW_BYTES].hex()) for at in rows
    )
