"""``ledger``, ``ledger_records`` and ``server_traces``: what was promised and what arrived, by probe and campaign, once a minute.

Neither the months that the database holds nor the runs that are settled cost anything: see ``RunningTotals``. What has to be counted at
all is counted for a few seconds a minute at the most; the rest waits for the next one.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator

from tandem.schema.record import Value
from tandem_server.ingest.periodic import PERIOD_S, Leased, own_line, put
from tandem_server.ledger.accounts import Accounts
from tandem_server.ledger.records import RecordCounts
from tandem_server.ledger.running_totals import RunningTotals
from tandem_server.registry import Registry
from tandem_server.store import QueryError, SeriesStore

_LOG = logging.getLogger("tandem.gateway")
LEASE = "ledger"
_BUDGET_S = 3.0
_STATES = ("complete", "expired", "under_way", "waiting", "missing", "uncounted")
_RECORDS_EVERY_S = 600.0
_SHARE = 100
"""A probe whose records took long to count waits a hundred times as long for the next count."""


class LedgerSeries(Leased):
    """``retention_days``: after which the database forgets; None: never."""

    def __init__(
        self, registry: Registry, store: SeriesStore, retention_days: int | None, period_s: int = PERIOD_S
    ) -> None:
        super().__init__(registry, LEASE, self._put, period_s)
        self._store, self._retention_days = store, retention_days
        self._records = RecordCounts(store)
        self._tally = RunningTotals(registry, self._records, retention_days)
        self._next_s: dict[str, float] = {}

    def _put(self, now_utc_ns: int) -> None:
        at_utc_ns = self.whole(now_utc_ns)
        lines = list(self._traces(now_utc_ns, at_utc_ns))
        try:
            self._tally.bring_up(now_utc_ns, _BUDGET_S)
            lines += self._ledger(now_utc_ns, at_utc_ns)
            lines += self._accounts(now_utc_ns, at_utc_ns)
        except QueryError as error:
            _LOG.warning("no series of the ledger: %s", error)
        put(self._store, lines)

    def _ledger(self, now_utc_ns: int, at_utc_ns: int) -> Iterator[str]:
        of: dict[tuple[str, str], dict[str, Value | None]] = {}
        for one in self._registry.ledger_runs.sums():
            fields = of.setdefault((one.probe, one.campaign), {f"runs_{state}": 0 for state in _STATES})
            fields[f"runs_{one.state}"] = one.runs
            for name in ("failed", "records_promised", "records_arrived", "files_promised", "files_received"):
                key = "runs_failed" if name == "failed" else name
                fields[key] = int(fields.get(key) or 0) + getattr(one, name)
        since = self._registry.ledger_runs.open_since()
        for (probe, campaign), fields in of.items():
            records, files = since.get((probe, campaign), (None, None))
            fields["incomplete_s"] = None if records is None else max(0.0, (now_utc_ns - records) / 1e9)
            fields["files_incomplete_s"] = None if files is None else max(0.0, (now_utc_ns - files) / 1e9)
            if line := own_line("ledger", {"probe": probe, "campaign": campaign}, fields, at_utc_ns):
                yield line

    def _accounts(self, now_utc_ns: int, at_utc_ns: int) -> Iterator[str]:
        """Of the probes whose turn it is, the longest overdue first."""
        began_s = time.monotonic()
        accounts = Accounts(self._registry, self._records, self._retention_days, now_utc_ns)
        turn = sorted(self._registry.probes.all(), key=lambda probe: self._next_s.get(probe.name, 0.0))
        for probe in turn:
            start_s = time.monotonic()
            if self._next_s.get(probe.name, 0.0) > start_s or start_s - began_s > _BUDGET_S or self.ending:
                return
            found = accounts.of_probe(probe.name, probe.created_utc_ns, self._records.reports(probe.name))
            took_s = time.monotonic() - start_s
            self._next_s[probe.name] = start_s + max(_RECORDS_EVERY_S, _SHARE * took_s)
            names = ("made", "arrived", "rejected", "dropped", "waiting", "unexplained")
            reported = [account for account in found if account.spool is not None]
            fields: dict[str, Value | None] = {
                name: sum(getattr(account, name) or 0 for account in reported) for name in names if reported
            }
            if line := own_line("ledger_records", {"probe": probe.name}, fields, at_utc_ns):
                yield line

    def _traces(self, now_utc_ns: int, at_utc_ns: int) -> Iterator[str]:
        received = self._registry.traces.sums()
        unfinished: dict[str, list[tuple[int, int]]] = {}
        for one in self._registry.pending_uploads.unfinished():
            left = one.stream_bytes - one.checked_bytes
            unfinished.setdefault(one.probe, []).append((left, one.offered_utc_ns))
        for probe in sorted({*received, *unfinished}):
            count, size, stored = received.get(probe, (0, 0, 0))
            going = unfinished.get(probe, [])
            oldest = min((offered for _, offered in going), default=None)
            fields: dict[str, Value | None] = {
                "received": count,
                "received_bytes": size,
                "stored_bytes": stored,
                "unfinished": len(going),
                "unfinished_bytes": sum(left for left, _ in going),
                "unfinished_oldest_s": None if oldest is None else max(0.0, (now_utc_ns - oldest) / 1e9),
            }
            if line := own_line("server_traces", {"probe": probe}, fields, at_utc_ns):
                yield line
