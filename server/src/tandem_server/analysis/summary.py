"""summary.json: the campaign's figures for programs. Keys: server/spec/campaign-folder.md, format "tandem-summary/1"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tandem_server.analysis import arms, drops
from tandem_server.analysis.arms import Comparison
from tandem_server.analysis.evaluate import Evaluation
from tandem_server.analysis.papers.material import classes_of
from tandem_server.analysis.radio_packets import Joined
from tandem_server.analysis.reading import mapping, number, text, whole
from tandem_server.analysis.run_classes import RunClasses
from tandem_server.analysis.runs import Run
from tandem_server.analysis.tables.told import plain_table, told

FORMAT = "tandem-summary/1"


def summary(
    e: Evaluation,
    joined: Joined | None = None,
    classes: RunClasses | None = None,
    compared: Sequence[Comparison] = (),
) -> dict[str, Any]:
    """The figures; scores are None without truth, counts None where nobody can know them. ``joined``: where captures were analysed."""
    campaign = e.campaign.campaign
    return {
        "format": FORMAT,
        "scenario": text(campaign, "scenario"),
        "seed": whole(campaign, "seed"),
        "duration_s": number(campaign, "duration_s"),
        "radio_records": e.radio_records,
        "polls_late": e.polls_late,
        "handovers": _handovers(e),
        "signal_drops": _drops(e),
        "mobility": {
            "accuracy": e.mobility_score.accuracy if e.mobility_score else None,
            "false_starts": e.mobility_score.false_starts if e.mobility_score else None,
            "missed_starts": e.mobility_score.missed_starts if e.mobility_score else None,
        },
        "mobility_by_events": (classes or classes_of(e)).as_json(),
        "radio_packets": None if joined is None else {**joined.rule._asdict(), **joined.account},
        "runs": [_run(r) for r in e.runs],
        **told(e.results),
        "arms": plain_table(arms.table(compared)),
        "records": {
            "made": e.account.made,
            "sent": e.account.sent,
            "in_database": e.account.in_database,
            "lost": e.account.lost,
        },
        "captures": [{"file": c.file, "bytes": c.bytes, "packets": c.packets} for c in e.campaign.captures],
        "cpu_seconds": _cpu(e),
        "versions": versions(e),
        "interrupted": e.campaign.interrupted,
    }


def versions(e: Evaluation) -> dict[str, str]:
    """Versions as campaign and collector wrote them down; the campaign's word holds where both speak."""
    both = {**mapping(e.campaign.collector or {}, "versions"), **mapping(e.campaign.campaign, "versions")}
    return {str(k): str(v) for k, v in sorted(both.items()) if v is not None}


def _handovers(e: Evaluation) -> dict[str, int | None]:
    score = e.handover_score
    return {
        "true": score.true if score else None,
        "detected": score.detected if score else None,
        "false": score.false if score else None,
    }


def _drops(e: Evaluation) -> dict[str, Any]:
    score = e.drop_score
    found = [event.change_db for event in e.events("signal_drop") if event.change_db is not None]
    return {
        "true": score.true if score else None,
        "detected": len(score.found) if score else None,
        "false": len(score.false_events) if score else None,
        "played": len(e.campaign.truth.drops) if e.campaign.truth else None,
        "by_size_db": drops.by_size(found) if e.radio_records is not None else None,
    }


def _run(run: Run) -> dict[str, Any]:
    return {
        "id": run.id,
        "pair": run.pair,
        "kind": run.kind,
        "path": run.path,
        "pairing": run.pairing,
        "bytes": run.bytes,
        "duration_s": run.duration_s,
        "goodput_bit_per_s": run.goodput_bit_per_s,
        "sum_of_singles_bit_per_s": run.sum_of_singles_bit_per_s,
        "capacity_bit_per_s": run.capacity_bit_per_s,
        "fallback": run.fallback,
        "activity": run.activity,
        "failure": run.failure,
        "subflows": [
            {
                "operator": s.operator,
                "path": s.path,
                "bytes": s.bytes,
                "share": s.share,
                "rtt_ms_median": s.rtt_ms_median,
            }
            for s in run.subflows
        ],
    }


def _cpu(e: Evaluation) -> dict[str, float]:
    total: dict[str, float] = {}
    for process in e.campaign.processes:
        if process.cpu_seconds is not None:
            total[process.name] = total.get(process.name, 0.0) + process.cpu_seconds
    return total
