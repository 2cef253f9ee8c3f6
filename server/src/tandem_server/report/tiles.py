"""The headline: did everything arrive, and the five figures that say whether the kit did its work."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean

import numpy as np

from tandem_server.analysis.evaluate import Evaluation
from tandem_server.analysis.reading import mapping, number, whole
from tandem_server.report.words import ABSENT, THIN, count, fixed, mega, percent


@dataclass(frozen=True, slots=True)
class Tile:
    """``tone``: good, bad or plain."""

    label: str
    value: str
    unit: str
    notes: tuple[str, ...]
    tone: str = "plain"


def tiles(e: Evaluation) -> list[Tile]:
    """Records, handovers, mobility, goodput while still, polls."""
    return [_records(e), _handovers(e), _mobility(e), _still(e), _polls(e)]


def _records(e: Evaluation) -> Tile:
    a = e.account
    notes: tuple[str, ...] = f"of {count(a.made)} made, {count(a.sent)} sent", f"{count(a.lost)} lost"
    if a.made is None:
        notes = ("the probe left no count of those made",)
    elif a.lost is None:
        notes = f"of {count(a.made)} made, {count(a.sent)} sent", "the database could not be asked"
    tone = "plain" if a.lost is None else "good" if a.lost == 0 else "bad"
    return Tile("Records in the database", count(a.in_database), "", notes, tone)


def _handovers(e: Evaluation) -> Tile:
    score = e.handover_score
    if score is None:
        seen = len(e.events("handover"))
        return Tile("Handovers seen", count(seen), "", ("no truth to compare with",))
    if score.true == 0:
        return Tile("Handovers detected", "none", "", ("none was played", f"{score.false} false"))
    tone = "good" if score.detected == score.true and score.false == 0 else "plain"
    return Tile(
        "Handovers detected",
        count(score.detected),
        f"of {score.true}",
        (f"within 2{THIN}s", f"{score.false} false"),
        tone,
    )


def _mobility(e: Evaluation) -> Tile:
    score = e.mobility_score
    if score is None or score.accuracy is None:
        starts = len(e.events("mobility_start"))
        return Tile("Mobility starts seen", count(starts), "", ("no truth to compare with",))
    starts_line = f"{score.false_starts} false, {score.missed_starts} missed starts"
    return Tile("Mobility state", fixed(score.accuracy * 100), "%", ("of the time right", starts_line))


def _still(e: Evaluation) -> Tile:
    label = "MPTCP while still"
    runs = [
        r
        for r in e.runs
        if r.kind == "mptcp"
        and r.pairing != "simultaneous"
        and r.activity == "still"
        and r.goodput_bit_per_s is not None
    ]
    if not runs:
        return Tile(label, ABSENT, "", ("no MPTCP run had the links for itself while still",))
    goodput = mega(fmean(r.goodput_bit_per_s or 0.0 for r in runs))
    ratios = [r.ratio for r in runs if r.ratio is not None]
    many = (f"mean of {len(runs)} runs",) if len(runs) > 1 else ()
    if not ratios:
        return Tile(label, goodput, "Mbit/s", ("capacity not known in the field", *many))
    offered = mega(fmean(r.capacity_bit_per_s or 0.0 for r in runs if r.ratio is not None))
    return Tile(label, goodput, "Mbit/s", (f"{percent(fmean(ratios))} of the {offered} offered", *many))


def _polls(e: Evaluation) -> Tile:
    polls = [p for p in mapping(e.campaign.collector or {}, "polls").values() if isinstance(p, dict)]
    made = sum(whole(p, "made") or 0 for p in polls) or sum(len(s.t_s) for s in e.recorded.radio.values())
    worst = max((v for p in polls if (v := number(p, "late_ms_p99")) is not None), default=None)
    if worst is None:
        late = [s.late_ms[np.isfinite(s.late_ms)] for s in e.recorded.radio.values()]
        values = np.concatenate(late) if late else np.empty(0)
        worst = float(np.quantile(values, 0.99)) if len(values) else None
    notes = [f"of {count(made)} by more than 100{THIN}ms"]
    if worst is not None:
        notes.append(f"99{THIN}% within {fixed(worst, 0 if worst >= 10 else 1)}{THIN}ms")
    return Tile("Polls late", count(e.polls_late), "", tuple(notes), "good" if e.polls_late == 0 else "plain")
