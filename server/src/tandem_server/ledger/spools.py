"""The newest report of each probe's spool, kept from pass to pass: a probe that has been silent for months is asked for once."""

from __future__ import annotations

from tandem_server.ledger.records import RecordCounts
from tandem_server.ledger.report import SpoolReport

_RECENT_NS = 3600 * 10**9


class Spools:
    """``refresh`` first, once a pass; then ``of`` answers of memory, but for what it was never asked for. StoreDown, QueryError."""

    def __init__(self, records: RecordCounts) -> None:
        self._records = records
        self._newest: dict[str, SpoolReport | None] = {}
        self._of_boot: dict[tuple[str, str], str | None] = {}
        self._old: dict[tuple[str, str], SpoolReport | None] = {}
        self._asked_utc_ns: int | None = None

    def refresh(self, now_utc_ns: int) -> dict[str, SpoolReport]:
        """What was told since the last pass; the newest of each probe that told anything in all passes so far."""
        since = now_utc_ns - _RECENT_NS if self._asked_utc_ns is None else self._asked_utc_ns - _RECENT_NS
        for report in self._records.reports(None, since):
            self._keep(report)
        self._asked_utc_ns = now_utc_ns
        return {probe: report for probe, report in self._newest.items() if report is not None}

    def of(self, probe: str, boot: str | None) -> SpoolReport | None:
        """The newest report of the spool that the records of ``boot`` are of; of the probe's newest where nothing told of that boot."""
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
        if (probe, spool) not in self._old:  # another card, which tells no more
            told = [report for report in self._records.reports(probe) if report.spool == spool]
            self._old[probe, spool] = max(told, key=lambda report: report.utc_ns, default=None)
        return self._old[probe, spool] or newest

    def _keep(self, report: SpoolReport) -> None:
        was = self._newest.get(report.probe)
        if was is None or was.utc_ns <= report.utc_ns:
            self._newest[report.probe] = report
