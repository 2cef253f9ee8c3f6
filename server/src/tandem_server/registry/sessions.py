"""Measurement sessions as they are kept for accounting; the endpoint holds the open ones in memory."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass

from tandem.schema.manifest import CHECK_RUN, ROUND_TRIPS_RUN
from tandem_server.registry.probes import Opening


@dataclass(frozen=True, slots=True)
class SessionRow:
    """One session; times in UTC ns, ``ended_utc_ns`` None while it is open."""

    id: str
    probe: str
    run: str
    kind: str
    budget_bytes: int
    opened_utc_ns: int
    expires_utc_ns: int
    ended_utc_ns: int | None
    ended_why: str | None
    sent_bytes: int


@dataclass(frozen=True, slots=True)
class Lone:
    """The sessions of a run that no manifest names; times in UTC ns, ``ended_utc_ns`` None while one is open."""

    run: str
    probe: str
    kind: str
    opened_utc_ns: int
    ended_utc_ns: int | None
    ended_why: str | None
    sent_bytes: int


class Sessions:
    """The table of sessions."""

    def __init__(self, read: Opening, write: Opening) -> None:
        self._read, self._write = read, write

    def open(self, probe: str, run: str, kind: str, budget_bytes: int, lifetime_s: float) -> str:
        """Write down a new session; its id has 128 random bits."""
        session, now = secrets.token_hex(16), time.time_ns()
        with self._write() as connection:
            connection.execute(
                "INSERT INTO sessions (id, probe, run, kind, budget_bytes, opened_utc_ns, expires_utc_ns)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                (session, probe, run, kind, budget_bytes, now, now + int(lifetime_s * 1e9)),
            )
        return session

    def end(self, session: str, sent_bytes: int, why: str) -> None:
        """Write down its end, once: ``why`` is ``closed``, ``expired``, ``revoked`` or ``endpoint stopped``."""
        with self._write() as connection:
            connection.execute(
                "UPDATE sessions SET ended_utc_ns = ?, ended_why = ?, sent_bytes = ? WHERE id = ? AND ended_utc_ns IS NULL",
                (time.time_ns(), why, sent_bytes, session),
            )

    def end_abandoned(self) -> int:
        """End those that an endpoint left open when it died; how many. For its start, before it opens any."""
        with self._write() as connection:
            return connection.execute(
                "UPDATE sessions SET ended_utc_ns = ?, ended_why = 'endpoint died' WHERE ended_utc_ns IS NULL",
                (time.time_ns(),),
            ).rowcount

    def sent_since(self, probe: str, utc_ns: int) -> int:
        """Payload bytes of the probe's sessions opened since ``utc_ns``, those still open not counted."""
        with self._read() as connection:
            row = connection.execute(
                "SELECT coalesce(sum(sent_bytes), 0) FROM sessions WHERE probe = ? AND opened_utc_ns >= ?",
                (probe, utc_ns),
            ).fetchone()
        return int(row[0])

    def lone(self, probe: str | None = None, run: str | None = None) -> list[Lone]:
        """Runs that are known by their sessions only, one row each, the oldest first; of one probe, and one run of it, when named.
        The sessions of the hand-out check and of round trips asked all the time are none of them."""
        of = f"run NOT IN ('{CHECK_RUN}', '{ROUND_TRIPS_RUN}') AND " + (
            "(?1 IS NULL OR probe = ?1)" if run is None else "probe = ?1 AND run = ?2"
        )
        with self._read() as connection:
            rows = connection.execute(
                "SELECT run, probe, kind, min(opened_utc_ns),"  # noqa: S608  constants
                " iif(count(*) = count(ended_utc_ns), max(ended_utc_ns), NULL), max(ended_why), sum(sent_bytes) FROM sessions"
                f" WHERE {of} AND NOT EXISTS"
                " (SELECT 1 FROM runs WHERE runs.id = sessions.run AND runs.probe = sessions.probe)"
                " GROUP BY probe, run ORDER BY min(opened_utc_ns), run",
                (probe,) if run is None else (probe, run),
            ).fetchall()
        return [Lone(*row) for row in rows]

    def open_since(self) -> dict[str, int]:
        """By probe, when the oldest session opened that has not ended, UTC ns."""
        with self._read() as connection:
            rows = connection.execute(
                "SELECT probe, min(opened_utc_ns) FROM sessions WHERE ended_utc_ns IS NULL GROUP BY probe"
            ).fetchall()
        return dict(rows)

    def all(self) -> list[SessionRow]:
        """Every session, oldest first."""
        with self._read() as connection:
            rows = connection.execute(
                "SELECT id, probe, run, kind, budget_bytes, opened_utc_ns, expires_utc_ns, ended_utc_ns, ended_why, sent_bytes"
                " FROM sessions ORDER BY opened_utc_ns, id"
            ).fetchall()
        return [SessionRow(*row) for row in rows]
