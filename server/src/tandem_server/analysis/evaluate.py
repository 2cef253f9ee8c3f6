"""A campaign evaluated: folder, database and truth put together. Everything a report says is here."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tandem.schema.metrics import MEASUREMENTS
from tandem_server.analysis import scores
from tandem_server.analysis.folder import CampaignFolder, missing_files
from tandem_server.analysis.reading import mapping, number, text, whole
from tandem_server.analysis.recorded import Event, Recorded, load, name_by_run
from tandem_server.analysis.records import EVER, Clock, Source, SourceError
from tandem_server.analysis.runs import Run, join, run_paths
from tandem_server.analysis.sender_shares import add_sender_shares
from tandem_server.analysis.tables.results import Results, results
from tandem_server.analysis.truth import TrueDrop
from tandem_server.ledger.numbers import Found, Numbers


@dataclass(frozen=True, slots=True)
class Account:
    """Counts of records; None where nobody wrote it down. ``missing`` are ranges of record numbers, both ends included."""

    made: int | None
    sent: int | None
    pending: int | None
    rejected: int | None
    dropped: int | None
    in_database: int | None
    by_measurement: dict[str, int]
    missing: list[tuple[int, int]]
    lost: int | None


def account(records: Mapping[str, Any], found: Mapping[str, Numbers] | None) -> Account:
    """``records``: as the collector counted them. ``found``: record numbers in the database by measurement, None when it could not be
    asked.

    ``lost`` are records made that are neither stored nor accounted for as rejected or dropped; those still waiting in the
    probe's spool count as lost here, since they did not arrive. None when the probe's own count or the database is missing.
    """
    made, sent, pending, rejected, dropped = (
        whole(records, key) for key in ("made", "sent", "pending", "rejected", "dropped")
    )
    if found is None:
        return Account(made, sent, pending, rejected, dropped, None, {}, [], None)
    numbers = Found()
    for values in found.values():
        numbers.add(values[values >= 1])
    counts = {name: len(np.unique(values)) for name, values in found.items()}
    last = max([made or 0, *(int(values.max(initial=0)) for values in found.values())])
    lost = None
    if made is not None:
        lost = max(0, last - len(numbers) - (rejected or 0) - (dropped or 0))
    return Account(made, sent, pending, rejected, dropped, len(numbers), counts, list(numbers.missing(1, last)), lost)


def boots_of_account(campaign: CampaignFolder, source: Source) -> set[str]:
    """The boots whose records the collector's account counts: all of its spool, of which it is the sum over all restarts. Where no
    spool told of itself: those of the folder, or of the polls."""
    spool_of = {
        piece.tags.get("boot", ""): piece.fields.get("spool", [None])[-1]
        for piece in source.pieces("spool", campaign.probe, EVER, ["spool"])
    }
    last = text(campaign.collector or {}, "boot")
    own = {boot for manifest in campaign.manifests if (boot := text(manifest, "boot")) is not None}
    own |= {last} if last is not None else set()
    spool = spool_of.get(last or "") or next((told for boot, told in spool_of.items() if boot in own), None)
    if spool is not None:
        return {boot for boot, told in spool_of.items() if told == spool} | {
            boot for boot in own if boot not in spool_of
        }
    if not own:
        own = {piece.tags.get("boot", "") for piece in source.pieces("radio", campaign.probe, EVER, [])}
    return own


def boot_of_bench(campaign: CampaignFolder, source: Source, offset_ns: int) -> str | None:
    """The boot in which the bench ran, whose monotonic clock the truth has: as campaign.json tells, else the one whose offset of UTC to
    the monotonic clock is next to ``offset_ns``. None: the probe recorded in one boot only, which is it."""
    offsets: dict[str, list[Numbers]] = defaultdict(list)
    for measurement in ("event", "health", "radio"):
        for piece in source.pieces(measurement, campaign.probe, EVER, []):
            monotonic_ns = piece.numbers("monotonic_ns")
            if (known := np.isfinite(monotonic_ns)).any():
                offset = piece.utc_ns[known] - monotonic_ns[known].astype(np.int64)
                offsets[piece.tags.get("boot", "")].append(offset)
    if len(offsets) < 2:
        return None
    told = text(campaign.campaign, "boot")
    return told or min(offsets, key=lambda boot: abs(np.median(np.concatenate(offsets[boot])) - offset_ns))


_MOVEMENT = ("mobility_start", "mobility_stop")
LATE_MS = 100.0
"""A poll that begins later than this after it was due is late (docs/reference/campaign-folder.md)."""

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
    found_mobility: list[scores.Change]
    handover_score: scores.HandoverScore | None
    drop_score: scores.DropScore | None
    mobility_score: scores.MobilityScore | None
    radio_records: int | None
    polls_late: int | None
    end_s: float
    missing: list[str] = field(default_factory=list)
    results: Results = field(default_factory=lambda: Results([], []))

    def doing(self, start_s: float, end_s: float) -> str | None:
        """What the probe was doing: the phase that the bench played, else what its own detector said; None where neither is known."""
        return _doing(self.campaign, self.recorded, self.found_mobility, start_s, end_s)

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
            if clock.start_monotonic_ns is not None:
                offset_ns = clock.start_utc_ns - clock.start_monotonic_ns
                clock = replace(clock, boot=boot_of_bench(campaign, source, offset_ns))
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
    doing = functools.partial(_doing, campaign, recorded, changes)
    # Another experiment's run (kind any) arrives or is missed like every run; its result is its own, and in the result tables.
    downloads = [m for m in campaign.manifests if m["kind"] != "any"]
    runs = join(downloads, recorded, campaign.truth, clock, campaign.operators, doing)
    counts = account(mapping(campaign.collector or {}, "records"), found)
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


def _doing(
    campaign: CampaignFolder, recorded: Recorded, changes: Sequence[scores.Change], start_s: float, end_s: float
) -> str | None:
    if campaign.truth is not None and campaign.truth.phases:
        return scores.activity_of_phases(campaign.truth.phases, start_s, end_s)
    return scores.activity_of_detector(changes, start_s, end_s) if recorded.radio else None


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
    span = None if started is None else started - BEFORE_NS, None if ended is None else ended + AFTER_NS
    recorded = load(source, campaign.probe, clock, campaign.operators, span)
    counted = boots_of_account(campaign, source)
    return recorded, {name: source.numbers(name, campaign.probe, counted) for name in MEASUREMENTS}


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
    campaign: CampaignFolder, recorded: Recorded, changes: list[scores.Change]
) -> tuple[scores.HandoverScore | None, scores.DropScore | None, scores.MobilityScore | None]:
    truth = campaign.truth
    if truth is None or not recorded.radio:
        return None, None, None
    polled = sorted(float(t) for series in recorded.radio.values() for t in series.t_s)
    polls = {s.operator: s.named_cells() for s in recorded.radio.values()}

    def found(kind: str) -> list[scores.FoundEvent]:
        return [scores.FoundEvent(e.t_s, e.operator or "") for e in recorded.events if e.kind == kind]

    def fell(least_db: float, *, surely: bool) -> list[TrueDrop]:
        drops_found = []
        for series in recorded.radio.values():
            level, heard = truth.levels.get(series.operator), ~np.isnan(series.rsrp_dbm)
            if level is not None:
                begun = series.t_s[heard]
                ended = begun + np.nan_to_num(series.duration_ms[heard]) / 1e3
                for a, b in scores.lives(begun.tolist(), recorded.starts):
                    own = (begun >= a) & (begun <= b)
                    drops_found += scores.at_polls(
                        series.operator, level, begun[own], ended[own], least_db, surely=surely
                    )
        return drops_found

    return (
        scores.score_handovers(truth.handovers, polls, found("handover"), starts=recorded.starts),
        scores.score_drops(
            fell(scores.LEAST_DB, surely=True),
            found("signal_drop"),
            fell(scores.LEAST_DB - scores.ROUNDING_DB, surely=False),
        ),
        scores.score_mobility(truth.mobility, changes, scores.lives(polled, recorded.starts)),
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
