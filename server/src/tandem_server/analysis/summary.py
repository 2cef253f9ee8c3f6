"""summary.json: the figures of a campaign, or of several kits, for programs. Keys: docs/reference/campaign-folder.md, format
"tandem-summary/1"."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tandem_server.analysis import arms, scores
from tandem_server.analysis.arms import Comparison
from tandem_server.analysis.evaluate import Evaluation
from tandem_server.analysis.events import FACTOR
from tandem_server.analysis.material import classes_of
from tandem_server.analysis.mobility_classes import RunClasses
from tandem_server.analysis.pool import Pool
from tandem_server.analysis.radio_packets import GAP_S, Joined
from tandem_server.analysis.reading import mapping, number, text, whole
from tandem_server.analysis.tables.results import Overview, Results
from tandem_server.analysis.tables.view import Table


def tables_as_json(results: Results) -> dict[str, Any]:
    """Both keys, as JSON values."""
    tables = {t.name: {"experiment": name, **plain_table(t)} for name, made in results.tables.items() for t in made}
    return {"campaigns": [_campaign(one) for one in results.campaigns], "tables": tables}


def _campaign(one: Overview) -> dict[str, Any]:
    steps = [
        {
            "step": s.step,
            "experiment": s.experiment,
            "planned": one.planned.get(s.step),
            "measured": len(s.numbers),
            "ok": s.ok,
            "failed": dict(s.failed),
            "bytes": s.bytes,
        }
        for s in one.steps
    ]
    return {"name": one.name, "form": one.form, "substitutes": one.substitutes, "bytes": one.bytes, "steps": steps}


def plain_table(table: Table) -> dict[str, Any]:
    """A table as JSON values: title, columns, rows."""
    columns = [{"key": c.key, "title": c.title, "unit": c.unit} for c in table.columns]
    return {"title": table.title, "columns": columns, "rows": [list(row) for row in table.rows]}


FORMAT = "tandem-summary/1"
_RUN = (
    *("id", "pair", "kind", "path", "pairing", "bytes", "duration_s", "goodput_bit_per_s", "sum_of_singles_bit_per_s"),
    *("capacity_bit_per_s", "fallback", "activity", "failure"),
)
_SUBFLOW = ("operator", "path", "bytes", "share", "rtt_ms_median")


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
        "handovers": _of(e.handover_score, "true", "detected", "false"),
        "signal_drops": _drops(e),
        "mobility": _of(e.mobility_score, "accuracy", "false_starts", "missed_starts"),
        "mobility_by_events": (classes or classes_of(e)).as_json(),
        "radio_packets": _radio_packets(joined),
        "runs": [{**_of(run, *_RUN), "subflows": [_of(s, *_SUBFLOW) for s in run.subflows]} for run in e.runs],
        **tables_as_json(e.results),
        "arms": plain_table(arms.table(compared)),
        "records": _of(e.account, "made", "sent", "in_database", "lost"),
        "captures": [_of(capture, "file", "bytes", "packets") for capture in e.campaign.captures],
        "cpu_seconds": _cpu(e),
        "versions": versions(e),
        "interrupted": e.campaign.interrupted,
    }


def _radio_packets(joined: Joined | None) -> dict[str, Any] | None:
    return None if joined is None else {"gap_s": GAP_S, "factor": FACTOR, **joined.account}


def versions(e: Evaluation) -> dict[str, str]:
    """Versions as campaign and collector wrote them down; the campaign's word holds where both speak."""
    both = {**mapping(e.campaign.collector or {}, "versions"), **mapping(e.campaign.campaign, "versions")}
    return {str(k): str(v) for k, v in sorted(both.items()) if v is not None}


def _of(one: object, *names: str) -> dict[str, Any]:
    """What it tells under these names; None of None."""
    return {name: None if one is None else getattr(one, name) for name in names}


def _drops(e: Evaluation) -> dict[str, Any]:
    score = e.drop_score
    found = [event.change_db for event in e.events("signal_drop") if event.change_db is not None]
    return {
        "true": score.true if score else None,
        "detected": len(score.found) if score else None,
        "false": len(score.false_events) if score else None,
        "played": len(e.campaign.truth.drops) if e.campaign.truth else None,
        "by_size_db": scores.by_size(found) if e.radio_records is not None else None,
    }


def _cpu(e: Evaluation) -> dict[str, float]:
    total: dict[str, float] = {}
    for process in e.campaign.processes:
        if process.cpu_seconds is not None:
            total[process.name] = total.get(process.name, 0.0) + process.cpu_seconds
    return total


_SUMS = ("handovers", "signal_drops", "records", "cpu_seconds")


def pool_summary(pool: Pool, compared: Sequence[Comparison] = ()) -> dict[str, Any]:
    """As ``summary``. A sum is of the kits that know; None where none does. What is one kit's (mobility's scores) is None."""
    own = {kit.probe: summary(kit.evaluation, classes=pool.classes) for kit in pool.kits}
    each = list(own.values())
    stopped = [f"{probe}: {one['interrupted']}" for probe, one in own.items() if one["interrupted"]]
    return {
        **each[0],
        **{key: _sum(one[key] for one in each) for key in ("radio_records", "polls_late")},
        **{key: _sums([one[key] for one in each]) for key in _SUMS},
        "duration_s": max((one["duration_s"] for one in each if one["duration_s"] is not None), default=None),
        "mobility": each[0]["mobility"] if len(each) == 1 else dict.fromkeys(each[0]["mobility"]),
        "radio_packets": _radio_packets(pool.joined),
        **{key: [{"probe": p, **row} for p, one in own.items() for row in one[key]] for key in ("runs", "captures")},
        **tables_as_json(pool.results),
        "arms": plain_table(arms.table(compared)),
        "versions": {
            name: ", ".join(sorted({one["versions"][name] for one in each if name in one["versions"]}))
            for name in sorted({name for one in each for name in one["versions"]})
        },
        "interrupted": "; ".join(stopped) or None,
        "probes": _probes(pool),
        "marks": pool.marks,
        "by": pool.by,
        "parts": [
            {"part": part, "probes": [kit.probe for kit in of.each], **tables_as_json(pool.results_of(part))}
            for part, of in pool.parts.items()
        ],
    }


def _probes(pool: Pool) -> list[dict[str, Any]]:
    return [
        {
            "probe": kit.probe,
            "operators": kit.operators,
            "city": kit.part("city"),
            "runs": len(kit.campaign.manifests),
            "radio_records": kit.evaluation.radio_records,
            **{f"{at}_utc_ns": whole(kit.campaign.campaign, f"{at}_utc_ns") for at in ("started", "ended")},
        }
        for kit in pool.kits
    ]


def _sum(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _sums(found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Key by key, in objects within too."""
    made: dict[str, Any] = {}
    for key in dict.fromkeys(key for one in found for key in one):
        values = [one.get(key) for one in found]
        inside = [value for value in values if isinstance(value, Mapping)]
        made[key] = _sums(inside) if inside else _sum(values)
    return made
