"""A campaign evaluated: folder, database and truth put together. Everything a report says is here."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

import numpy as np

from tandem.schema.metrics import MEASUREMENTS
from tandem_server.analysis import activity, boots, drops, handovers, mobility
from tandem_server.analysis.clock import Clock
from tandem_server.analysis.folder import CampaignFolder, missing_files
from tandem_server.analysis.ledger import Account, account
from tandem_server.analysis.reading import mapping, number, whole
from tandem_server.analysis.recorded import Event, Recorded, load, name_by_run
from tandem_server.analysis.runs import Run, join, run_paths
from tandem_server.analysis.sender_shares import add_sender_shares
from tandem_server.analysis.source import Source, SourceError
from tandem_server.analysis.tables.results import Results, results
from tandem_server.analysis.truth import TrueDrop
from tandem_server.ledger.numbers import Numbers

_MOVEMENT = ("mobility_start", "mobility_stop")
LATE_MS = 100.0
"""A poll that begins later than this after it was due is late (server/spec/campaign-folder.md)."""

BEFORE_NS, AFTER_NS = 5 * 10**9, 60 * 10**9
"""Records a little outside the campaign's own times belong to it: the start and the stop of the collector."""


@dataclass(slots=True)
class Evaluation:
    """``missing``: what did not arrive, one line each; empty when everything did. Scores are None without truth or records."""

    campaign: CampaignFolder
    clock: Clock
    recorded: Recorded
    runs: list[Run]
    account: Account
    in_ledger: set[str] | None
    found_mobility: list[mobility.Change]
    handover_score: handovers.HandoverScore | None
    drop_score: drops.DropScore | None
    mobility_score: mobility.MobilityScore | None
    radio_records: int | None
    polls_late: int | None
    end_s: float
    missing: list[str] = field(default_factory=list)
    results: Results = field(default_factory=lambda: Results([], []))

    def events(self, kind: str) -> list[Event]:
        """The probe's events of one kind, in order of time."""
        return [e for e in self.recorded.events if e.kind == kind]


def evaluate(campaign: CampaignFolder, source: Source | str, in_ledger: Collection[str] | str) -> Evaluation:
    """``source`` and ``in_ledger`` (ids of the runs whose manifests arrived) may be a text instead: why they are not there."""
    missing = [*campaign.problems, *missing_files(campaign)]
    add_sender_shares(campaign)
    clock = _clock(campaign)
    recorded, found = Recorded(), None
    if isinstance(source, str):
        missing.append(source)
    else:
        try:
            clock = _of_boot(clock, campaign, source)
            recorded, found = _ask(campaign, source, clock)
        except SourceError as error:
            missing.append(str(error))
    name_by_run(recorded, {str(m["id"]): run_paths(m) for m in campaign.manifests}, campaign.operators)
    known = None if isinstance(in_ledger, str) else set(in_ledger)
    if isinstance(in_ledger, str):
        missing.append(in_ledger)
    changes = [(e.t_s, e.kind == "mobility_start") for e in recorded.events if e.kind in _MOVEMENT]
    # Detectors that begin anew know of no movement.
    changes = sorted([*changes, *((t, False) for t in recorded.starts)], key=lambda change: change[0])
    truth = campaign.truth

    def doing(start_s: float, end_s: float) -> str | None:
        if truth is not None and truth.phases:
            return activity.of_phases(truth.phases, start_s, end_s)
        return activity.of_detector(changes, start_s, end_s) if recorded.radio else None

    # Another experiment's run (kind any) arrives or is missed like every run; its result is its own, and in the result tables.
    downloads = [m for m in campaign.manifests if m["kind"] != "any"]
    runs = join(downloads, recorded, truth, clock, campaign.operators, doing)
    counts = _account(campaign, found)
    missing += _not_arrived(campaign, counts, known, recorded)
    return Evaluation(
        campaign,
        clock,
        recorded,
        runs,
        counts,
        known,
        changes,
        *_scores(campaign, recorded, changes),
        None if found is None else len(found.get("radio", [])),
        _polls_late(campaign, recorded, found is not None),
        _end_s(campaign, recorded, runs),
        missing,
        results(campaign),
    )


def _clock(campaign: CampaignFolder) -> Clock:
    truth = campaign.truth
    utc = whole(campaign.campaign, "started_utc_ns")
    if truth is not None and truth.epoch_monotonic_ns is not None:
        return Clock(truth.epoch_utc_ns or utc or 0, truth.epoch_monotonic_ns)
    if utc is None:
        utc = whole(campaign.collector or {}, "started_utc_ns")
    if utc is None:
        utc = next((t for m in campaign.manifests if (t := whole(m, "started_utc_ns")) is not None), 0)
    return Clock(utc)


def _ask(campaign: CampaignFolder, source: Source, clock: Clock) -> tuple[Recorded, dict[str, Numbers]]:
    started = whole(campaign.campaign, "started_utc_ns")
    ended = whole(campaign.campaign, "ended_utc_ns")
    recorded = load(
        source,
        campaign.probe,
        clock,
        campaign.operators,
        None if started is None else started - BEFORE_NS,
        None if ended is None else ended + AFTER_NS,
    )
    counted = boots.of_account(campaign, source)
    return recorded, {name: source.numbers(name, campaign.probe, counted) for name in MEASUREMENTS}


def _of_boot(clock: Clock, campaign: CampaignFolder, source: Source) -> Clock:
    """With the boot of the bench, where the probe recorded in more than one."""
    if clock.start_monotonic_ns is None:
        return clock
    return replace(clock, boot=boots.of_bench(campaign, source, clock.start_utc_ns - clock.start_monotonic_ns))


def _account(campaign: CampaignFolder, found: dict[str, Numbers] | None) -> Account:
    records = mapping(campaign.collector or {}, "records")
    made, sent, pending, rejected, dropped = (
        whole(records, k) for k in ("made", "sent", "pending", "rejected", "dropped")
    )
    return account(made, sent, pending, rejected, dropped, found)


def _not_arrived(campaign: CampaignFolder, counts: Account, known: set[str] | None, recorded: Recorded) -> list[str]:
    runs = [str(m["id"]) for m in campaign.manifests]
    out: list[str] = []
    if counts.lost:
        waiting = f", {counts.pending} of them still in the probe's spool" if counts.pending else ""
        out.append(f"{counts.lost} of {counts.made} records are not in the database{waiting}")
    if counts.lost is None and counts.in_database is not None and not campaign.exported:
        gaps = sum(b - a + 1 for a, b in counts.missing)
        out.append(f"how many records were made is not known: {gaps} are missing up to the last one that arrived")
    if counts.rejected:
        out.append(f"{counts.rejected} records were rejected by the server (probe/{campaign.probe}/spool/quarantine)")
    if counts.dropped:
        out.append(f"{counts.dropped} records were dropped by the probe: its spool was full")
    if known is not None:
        out += [f"run {run}: its manifest is not in the server's ledger" for run in runs if run not in known]
        out += [f"run {run}: in the server's ledger, but its manifest is not here" for run in sorted(known - set(runs))]
    here = set(runs) | (known or set()) | campaign.left_out
    started = sorted({s.run for s in recorded.subflows if s.end == "probe"} - here)
    out += [f"run {run}: it has records but no manifest; it was cut off" for run in started]
    return out


def _scores(
    campaign: CampaignFolder, recorded: Recorded, changes: list[mobility.Change]
) -> tuple[handovers.HandoverScore | None, drops.DropScore | None, mobility.MobilityScore | None]:
    truth = campaign.truth
    if truth is None or not recorded.radio:
        return None, None, None
    polled = sorted(float(t) for series in recorded.radio.values() for t in series.t_s)
    polls = {
        s.operator: [handovers.CellPoll(float(t), eci) for t, eci in zip(s.t_s, s.eci, strict=True) if eci is not None]
        for s in recorded.radio.values()
    }

    def found(kind: str) -> list[handovers.FoundEvent]:
        return [handovers.FoundEvent(e.t_s, e.operator or "") for e in recorded.events if e.kind == kind]

    def fell(least_db: float, *, surely: bool) -> list[TrueDrop]:
        drops_found = []
        for series in recorded.radio.values():
            level, heard = truth.levels.get(series.operator), ~np.isnan(series.rsrp_dbm)
            if level is not None:
                begun = series.t_s[heard]
                ended = begun + np.nan_to_num(series.duration_ms[heard]) / 1e3
                for a, b in handovers.lives(begun.tolist(), recorded.starts):
                    own = (begun >= a) & (begun <= b)
                    drops_found += drops.at_polls(
                        series.operator, level, begun[own], ended[own], least_db, surely=surely
                    )
        return drops_found

    return (
        handovers.score(truth.handovers, polls, found("handover"), starts=recorded.starts),
        drops.score(
            fell(drops.LEAST_DB, surely=True),
            found("signal_drop"),
            fell(drops.LEAST_DB - drops.ROUNDING_DB, surely=False),
        ),
        mobility.score_lives(truth.mobility, changes, handovers.lives(polled, recorded.starts)),
    )


def _polls_late(campaign: CampaignFolder, recorded: Recorded, asked: bool) -> int | None:
    polls = mapping(campaign.collector or {}, "polls")
    late = [whole(entry, "late") for entry in polls.values() if isinstance(entry, dict)]
    known = [n for n in late if n is not None]
    if known and not recorded.starts:  # the collector's own account is that of its last life
        return sum(known)
    return sum(int(np.sum(s.late_ms > LATE_MS)) for s in recorded.radio.values()) if asked else None


def _end_s(campaign: CampaignFolder, recorded: Recorded, runs: list[Run]) -> float:
    """Where the time axis ends: the last thing that happened, at least one second."""
    ends = [float(s.t_s[-1]) for s in recorded.radio.values()]
    ends += [r.end_s for r in runs if r.end_s is not None]
    if campaign.truth is not None:
        ends.append(campaign.truth.end_s)
    if not ends:
        ends.append(number(campaign.campaign, "duration_s") or 1.0)
    return max(1.0, *ends)
