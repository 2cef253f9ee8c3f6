"""Measurement sessions as they are kept for accounting, and every run whose manifest arrived. The endpoint holds open ones in memory."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tandem.schema.manifest import CHECK_RUN, ROUND_TRIPS_RUN
from tandem_server.registry.table import Table

SCHEMA = """
CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    probe TEXT NOT NULL REFERENCES probes(name),
    run TEXT NOT NULL,
    kind TEXT NOT NULL,
    budget_bytes INTEGER NOT NULL,
    opened_utc_ns INTEGER NOT NULL,
    expires_utc_ns INTEGER NOT NULL,
    ended_utc_ns INTEGER,
    ended_why TEXT,
    sent_bytes INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX sessions_of_probe ON sessions (probe, opened_utc_ns);
CREATE TABLE runs (
    id TEXT PRIMARY KEY,
    probe TEXT NOT NULL REFERENCES probes(name),
    manifest TEXT NOT NULL,
    received_utc_ns INTEGER NOT NULL,
    status TEXT NOT NULL
) STRICT;
CREATE INDEX runs_by_time ON runs (received_utc_ns);
"""

_NEAR_NS = 2 * 86_400 * 10**9
_AT_ONCE = 100
"""Manifests that are held at once: each up to 1 MB."""
_OF_CAMPAIGN = "CASE WHEN json_valid(manifest) THEN ?4 IN ({}) ELSE 0 END".format(
    ", ".join(f"json_extract(manifest, '$.campaign.{key}')" for key in ("name", "push", "label"))
)

NO_CAMPAIGN = ""
"""Stands for a campaign's name where the runs of none are meant: a kit without a campaign measures too."""
_OF_NONE = "?4 IS NOT NULL AND NOT (json_valid(manifest) AND json_extract(manifest, '$.campaign.name') IS NOT NULL)"


class LedgerConflict(ValueError):  # noqa: N818  (it reads as what it is)
    """The run's id is taken by another probe's run."""


@dataclass(frozen=True, slots=True)
class Run:
    """One row: the manifest as it arrived, ``status`` ``measured`` or ``failed: why`` as the probe reported it."""

    id: str
    probe: str
    manifest: dict[str, Any]
    received_utc_ns: int
    status: str


class Runs(Table):
    """The table of runs."""

    def put(self, run: str, probe: str, manifest: dict[str, Any]) -> int:
        """Enter a run, or replace it: the last manifest holds, the first arrival's time stays. Its length as stored. LedgerConflict."""
        text = json.dumps(manifest, separators=(",", ":"), sort_keys=True)
        with self._write() as connection:
            before = connection.execute("SELECT probe, manifest FROM runs WHERE id = ?", (run,)).fetchone()
            if before is not None and before[0] != probe:
                raise LedgerConflict(f"run {run} belongs to another probe")
            if before is not None and before[1] != text:  # another promise: what was found complete is not
                connection.execute("DELETE FROM complete_runs WHERE run = ?", (run,))
            connection.execute(
                "INSERT INTO runs (id, probe, manifest, received_utc_ns, status) VALUES (?, ?, ?, ?, ?)"
                " ON CONFLICT (id) DO UPDATE SET manifest = excluded.manifest, status = excluded.status",
                (run, probe, text, time.time_ns(), _status(manifest)),
            )
        return len(text)

    def get(self, run: str) -> Run | None:
        """The run with this id, if it arrived."""
        row = self._row("SELECT id, probe, manifest, received_utc_ns, status FROM runs WHERE id = ?", (run,))
        return None if row is None else _run(row)

    def of_pair(self, probe: str, pair: str, about_utc_ns: int) -> list[Run]:
        """The runs of ``probe`` that name this pair and arrived within two days of ``about_utc_ns``, at most 64: a pair's manifests go up
        one after the other, and the others need not be read."""
        rows = self._rows(
            "SELECT id, probe, manifest, received_utc_ns, status FROM runs"
            " WHERE received_utc_ns BETWEEN ?1 - ?2 AND ?1 + ?2 AND probe = ?3"
            # What a manifest holds is not trusted to be JSON as SQLite knows it (1e999).
            " AND CASE WHEN json_valid(manifest) THEN json_extract(manifest, '$.pair') END = ?4"
            " ORDER BY received_utc_ns, id LIMIT 64",
            (about_utc_ns, _NEAR_NS, probe, pair),
        )
        return [_run(row) for row in rows]

    def newest(self) -> dict[str, int]:
        """By probe, when its newest manifest came, UTC ns."""
        rows = self._rows("SELECT probe, max(received_utc_ns) FROM runs GROUP BY probe")
        return dict(rows)

    def all(self, probe: str | None = None, *, uncounted: bool = False) -> list[Run]:
        """Every run in the order of arrival, of one probe when named; ``uncounted``: without those that were found complete."""
        return list(self.each(probe, uncounted=uncounted))

    def each(self, probe: str | None = None, *, uncounted: bool = False, campaign: str | None = None) -> Iterator[Run]:
        """As ``all``, a few held at a time; ``campaign``: only those of a campaign of this name, that was pushed with this id, or whose
        runs a person labelled so; NO_CAMPAIGN: only those of none."""
        after: tuple[int, str] = (-1, "")
        of = "1" if campaign is None else _OF_NONE if campaign == NO_CAMPAIGN else _OF_CAMPAIGN
        while True:
            with self._read() as connection:
                rows = connection.execute(
                    "SELECT id, probe, manifest, received_utc_ns, status FROM runs"  # noqa: S608  constants of this module
                    " WHERE received_utc_ns >= ?1 AND (received_utc_ns, id) > (?1, ?2) AND (?3 IS NULL OR probe = ?3)"
                    f" AND {of} AND (NOT ?5 OR id NOT IN (SELECT run FROM complete_runs))"
                    " ORDER BY received_utc_ns, id LIMIT ?6",
                    (*after, probe, campaign, uncounted, _AT_ONCE),
                ).fetchall()
            yield from map(_run, rows)
            if len(rows) < _AT_ONCE:
                return
            after = rows[-1][3], rows[-1][0]


def _run(row: tuple[str, str, str, int, str]) -> Run:
    return Run(row[0], row[1], json.loads(row[2]), row[3], row[4])


def _status(manifest: dict[str, Any]) -> str:
    failure = manifest.get("failure")
    if failure:
        return f"failed: {failure.get('reason', 'no reason told')}"
    return "measured" if manifest.get("result") else "failed: no result"


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


class Sessions(Table):
    """The table of sessions."""

    def open(self, probe: str, run: str, kind: str, budget_bytes: int, lifetime_s: float) -> str:
        """Write down a new session; its id has 128 random bits."""
        session, now = secrets.token_hex(16), time.time_ns()
        self._do(
            "INSERT INTO sessions (id, probe, run, kind, budget_bytes, opened_utc_ns, expires_utc_ns)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            (session, probe, run, kind, budget_bytes, now, now + int(lifetime_s * 1e9)),
        )
        return session

    def end(self, session: str, sent_bytes: int, why: str) -> None:
        """Write down its end, once: ``why`` is ``closed``, ``expired``, ``revoked`` or ``endpoint stopped``."""
        self._do(
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
        row = self._row(
            "SELECT coalesce(sum(sent_bytes), 0) FROM sessions WHERE probe = ? AND opened_utc_ns >= ?", (probe, utc_ns)
        )
        return int(row[0])

    def lone(self, probe: str | None = None, run: str | None = None) -> list[Lone]:
        """Runs that are known by their sessions only, one row each, the oldest first; of one probe, and one run of it, when named.
        The sessions of the hand-out check and of round trips measured all the time are none of them."""
        of = f"run NOT IN ('{CHECK_RUN}', '{ROUND_TRIPS_RUN}') AND " + (
            "(?1 IS NULL OR probe = ?1)" if run is None else "probe = ?1 AND run = ?2"
        )
        rows = self._rows(
            "SELECT run, probe, kind, min(opened_utc_ns),"  # noqa: S608  constants
            " iif(count(*) = count(ended_utc_ns), max(ended_utc_ns), NULL), max(ended_why), sum(sent_bytes) FROM sessions"
            f" WHERE {of} AND NOT EXISTS"
            " (SELECT 1 FROM runs WHERE runs.id = sessions.run AND runs.probe = sessions.probe)"
            " GROUP BY probe, run ORDER BY min(opened_utc_ns), run",
            (probe,) if run is None else (probe, run),
        )
        return [Lone(*row) for row in rows]

    def open_since(self) -> dict[str, int]:
        """By probe, when the oldest session opened that has not ended, UTC ns."""
        rows = self._rows("SELECT probe, min(opened_utc_ns) FROM sessions WHERE ended_utc_ns IS NULL GROUP BY probe")
        return dict(rows)

    def all(self) -> list[SessionRow]:
        """Every session, oldest first."""
        rows = self._rows(
            "SELECT id, probe, run, kind, budget_bytes, opened_utc_ns, expires_utc_ns, ended_utc_ns, ended_why, sent_bytes"
            " FROM sessions ORDER BY opened_utc_ns, id"
        )
        return [SessionRow(*row) for row in rows]
