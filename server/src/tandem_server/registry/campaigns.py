"""Campaigns queued for probes: pushed by people, taken by the probes, reported on by them."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tandem.schema.campaign_queue import MOST_QUEUED, SETTLED, Pushed, Report
from tandem.schema.manifest import new_id
from tandem_server.registry.table import Table

SCHEMA = """
CREATE TABLE campaigns (
    id TEXT PRIMARY KEY,
    probe TEXT NOT NULL REFERENCES probes(name),
    name TEXT NOT NULL,
    file TEXT NOT NULL,
    text TEXT,
    short INTEGER NOT NULL,
    label TEXT,
    paths TEXT NOT NULL,
    allow_substitutes INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    pushed_utc_ns INTEGER NOT NULL,
    withdrawn_utc_ns INTEGER,
    state TEXT NOT NULL,
    reason TEXT,
    progress TEXT NOT NULL,
    state_utc_ns INTEGER NOT NULL
) STRICT;
CREATE INDEX campaigns_of_probe ON campaigns (probe, pushed_utc_ns);
"""
FORMS = """
ALTER TABLE campaigns ADD COLUMN form TEXT NOT NULL DEFAULT 'paper';
UPDATE campaigns SET form = 'short' WHERE short;
ALTER TABLE campaigns DROP COLUMN short;
"""
ZONES = "ALTER TABLE campaigns ADD COLUMN timezone TEXT;"

_COLUMNS = (
    "id, probe, name, file, form, label, paths, allow_substitutes, priority, pushed_utc_ns, withdrawn_utc_ns,"
    " state, reason, progress, state_utc_ns, timezone"
)


class QueueFull(ValueError):  # noqa: N818  (it reads as what it is)
    """A probe's queue takes no more."""


@dataclass(frozen=True, slots=True)
class QueuedCampaign:
    """One row. ``progress``: ``steps`` and ``runs`` as the probe reported them last; times in UTC ns, None: never."""

    pushed: Pushed
    probe: str
    withdrawn_utc_ns: int | None
    state: str
    reason: str | None
    progress: dict[str, Any]
    state_utc_ns: int

    @property
    def settled(self) -> bool:
        """Whether nothing more will come."""
        return self.state in SETTLED


class CampaignQueue(Table):
    """The table of pushed campaigns. Each is one probe's."""

    def push(
        self,
        probes: Sequence[str],
        name: str,
        file: str,
        text: str | None,
        *,
        form: str,
        label: str | None,
        paths: dict[str, str],
        allow_substitutes: bool,
        priority: int,
        timezone: str | None = None,
    ) -> list[QueuedCampaign]:
        """Queue a campaign for each probe, all or none. ``text`` None: the probe has a campaign of that name itself. QueueFull."""
        rows = []
        with self._write() as connection:
            for probe in probes:
                waiting = connection.execute(
                    "SELECT count(*) FROM campaigns WHERE probe = ? AND state NOT IN ('done', 'refused', 'withdrawn')",
                    (probe,),
                ).fetchone()[0]
                if waiting >= MOST_QUEUED:
                    raise QueueFull(f"{probe} has {waiting} campaigns in its queue already")
                now = time.time_ns()
                one = Pushed(
                    new_id("push"), name, file, form, label, paths, allow_substitutes, priority, now, timezone=timezone
                )
                connection.execute(
                    f"INSERT INTO campaigns ({_COLUMNS}, text)"  # noqa: S608  constants of this module
                    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, 'queued', NULL, '{}', ?, ?, ?)",
                    (
                        one.id,
                        probe,
                        name,
                        file,
                        form,
                        label,
                        json.dumps(paths),
                        allow_substitutes,
                        priority,
                        now,
                        now,
                        timezone,
                        text,
                    ),
                )
                rows.append(QueuedCampaign(one, probe, None, "queued", None, {}, now))
        return rows

    def of_probe(self, probe: str) -> list[Pushed]:
        """What is not settled, in its turn."""
        found = [row.pushed for row in self.all(probe) if not row.settled]
        return sorted(found, key=lambda one: one.turn)

    def under_way_since(self) -> dict[str, int]:
        """By probe, since when a campaign of its queue is under way, UTC ns."""
        rows = self._rows("SELECT probe, min(state_utc_ns) FROM campaigns WHERE state = 'running' GROUP BY probe")
        return dict(rows)

    def text(self, campaign: str, probe: str) -> tuple[str | None] | None:
        """The file (None: the probe has it itself) of a campaign of this probe; None when it has no such campaign."""
        row = self._row("SELECT text FROM campaigns WHERE id = ? AND probe = ?", (campaign, probe))
        return None if row is None else (row[0],)

    def report(self, campaign: str, probe: str, report: Report) -> QueuedCampaign | None:
        """What the probe reports; the row after it. A settled one stays as it is. None: the probe has no such campaign."""
        progress = json.dumps({"steps": report.steps, "runs": report.runs}, default=dict, sort_keys=True)
        with self._write() as connection:
            connection.execute(
                "UPDATE campaigns SET state_utc_ns = CASE WHEN state = ?1 AND reason IS ?2 THEN state_utc_ns ELSE ?4 END,"
                " state = ?1, reason = ?2, progress = ?3"
                " WHERE id = ?5 AND probe = ?6 AND state NOT IN ('done', 'refused', 'withdrawn')",
                (report.state, report.reason, progress, time.time_ns(), campaign, probe),
            )
            row = connection.execute(
                f"SELECT {_COLUMNS} FROM campaigns WHERE id = ? AND probe = ?",  # noqa: S608  constants of this module
                (campaign, probe),
            ).fetchone()
        return None if row is None else _row(row)

    def withdraw(self, campaigns: Sequence[str]) -> list[QueuedCampaign]:
        """Take them back: one that is queued is settled at once, another when the probe has ended it. Settled ones stay. The rows."""
        now, rows = time.time_ns(), []
        with self._write() as connection:
            for campaign in campaigns:
                connection.execute(
                    "UPDATE campaigns SET withdrawn_utc_ns = coalesce(withdrawn_utc_ns, ?1),"
                    " state_utc_ns = CASE state WHEN 'queued' THEN ?1 ELSE state_utc_ns END,"
                    " state = CASE state WHEN 'queued' THEN 'withdrawn' ELSE state END"
                    " WHERE id = ?2 AND state NOT IN ('done', 'refused', 'withdrawn')",
                    (now, campaign),
                )
                rows += connection.execute(
                    f"SELECT {_COLUMNS} FROM campaigns WHERE id = ?",  # noqa: S608  constants of this module
                    (campaign,),
                ).fetchall()
        return [_row(row) for row in rows]

    def all(self, probe: str | None = None) -> list[QueuedCampaign]:
        """Every row in the order of the pushes, of one probe when named."""
        rows = self._rows(
            f"SELECT {_COLUMNS} FROM campaigns"  # noqa: S608  constants of this module
            " WHERE ?1 IS NULL OR probe = ?1 ORDER BY pushed_utc_ns, id",
            (probe,),
        )
        return [_row(row) for row in rows]


def _row(row: sqlite3.Row | tuple[Any, ...]) -> QueuedCampaign:
    pushed = Pushed(
        row[0], row[2], row[3], row[4], row[5], json.loads(row[6]), bool(row[7]), row[8], row[9], row[10] is not None,
        row[15],
    )  # fmt: skip
    return QueuedCampaign(pushed, row[1], row[10], row[11], row[12], json.loads(row[13]), row[14])
