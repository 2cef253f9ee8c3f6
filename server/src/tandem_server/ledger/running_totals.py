"""The ledger of all runs, kept up to date: only runs that something happened to, and those that still lack something, are looked at.

What is settled is in the registry's sums (``registry/ledger.py``). A run that lacks something is looked at again the more seldom
the older it is, and at once when its manifest or one of its files came, or when the probe's spool has settled what is as old as the run.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from tandem.schema.line_protocol import tag_fault
from tandem_server.ledger.accounts import Spools
from tandem_server.ledger.reader import known_of, span_of
from tandem_server.ledger.records import RecordCounts
from tandem_server.ledger.runs import Known, Promise, RunRow, counted_row, judge, judge_lone, promise_of, with_own
from tandem_server.registry import DueRun, JudgedRun, Registry, Run, Seen, Unfinished

_S = 10**9
_DAY_NS = 86_400 * _S
_SOONEST_NS, _LATEST_NS = 60 * _S, 7 * _DAY_NS
_OF_AGE = 20
"""A run that ended a day ago is looked at again after a twentieth of that; after a week at the latest."""
_AT_ONCE = 100
_LONGEST_NAME = 64
_MOST = 10**12
"""A manifest may promise what it likes: sums over all runs must fit."""


class RunningTotals:
    """``retention_days``: after which the database forgets; None: never."""

    def __init__(self, registry: Registry, records: RecordCounts, retention_days: int | None) -> None:
        self._registry, self._records, self._retention_days = registry, records, retention_days
        self._spools = Spools(records)
        self._seen: dict[str, Seen] = {}
        self._going: dict[tuple[str, str], Unfinished] = {}

    def bring_up(self, now_utc_ns: int, budget_s: float) -> int:
        """Look at what is due, for about ``budget_s`` at the most: the rest is due next time. How many runs. StoreDown, QueryError,
        sqlite3.Error: what was judged before is kept."""
        rows, began_s, looked = self._registry.ledger_runs, time.monotonic(), 0
        oldest = None if self._retention_days is None else now_utc_ns - self._retention_days * _DAY_NS
        if oldest is not None:
            rows.expire(oldest)
        self._seen = self._registry.seen.all()
        self._going = {(one.probe, one.name): one for one in self._registry.pending_uploads.unfinished()}
        reports = self._spools.refresh(now_utc_ns)
        settled = [
            one
            for one in rows.unheard()
            if (report := reports.get(one.probe)) is not None and one.ended_utc_ns < report.settled_before_utc_ns
        ]
        if settled:
            rows.touch(settled)
        while due := rows.due(now_utc_ns, _AT_ONCE):
            self._judge(due, oldest, now_utc_ns)
            looked += len(due)
            if time.monotonic() - began_s >= budget_s:
                break
        return looked

    def _judge(self, due: Sequence[DueRun], oldest: int | None, now: int) -> None:
        found: list[tuple[DueRun, RunRow, str]] = []
        fresh: list[tuple[DueRun, Run, Promise]] = []
        for one in due:
            run = self._registry.runs.get(one.run)
            if run is None or run.probe != one.probe:
                found += [(one, row, "") for row in self._lone(one, now)]
            elif known := self._registry.counted.complete_runs(one.probe, one.run):
                found.append((one, counted_row(known[0], oldest), _campaign(run.manifest)))
            else:
                own = self._registry.traces.of_run(run.probe, run.id)
                fresh.append((one, run, with_own(promise_of(run), own)))
        arrived, complete = self._arrived([promise for _, _, promise in fresh], now), []
        for one, run, promise in fresh:
            of_run = arrived.get((promise.probe, promise.id), {})
            row = judge(promise, of_run, self._known(promise), oldest, with_files=True)
            found.append((one, row, _campaign(run.manifest)))
            if row.state == "complete":
                complete.append(row)
        self._registry.ledger_runs.keep([self._row(one, row, campaign, now) for one, row, campaign in found])
        self._registry.counted.keep_runs(
            [(r.id, {n: a for n, (_, a) in r.records.items()}, r.files, r.ended_utc_ns) for r in complete]
        )

    def _lone(self, one: DueRun, now: int) -> list[RunRow]:
        known = Known(self._spools.of(one.probe, None), self._last_seen(one.probe), {}, frozenset(), {})
        return [judge_lone(lone, known, now) for lone in self._registry.sessions.lone(one.probe, one.run)]

    def _arrived(self, promises: Sequence[Promise], now: int) -> Mapping[tuple[str, str], dict[str, int]]:
        if not promises:
            return {}
        return self._records.of_named([promise.id for promise in promises], *span_of(promises, now))

    def _known(self, promise: Promise) -> Known:
        """What is known of the probe, and of the run's own files: nothing else of all that it ever sent is read."""
        report, seen = self._spools.of(promise.probe, promise.boot), self._last_seen(promise.probe)
        return known_of(self._registry, promise, report, seen, self._going)

    def _last_seen(self, probe: str) -> int | None:
        seen = self._seen.get(probe)
        return None if seen is None else seen.last_utc_ns

    def _row(self, one: DueRun, row: RunRow, campaign: str, now: int) -> JudgedRun:
        ended = row.ended_utc_ns or row.received_utc_ns or one.ended_utc_ns
        report = self._spools.of(one.probe, None)
        promised, arrived, files, received = (min(count, _MOST) for count in row.counts)
        due = None
        if row.state not in ("complete", "expired"):
            wait_ns = min(_LATEST_NS, max(_SOONEST_NS, (now - ended) // _OF_AGE))
            due = now + (_SOONEST_NS if row.state == "under_way" else wait_ns)
        return JudgedRun(
            one.probe,
            one.run,
            one.touched,
            campaign,
            row.state,
            row.status.startswith("failed"),
            promised,
            arrived,
            files,
            received,
            any(lack.what != "file" for lack in row.missing),
            any(lack.what == "file" for lack in row.missing),
            ended,
            0 if report is None else max(0, report.settled_before_utc_ns),
            due,
        )


def _campaign(manifest: Mapping[str, Any]) -> str:
    """Its name, '' without one. A manifest comes from outside: what cannot be a tag is none."""
    campaign = manifest.get("campaign")
    name = campaign.get("name") if isinstance(campaign, Mapping) else None
    fits = isinstance(name, str) and len(name) <= _LONGEST_NAME and name.isprintable() and tag_fault(name) is None
    return name if fits and isinstance(name, str) else ""
