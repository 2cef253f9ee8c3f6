"""The ledger as JSON (docs/reference/ledger.md, "tandem-ledger/1")."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from tandem_server.ledger.book import Ledger
from tandem_server.ledger.numbers import SpoolAccount
from tandem_server.ledger.runs import RunRow
from tandem_server.ledger.watching import ProbeNow

FORMAT = "tandem-ledger/1"


def as_json(ledger: Ledger, *, incomplete: bool = False) -> dict[str, Any]:
    """All of it; ``incomplete``: only the runs that lack something. The totals are those of all runs."""
    return {
        "format": FORMAT,
        "made_utc_ns": ledger.made_utc_ns,
        "complete": not ledger.lacks,
        "probes": [probe_json(one, ledger.made_utc_ns) for one in ledger.probes],
        "spools": [_spool(account) for account in ledger.accounts],
        "runs": [run_json(row) for row in ledger.runs if row.missing or not incomplete],
        "unpromised": [
            {"probe": row.probe, "run": row.run, "name": row.name, "bytes": row.bytes, "sha256": row.sha256}
            for row in ledger.unpromised
        ],
        "totals": totals(ledger.runs),
    }


def probe_json(one: ProbeNow, now_utc_ns: int) -> dict[str, Any]:
    """A probe's state."""
    return {
        "name": one.probe.name,
        "state": one.state.state,
        "since_utc_ns": one.state.since_utc_ns,
        "since_s": max(0.0, (now_utc_ns - one.state.since_utc_ns) / 1e9),
        "why": one.state.why,
        "last_seen_utc_ns": None if one.sight is None else one.sight.last_utc_ns,
    }


def totals(runs: Sequence[RunRow]) -> dict[str, Any]:
    """Sums over runs."""
    promised, arrived, files, received = (sum(row.counts[n] for row in runs) for n in range(4))
    states = Counter(row.state for row in runs)
    return {
        "runs": len(runs),
        "by_state": dict(sorted(states.items())),
        "records_promised": promised,
        "records_arrived": arrived,
        "files_promised": files,
        "files_received": received,
        "analysed": sum(row.analysed for row in runs),
        "analysis_failed": sum(len(row.analysis_failed) for row in runs),
    }


def _spool(account: SpoolAccount) -> dict[str, Any]:
    return {
        "probe": account.probe,
        "spool": account.spool,
        "current": account.current,
        "boots": account.boots,
        "first": account.first,
        "made": account.made,
        "arrived": account.arrived,
        "rejected": account.rejected,
        "dropped": account.dropped,
        "waiting": account.waiting,
        "unexplained": account.unexplained,
        "expired": account.expired,
        "twice": account.twice,
        "settled": account.through,
        "missing": [list(pair) for pair in account.missing],
        "told_utc_ns": account.told_utc_ns,
        "oldest_s": account.oldest_s,
    }


def run_json(row: RunRow) -> dict[str, Any]:
    """One run."""
    return {
        "id": row.id,
        "probe": row.probe,
        "kind": row.kind,
        "state": row.state,
        "status": row.status,
        "received_utc_ns": row.received_utc_ns,
        "ended_utc_ns": row.ended_utc_ns,
        "records": {name: {"promised": told, "arrived": here} for name, (told, here) in row.records.items()},
        "files": row.files,
        "analysed": row.analysed,
        "analysis_failed": row.analysis_failed,
        "missing": [
            {"what": lack.what, "name": lack.name, "count": lack.count, "why": lack.why, "detail": lack.detail}
            for lack in row.missing
        ],
    }
