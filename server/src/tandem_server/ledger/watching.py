"""Every probe's state now: what the gateway saw, the registry holds and the database has, put before the rules of ``states``; and what it
is at."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from tandem_server.ledger.records import RecordCounts
from tandem_server.ledger.states import Observed, ProbeState, SpoolReport, Tolerances, state_of
from tandem_server.registry import KeptState, Probe, Registry, Seen
from tandem_server.store import SeriesStore

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


# --- What each is at ------------------------------------------------------------------------------------------------
# The run that has begun and not ended, and the campaign, as its records tell it.

_LONGEST_RUN_S = 86_400
_CAMPAIGN_S = 600
"""Campaign records come once a minute while one is under way, and at its end."""
_UNDER_WAY = ("running", "waiting")


@dataclass(frozen=True, slots=True)
class AtWork:
    """``run`` and its ``experiment``, None: at none. ``campaign``: of the run, else the one under way."""

    run: str | None = None
    experiment: str | None = None
    campaign: str | None = None


@dataclass(frozen=True, slots=True)
class _Begun:
    run: str
    experiment: str | None
    campaign: str | None
    boot: str | None
    utc_ns: int


def at_work(registry: Registry, store: SeriesStore, probes: Collection[str], now_utc_ns: int) -> dict[str, AtWork]:
    """Of these probes, those that are at something: five queries for all together. StoreDown, QueryError, sqlite3.Error."""
    campaigns = _campaigns(store, now_utc_ns)
    begun = {probe: one for probe, one in _begun(store, now_utc_ns).items() if probe in probes}
    since = min((one.utc_ns for one in begun.values()), default=now_utc_ns)
    ended = _ended(store, {one.run for one in begun.values()}, since)
    starts, boots = _starts(store, since), _boots(store, since)
    out = {}
    for probe in probes:
        one = begun.get(probe)
        if one is not None and (
            (probe, one.run) in ended
            or starts.get(probe, 0) > one.utc_ns  # the collector began anew since
            or (probe in boots and boots[probe][0] > one.utc_ns and boots[probe][1] != one.boot)  # so did the machine
            or registry.runs.get(one.run) is not None  # its manifest came
        ):
            one = None
        if one is not None:
            out[probe] = AtWork(one.run, one.experiment, one.campaign or campaigns.get(probe))
        elif probe in campaigns:
            out[probe] = AtWork(campaign=campaigns[probe])
    return out


def _begun(store: SeriesStore, now_utc_ns: int) -> dict[str, _Begun]:
    what = 'SELECT last("seq"), "run", "experiment", "campaign", "boot" FROM "run_begun"'
    out = {}
    for probe, row in _last_of_each(store, what, now_utc_ns - _LONGEST_RUN_S * _S).items():
        utc_ns, _, run, experiment, campaign, boot = row
        if run:
            out[probe] = _Begun(run, experiment or None, campaign or None, boot or None, int(utc_ns))
    return out


def _ended(store: SeriesStore, runs: Collection[str], since_utc_ns: int) -> set[tuple[str, str]]:
    """Probe and run of those of ``runs`` that have a record of their end."""
    if not runs:
        return set()
    params = {f"run{n}": run for n, run in enumerate(sorted(runs))}
    any_of = " OR ".join(f'"run" = ${name}' for name in params)
    found = store.query(
        f'SELECT last("seq") FROM "run" WHERE time >= {since_utc_ns} AND ({any_of}) GROUP BY "probe", "run"',  # noqa: S608
        params,
    )
    return {(series.tags.get("probe", ""), series.tags.get("run", "")) for series in found}


def _starts(store: SeriesStore, since_utc_ns: int) -> dict[str, int]:
    what = 'SELECT last("seq") FROM "event"'
    found = _last_of_each(store, what, since_utc_ns, " AND \"kind\" = 'collector_start'")
    return {probe: int(row[0]) for probe, row in found.items()}


def _boots(store: SeriesStore, since_utc_ns: int) -> dict[str, tuple[int, str]]:
    """By probe, time and boot of its newest spool report."""
    found = _last_of_each(store, 'SELECT last("seq"), "boot" FROM "spool"', since_utc_ns)
    return {probe: (int(row[0]), str(row[2])) for probe, row in found.items()}


def _campaigns(store: SeriesStore, now_utc_ns: int) -> dict[str, str]:
    """By probe, the campaign that is under way, the one reported last."""
    newest: dict[str, tuple[int, str]] = {}
    for series in store.query(
        'SELECT last("state") FROM "campaign"'  # noqa: S608  a number
        f' WHERE time >= {now_utc_ns - _CAMPAIGN_S * _S} GROUP BY "probe", "campaign"'
    ):
        probe, campaign = series.tags.get("probe", ""), series.tags.get("campaign", "")
        utc_ns, state = series.rows[0][:2]
        if campaign and state in _UNDER_WAY and int(utc_ns) >= newest.get(probe, (0, ""))[0]:
            newest[probe] = (int(utc_ns), campaign)
    return {probe: campaign for probe, (_, campaign) in newest.items()}


def _last_of_each(store: SeriesStore, what: str, since_utc_ns: int, further: str = "") -> dict[str, list[Any]]:
    found = store.query(f'{what} WHERE time >= {since_utc_ns}{further} GROUP BY "probe"')
    return {series.tags.get("probe", ""): series.rows[0] for series in found}
