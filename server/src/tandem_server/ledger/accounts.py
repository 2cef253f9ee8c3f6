"""The record account of each probe: asks the database for what is not yet counted, and keeps what need not be counted again. And the newest
report of each probe's spool, kept from pass to pass."""

from __future__ import annotations

from collections.abc import Collection

from tandem_server.ledger.numbers import (
    Found,
    SpoolAccount,
    account_of,
    account_unreported,
    how_many,
    spools_of,
    sum_of,
)
from tandem_server.ledger.records import RecordCounts
from tandem_server.ledger.states import SpoolReport
from tandem_server.registry import CountedNumbers, Registry

_SLACK_NS = 3600 * 10**9
"""A record may be older than the moment at which it got its number: a run's are written when it has ended."""
_DAY_NS = 86_400 * 10**9
_RECENT_NS = 3600 * 10**9


class Accounts:
    """``retention_days``: after which the database forgets; None: never."""

    def __init__(self, registry: Registry, records: RecordCounts, retention_days: int | None, now_utc_ns: int) -> None:
        self._registry, self._records, self._now = registry, records, now_utc_ns
        self._oldest_utc_ns = None if retention_days is None else now_utc_ns - retention_days * _DAY_NS

    def of_probe(self, probe: str, created_utc_ns: int, reports: Collection[SpoolReport]) -> list[SpoolAccount]:
        """One account a spool, the newest last. ``reports``: the newest of each boot of this probe."""
        kept = self._registry.counted.numbers(probe)
        by_boot = {report.boot: report for report in reports}
        newest = max((report.utc_ns for report in reports), default=0)
        whole = not by_boot or any(report.spool not in kept for report in reports)
        # Of spools that are no longer in use nothing new is looked for.
        since = None if whole else min(kept[r.spool].from_utc_ns for r in reports if r.utc_ns == newest)
        boots = self._records.of_boots(probe, since)
        accounts: list[SpoolAccount] = []
        of_spools = spools_of(boots, by_boot)
        for spool, names in of_spools.items():
            if spool is None:
                accounts.append(account_unreported(probe, [boots[b] for b in names]))
                continue
            own = [by_boot[b] for b in names if b in by_boot]
            last = max(own, key=lambda report: (report.made, report.utc_ns))
            only = None if len(of_spools) == 1 else frozenset(names)
            expired = self._oldest_utc_ns is not None and created_utc_ns < self._oldest_utc_ns
            counted = self._counted(last, max(r.settled for r in own), only, kept.get(spool), expired=expired)
            highest = max((boots[b].high for b in names if b in boots), default=0)
            above = 0
            if max(last.made, highest) > counted.through:
                above, _ = self._records.between(probe, only, counted.through, None, counted.from_utc_ns)
            current = any(report.utc_ns == newest for report in own)
            accounts.append(account_of(last, counted, len(names), highest, above, current=current))
        return sorted(accounts, key=lambda account: account.told_utc_ns or 0)

    def _counted(
        self,
        report: SpoolReport,
        through: int,
        boots: Collection[str] | None,
        kept: CountedNumbers | None,
        *,
        expired: bool,
    ) -> CountedNumbers:
        if kept is None:
            kept = CountedNumbers(report.first - 1, 0, 0, 0, 0, ())
        if through <= kept.through:
            return kept
        count, total = self._records.between(report.probe, boots, kept.through, through, kept.from_utc_ns or None)
        arrived, twice, gone, missing = count, 0, 0, kept.missing
        if (count, total) != (through - kept.through, sum_of(kept.through, through)):
            # Without the bound in time: what is older than it should be is not missing.
            there, first = Found(), kept.through + 1
            for part in self._records.numbers(report.probe, boots, kept.through, through, None):
                there.add(part)
            if expired and kept.through < report.first:  # counted from the beginning, which is older than what is kept
                gone = (through + 1 if there.lowest is None else there.lowest) - first
            arrived, twice = len(there), there.counted - len(there)
            missing = (*kept.missing, *there.missing(first + gone, through))
        now = CountedNumbers(
            through,
            max(0, report.settled_before_utc_ns - _SLACK_NS),
            kept.arrived + arrived,
            kept.twice + twice,
            kept.expired + gone,
            missing,
        )
        if how_many(now.missing) <= report.rejected + report.dropped:  # what nobody can explain is looked for again
            self._registry.counted.keep_numbers(report.probe, report.spool, now)
        return now


class Spools:
    """The newest report of each probe's spool: a probe that has been silent for months is looked up once. ``refresh`` first, once a pass;
    then ``of`` answers of memory, but for what was never requested of it. StoreDown, QueryError."""

    def __init__(self, records: RecordCounts) -> None:
        self._records = records
        self._newest: dict[str, SpoolReport | None] = {}
        self._of_boot: dict[tuple[str, str], str | None] = {}
        self._old: dict[tuple[str, str], SpoolReport | None] = {}
        self._refreshed_utc_ns: int | None = None

    def refresh(self, now_utc_ns: int) -> dict[str, SpoolReport]:
        """What was reported since the last pass; the newest of each probe that reported anything in all passes so far."""
        since = now_utc_ns - _RECENT_NS if self._refreshed_utc_ns is None else self._refreshed_utc_ns - _RECENT_NS
        for report in self._records.reports(None, since):
            self._keep(report)
        self._refreshed_utc_ns = now_utc_ns
        return {probe: report for probe, report in self._newest.items() if report is not None}

    def of(self, probe: str, boot: str | None) -> SpoolReport | None:
        """The newest report of the spool that the records of ``boot`` are of; of the probe's newest where no report has that boot."""
        if probe not in self._newest:
            self._newest[probe] = None
            for report in self._records.reports(probe):
                self._keep(report)
        newest = self._newest[probe]
        if boot is None or newest is None or boot == newest.boot:
            return newest
        key = (probe, boot)
        if key not in self._of_boot or (self._of_boot[key] is None):
            self._of_boot[key] = self._records.spool_of(probe, boot)
        spool = self._of_boot[key]
        if spool is None or spool == newest.spool:
            return newest
        if (probe, spool) not in self._old:  # another card, which reports no more
            own = [report for report in self._records.reports(probe) if report.spool == spool]
            self._old[probe, spool] = max(own, key=lambda report: report.utc_ns, default=None)
        return self._old[probe, spool] or newest

    def _keep(self, report: SpoolReport) -> None:
        was = self._newest.get(report.probe)
        if was is None or was.utc_ns <= report.utc_ns:
            self._newest[report.probe] = report
