"""One run's row of the ledger, found without looking at any other run and without writing anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tandem_server.ledger.promises import Promise, promise_of, with_own
from tandem_server.ledger.records import RecordCounts
from tandem_server.ledger.report import SpoolReport
from tandem_server.ledger.runs import Known, RunRow, counted_row, judge
from tandem_server.ledger.spools import Spools
from tandem_server.registry import Registry, Run, Unfinished

_DAY_NS = 86_400 * 10**9
_SLACK_NS = 3600 * 10**9


def row_of(registry: Registry, records: RecordCounts, run: Run, retention_days: int | None, now_utc_ns: int) -> RunRow:
    """The row that the ledger would have now. StoreDown, QueryError, sqlite3.Error."""
    oldest = None if retention_days is None else now_utc_ns - retention_days * _DAY_NS
    if done := registry.counted.complete_runs(run.probe, run.id):
        return counted_row(done[0], oldest)
    promise = with_own(promise_of(run), registry.traces.of_run(run.probe, run.id))
    arrived = records.of_named([run.id], *span_of([promise], now_utc_ns)).get((run.probe, run.id), {})
    sight = registry.seen.all().get(run.probe)
    going = {(one.probe, one.name): one for one in registry.pending_uploads.unfinished(run.probe)}
    report = Spools(records).of(run.probe, promise.boot)
    known = known_of(registry, promise, report, None if sight is None else sight.last_utc_ns, going)
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
