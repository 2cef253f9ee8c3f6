"""The ledger as it is read: of every run and every probe's record account, from the registry and the database; or of one run."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tandem_server.ledger.accounts import Accounts, Spools
from tandem_server.ledger.numbers import SpoolAccount
from tandem_server.ledger.records import RecordCounts
from tandem_server.ledger.runs import (
    Known,
    Promise,
    RunRow,
    counted_row,
    judge,
    judge_lone,
    promise_of,
    totals,
    unpromised,
    with_own,
)
from tandem_server.ledger.states import SpoolReport, Tolerances
from tandem_server.ledger.watching import ProbeNow, probes_now
from tandem_server.registry import Registry, Run, TraceRow, Unfinished

FORMAT = "tandem-ledger/1"
_DAY_NS = 86_400 * 10**9
_SLACK_NS = 3600 * 10**9


@dataclass(frozen=True, slots=True)
class Ledger:
    """``runs`` in order of time; ``accounts`` by probe and spool; ``unpromised``: traces that no manifest promises."""

    made_utc_ns: int
    probes: list[ProbeNow]
    accounts: list[SpoolAccount]
    runs: list[RunRow]
    unpromised: list[TraceRow]
    tolerances: Tolerances

    @property
    def lacks(self) -> bool:
        """Whether anything promised is not here."""
        unsent = self.tolerances.unsent_after_s
        return any(run.missing and run.state != "under_way" for run in self.runs) or any(
            account.lacks(self.made_utc_ns, unsent) for account in self.accounts
        )

    def to_dict(self, *, incomplete: bool = False) -> dict[str, Any]:
        """As JSON has it; ``incomplete``: only the runs that lack something. The totals are those of all runs."""
        return {
            "format": FORMAT,
            "made_utc_ns": self.made_utc_ns,
            "complete": not self.lacks,
            "probes": [one.to_dict(self.made_utc_ns) for one in self.probes],
            "spools": [account.to_dict() for account in self.accounts],
            "runs": [row.to_dict() for row in self.runs if row.missing or not incomplete],
            "unpromised": [
                {"probe": row.probe, "run": row.run, "name": row.name, "bytes": row.bytes, "sha256": row.sha256}
                for row in self.unpromised
            ],
            "totals": totals(self.runs),
        }


class LedgerReader:
    """``with_files`` False: files are left out, and no run is kept as complete."""

    def __init__(
        self,
        registry: Registry,
        records: RecordCounts,
        tolerances: Tolerances,
        retention_days: int | None,
        *,
        with_files: bool = True,
    ) -> None:
        self._registry, self._records, self._tolerances = registry, records, tolerances
        self._retention_days, self._with_files = retention_days, with_files

    def read(self, probe: str | None = None, *, recount: bool = False) -> Ledger:
        """The ledger of one probe, or of all; ``recount``: with what was found complete before. StoreDown, QueryError, sqlite3.Error."""
        now, registry = time.time_ns(), self._registry
        if recount:
            registry.counted.forget(probe)
        probes = [
            one for one in probes_now(registry, self._records, self._tolerances, now) if probe in (None, one.probe.name)
        ]
        reports = self._records.reports(probe)
        accounts = Accounts(registry, self._records, self._retention_days, now)
        by_probe: dict[str, list[SpoolReport]] = defaultdict(list)
        for report in reports:
            by_probe[report.probe].append(report)
        found = [
            account
            for one in probes
            for account in accounts.of_probe(one.probe.name, one.probe.created_utc_ns, by_probe[one.probe.name])
        ]
        runs, others = self._runs(probe, now, {one.probe.name: one for one in probes}, by_probe)
        return Ledger(now, probes, found, runs, others, self._tolerances)

    def _runs(
        self, probe: str | None, now: int, probes: dict[str, ProbeNow], reports: dict[str, list[SpoolReport]]
    ) -> tuple[list[RunRow], list[TraceRow]]:
        registry = self._registry
        oldest = None if self._retention_days is None else now - self._retention_days * _DAY_NS
        promises = [promise_of(run) for run in registry.runs.each(probe, uncounted=True)]
        arrived = self._records.of_runs(probe, span_of(promises, now)[0]) if promises else {}
        traces = registry.traces.received(probe)
        of_run: dict[tuple[str, str | None], list[TraceRow]] = defaultdict(list)
        for row in traces:
            of_run[row.probe, row.run].append(row)
        promises = [with_own(one, of_run[one.probe, one.id]) for one in promises]
        known = _knowledge(probes, reports, traces, registry)
        rows = [counted_row(run, oldest) for run in registry.counted.complete_runs(probe)]
        settled = frozenset(row.id for row in rows)
        fresh = [
            judge(
                one,
                arrived.get((one.probe, one.id), {}),
                known(one.probe, one.boot),
                oldest,
                with_files=self._with_files,
            )
            for one in promises
        ]
        if self._with_files:
            done = [row for row in fresh if row.state == "complete"]
            registry.counted.keep_runs(
                [(r.id, {n: a for n, (_, a) in r.records.items()}, r.files, r.ended_utc_ns) for r in done]
            )
        lone = [judge_lone(one, known(one.probe, None), now) for one in registry.sessions.lone(probe)]
        named = {one.id: frozenset(file.name for file in one.files) for one in promises}
        rows = sorted([*rows, *fresh, *lone], key=lambda row: (row.ended_utc_ns or row.received_utc_ns or now, row.id))
        tables = registry.trace_tables.of(probe) if self._with_files else {}
        return [row.with_tables(tables) for row in rows], unpromised(traces, named, settled)


def _knowledge(
    probes: dict[str, ProbeNow], reports: dict[str, list[SpoolReport]], traces: Sequence[TraceRow], registry: Registry
) -> Callable[[str, str | None], Known]:
    of_probe: dict[str, dict[str, TraceRow]] = defaultdict(dict)
    for row in traces:
        of_probe[row.probe][row.name] = row
    contents = {name: frozenset(row.sha256 for row in rows.values()) for name, rows in of_probe.items()}
    going: dict[str, dict[str, Unfinished]] = defaultdict(dict)
    for one in registry.pending_uploads.unfinished():
        going[one.probe][one.name] = one
    newest: dict[tuple[str, str | None], SpoolReport] = {}
    for name, own in reports.items():
        by_time = sorted(own, key=lambda report: report.utc_ns)
        of_spool = {report.spool: report for report in by_time}
        newest |= {(name, report.boot): of_spool[report.spool] for report in by_time}
        if by_time:
            newest[name, None] = by_time[-1]

    def known(probe: str, boot: str | None) -> Known:
        now = probes.get(probe)
        return Known(
            newest.get((probe, boot)) or newest.get((probe, None)),
            None if now is None or now.seen is None else now.seen.last_utc_ns,
            of_probe.get(probe, {}),
            contents.get(probe, frozenset()),
            going.get(probe, {}),
        )

    return known


def row_of(registry: Registry, records: RecordCounts, run: Run, retention_days: int | None, now_utc_ns: int) -> RunRow:
    """The row of one run as the ledger would have it now, without looking at another or writing. StoreDown, QueryError, sqlite3.Error."""
    oldest = None if retention_days is None else now_utc_ns - retention_days * _DAY_NS
    if done := registry.counted.complete_runs(run.probe, run.id):
        return counted_row(done[0], oldest)
    promise = with_own(promise_of(run), registry.traces.of_run(run.probe, run.id))
    arrived = records.of_named([run.id], *span_of([promise], now_utc_ns)).get((run.probe, run.id), {})
    seen = registry.seen.all().get(run.probe)
    going = {(one.probe, one.name): one for one in registry.pending_uploads.unfinished(run.probe)}
    report = Spools(records).of(run.probe, promise.boot)
    known = known_of(registry, promise, report, None if seen is None else seen.last_utc_ns, going)
    return judge(promise, arrived, known, oldest, with_files=True)


def known_of(
    registry: Registry,
    promise: Promise,
    report: SpoolReport | None,
    last_seen_utc_ns: int | None,
    going: Mapping[tuple[str, str], Unfinished],
) -> Known:
    """What is known of the probe, and of the run's own files: nothing else of all that it ever sent is read."""
    named = {file.name: registry.traces.named(promise.probe, file.name) for file in promise.files}
    hashes = {file.sha256 for file in promise.files if file.sha256 is not None and named[file.name] is None}
    contents = {sha256 for sha256 in hashes if registry.traces.of_content(promise.probe, sha256) is not None}
    return Known(
        report,
        last_seen_utc_ns,
        {name: row for name, row in named.items() if row is not None},
        frozenset(contents),
        {name: found for name in named if (found := going.get((promise.probe, name))) is not None},
    )


def span_of(promises: Sequence[Promise], now_utc_ns: int) -> tuple[int | None, int]:
    """Between which times the records of these runs are; the first None when that is not known of one. UTC ns."""
    started = [promise.started_utc_ns for promise in promises]
    known = [utc_ns for utc_ns in started if utc_ns is not None]
    since = max(0, min(known) - _SLACK_NS) if len(known) == len(started) else None
    ends = [min(promise.ended_utc_ns or now_utc_ns, now_utc_ns) for promise in promises]
    return since, max(ends) + _SLACK_NS
