"""Every probe's state now: what the gateway saw, the registry holds and the database has, put before the rules of ``states``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tandem_server.ledger.records import RecordCounts
from tandem_server.ledger.report import SpoolReport
from tandem_server.ledger.states import Observed, ProbeState, Tolerances, state_of
from tandem_server.registry import KeptState, Probe, Registry, Seen

_S = 10**9
_RECENT_S = 3600.0
"""Reports and polls are looked for so far back at first; only of probes that are online without any, further."""
_FAR_S = 30 * 86_400.0


@dataclass(frozen=True, slots=True)
class ProbeNow:
    """A probe, its state, and from what it was found."""

    probe: Probe
    state: ProbeState
    seen: Seen | None
    report: SpoolReport | None

    def to_dict(self, now_utc_ns: int) -> dict[str, Any]:
        """As JSON has it (tandem-ledger/1)."""
        return {
            "name": self.probe.name,
            "state": self.state.state,
            "since_utc_ns": self.state.since_utc_ns,
            "since_s": max(0.0, (now_utc_ns - self.state.since_utc_ns) / 1e9),
            "why": self.state.why,
            "last_seen_utc_ns": None if self.seen is None else self.seen.last_utc_ns,
        }


def probes_now(registry: Registry, records: RecordCounts, tolerances: Tolerances, now_utc_ns: int) -> list[ProbeNow]:
    """All registered probes, by name. A few queries for all together. StoreDown, QueryError, sqlite3.Error as they come."""
    last_seen, before = registry.seen.all(), registry.seen.states()
    open_since, planned = registry.sessions.open_since(), registry.campaigns.under_way_since()
    offered: dict[str, int] = {}
    for one in registry.pending_uploads.unfinished():
        offered[one.probe] = min(one.offered_utc_ns, offered.get(one.probe, one.offered_utc_ns))
    recent = now_utc_ns - int(max(_RECENT_S, tolerances.unsent_after_s) * _S)
    reports = _newest(records.reports(None, recent))
    waited = records.waiting_between(None, recent, now_utc_ns - int(max(60.0, tolerances.unsent_after_s / 2) * _S))
    polls = records.newest("radio", None, recent)
    lately = now_utc_ns - int(tolerances.measuring_within_s * _S)
    # Each run is a series of its own in the database: only the last minutes are requested. A manifest may come much later than
    # its run ended, so one that came in these minutes, of a run that is not there, says no more than that it ended before.
    runs = {name: min(came, lately - 1) for name, came in registry.runs.newest().items()}
    runs |= records.newest("run", None, lately)
    out = []
    for probe in registry.probes.all():
        seen, was = last_seen.get(probe.name), before.get(probe.name)
        if seen is not None and probe.name not in polls and was is None:
            # When this began is not written down yet: once, look further back.
            polls.update(records.newest("radio", probe.name, now_utc_ns - int(_FAR_S * _S)))
        observed = Observed(
            probe.created_utc_ns,
            probe.revoked_utc_ns,
            None if seen is None else seen.first_utc_ns,
            None if seen is None else seen.last_utc_ns,
            polls.get(probe.name),
            runs.get(probe.name),
            open_since.get(probe.name),
            planned.get(probe.name),
            reports.get(probe.name),
            waited.get(probe.name),
            offered.get(probe.name),
        )
        state = state_of(observed, now_utc_ns, tolerances, None if was is None else (was.state, was.since_utc_ns))
        out.append(ProbeNow(probe, state, seen, reports.get(probe.name)))
    return out


def kept(now: list[ProbeNow]) -> dict[str, KeptState]:
    """As the registry keeps them."""
    return {one.probe.name: KeptState(one.state.state, one.state.since_utc_ns) for one in now}


def _newest(reports: list[SpoolReport]) -> dict[str, SpoolReport]:
    out: dict[str, SpoolReport] = {}
    for report in reports:
        if report.probe not in out or out[report.probe].utc_ns < report.utc_ns:
            out[report.probe] = report
    return out
