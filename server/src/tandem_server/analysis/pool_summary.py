"""summary.json of several kits: the keys of one campaign's, summed up, and what a pool has besides (server/spec/campaign-folder.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tandem_server.analysis import arms
from tandem_server.analysis.arms import Comparison
from tandem_server.analysis.pool import Pool
from tandem_server.analysis.reading import whole
from tandem_server.analysis.summary import summary
from tandem_server.analysis.tables.told import plain_table, told

_SUMS = ("handovers", "signal_drops", "records", "cpu_seconds")


def pool_summary(pool: Pool, compared: Sequence[Comparison] = ()) -> dict[str, Any]:
    """As ``summary``. A sum is of the kits that know; None where none does. What is one kit's (mobility's scores) is None."""
    own = {kit.probe: summary(kit.evaluation, classes=pool.classes) for kit in pool.kits}
    each = list(own.values())
    stopped = [f"{probe}: {one['interrupted']}" for probe, one in own.items() if one["interrupted"]]
    joined = pool.joined
    return {
        **each[0],
        **{key: _sum(one[key] for one in each) for key in ("radio_records", "polls_late")},
        **{key: _sums([one[key] for one in each]) for key in _SUMS},
        "duration_s": max((one["duration_s"] for one in each if one["duration_s"] is not None), default=None),
        "mobility": each[0]["mobility"] if len(each) == 1 else dict.fromkeys(each[0]["mobility"]),
        "radio_packets": None if joined is None else {**joined.rule._asdict(), **joined.account},
        **{key: [{"probe": p, **row} for p, one in own.items() for row in one[key]] for key in ("runs", "captures")},
        **told(pool.results),
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
            {"part": part, "probes": [kit.probe for kit in of.each], **told(pool.results_of(part))}
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
