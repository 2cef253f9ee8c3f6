"""The ledger: every run whose manifest arrived, and what came of it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tandem_server.registry.probes import Opening

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
    """One row: the manifest as it arrived, ``status`` ``measured`` or ``failed: why`` as the probe told it."""

    id: str
    probe: str
    manifest: dict[str, Any]
    received_utc_ns: int
    status: str


class Runs:
    """The table of runs."""

    def __init__(self, read: Opening, write: Opening) -> None:
        self._read, self._write = read, write

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
        with self._read() as connection:
            row = connection.execute(
                "SELECT id, probe, manifest, received_utc_ns, status FROM runs WHERE id = ?", (run,)
            ).fetchone()
        return None if row is None else _run(row)

    def of_pair(self, probe: str, pair: str, about_utc_ns: int) -> list[Run]:
        """The runs of ``probe`` that name this pair and arrived within two days of ``about_utc_ns``, at most 64: a pair's manifests go up
        one after the other, and the others need not be read."""
        with self._read() as connection:
            rows = connection.execute(
                "SELECT id, probe, manifest, received_utc_ns, status FROM runs"
                " WHERE received_utc_ns BETWEEN ?1 - ?2 AND ?1 + ?2 AND probe = ?3"
                # What a manifest holds is not trusted to be JSON as SQLite knows it (1e999).
                " AND CASE WHEN json_valid(manifest) THEN json_extract(manifest, '$.pair') END = ?4"
                " ORDER BY received_utc_ns, id LIMIT 64",
                (about_utc_ns, _NEAR_NS, probe, pair),
            ).fetchall()
        return [_run(row) for row in rows]

    def newest(self) -> dict[str, int]:
        """By probe, when its newest manifest came, UTC ns."""
        with self._read() as connection:
            rows = connection.execute("SELECT probe, max(received_utc_ns) FROM runs GROUP BY probe").fetchall()
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
