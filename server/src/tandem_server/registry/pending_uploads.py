"""Traces on their way: what was offered, how much of it is safe, each probe's bytes a day (docs/reference/probe-api.md, "Traces")."""

from __future__ import annotations

import sqlite3
import time
from dataclasses import dataclass, replace

from tandem.schema.trace import Chunk, Encoding, Offer
from tandem_server.registry.table import Table
from tandem_server.registry.traces import TraceRow, insert, row_of

SCHEMA = """
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
make the file. ``day``: days since 1970, UTC. ``expired``: offers given up that day."""

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


@dataclass(frozen=True, slots=True)
class Day:
    """One probe's day: bytes taken in (also those that were cut off again), offers given up and what they had sent."""

    probe: str
    day: int
    bytes: int
    expired: int
    expired_bytes: int


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

    def expire(self, one: Unfinished, had_bytes: int) -> bool:
        """Give an offer up that was not touched since ``one`` was read, and count it; whether it was so."""
        now = time.time_ns()
        with self._write() as connection:
            gone = connection.execute(
                "DELETE FROM trace_offers WHERE probe = ? AND sha256 = ? AND touched_utc_ns = ?",
                (one.probe, one.sha256, one.touched_utc_ns),
            ).rowcount
            if gone:
                connection.execute(
                    "INSERT INTO trace_days (probe, day, expired, expired_bytes) VALUES (?, ?, 1, ?) ON CONFLICT (probe, day)"
                    " DO UPDATE SET expired = expired + 1, expired_bytes = expired_bytes + excluded.expired_bytes",
                    (one.probe, day_of(now), had_bytes),
                )
        return bool(gone)

    def days(self, probe: str | None = None) -> list[Day]:
        """What was taken in and given up by probe and day, the oldest first."""
        rows = self._rows(
            "SELECT probe, day, bytes, expired, expired_bytes FROM trace_days"
            " WHERE ?1 IS NULL OR probe = ?1 ORDER BY day, probe",
            (probe,),
        )
        return [Day(*row) for row in rows]


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
