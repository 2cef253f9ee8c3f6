"""What each probe is at now: the run that has begun and not ended, and the campaign, as its records tell it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from tandem_server.registry import Registry
from tandem_server.store import SeriesStore

_S = 10**9
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
    for probe, row in _newest(store, what, now_utc_ns - _LONGEST_RUN_S * _S).items():
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
    found = _newest(store, what, since_utc_ns, " AND \"kind\" = 'collector_start'")
    return {probe: int(row[0]) for probe, row in found.items()}


def _boots(store: SeriesStore, since_utc_ns: int) -> dict[str, tuple[int, str]]:
    """By probe, time and boot of its newest spool report."""
    found = _newest(store, 'SELECT last("seq"), "boot" FROM "spool"', since_utc_ns)
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


def _newest(store: SeriesStore, what: str, since_utc_ns: int, further: str = "") -> dict[str, list[Any]]:
    found = store.query(f'{what} WHERE time >= {since_utc_ns}{further} GROUP BY "probe"')
    return {series.tags.get("probe", ""): series.rows[0] for series in found}
