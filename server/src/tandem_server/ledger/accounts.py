"""The record account of each probe: asks the database for what is not yet counted, and keeps what need not be counted again."""

from __future__ import annotations

from collections.abc import Collection

from tandem_server.ledger.numbers import (
    Found,
    SpoolAccount,
    account_of,
    account_untold,
    how_many,
    spools_of,
    sum_of,
)
from tandem_server.ledger.records import RecordCounts
from tandem_server.ledger.report import SpoolReport
from tandem_server.registry import CountedNumbers, Registry

_SLACK_NS = 3600 * 10**9
"""A record may be older than the moment at which it got its number: a run's are written when it has ended."""
_DAY_NS = 86_400 * 10**9


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
                accounts.append(account_untold(probe, [boots[b] for b in names]))
                continue
            told = [by_boot[b] for b in names if b in by_boot]
            last = max(told, key=lambda report: (report.made, report.utc_ns))
            only = None if len(of_spools) == 1 else frozenset(names)
            expired = self._oldest_utc_ns is not None and created_utc_ns < self._oldest_utc_ns
            counted = self._counted(last, max(r.settled for r in told), only, kept.get(spool), expired=expired)
            highest = max((boots[b].high for b in names if b in boots), default=0)
            above = 0
            if max(last.made, highest) > counted.through:
                above, _ = self._records.between(probe, only, counted.through, None, counted.from_utc_ns)
            current = any(report.utc_ns == newest for report in told)
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
