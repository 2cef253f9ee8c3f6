"""Multipath TCP against TCP over each path alone, of one pair of downloads. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tandem.schema.aggregation import bandwidth_benefit
from tandem.schema.record import Value
from tandem_server.analysis.coverage.seen import RunEnded


@dataclass(frozen=True, slots=True)
class PairPoint:
    """One point of ``tandem.schema.metrics.PAIR``, without the probe and the mobility state. ``start_utc_ns``: of its Multipath TCP run."""

    utc_ns: int
    start_utc_ns: int
    tags: dict[str, str]
    fields: dict[str, Value]


def pair_point(runs: Sequence[RunEnded], operators: Mapping[str, str], carried: Mapping[str, int]) -> PairPoint | None:
    """``runs``: all run records of one pair. ``operators``: by path. ``carried``: bytes of the Multipath TCP run by path.

    None for what is no pair: another number of Multipath TCP runs than one, no TCP run, or fewer runs than it was to have. A run that
    the network failed had a goodput of 0; of one that did not fail it is known.
    """
    multipath = [run for run in runs if run.kind == "mptcp"]
    singles = [run for run in runs if run.kind == "tcp"]
    planned = {run.of for run in runs if run.of is not None}
    if len(multipath) != 1 or not singles or (planned and max(planned) > len(runs)):
        return None
    one = multipath[0]
    if any(run.ok and run.goodput_bit_per_s is None for run in (one, *singles)):
        return None
    reached = {run.path: _goodput(run) for run in singles}
    best = max(sorted(reached), key=lambda path: reached[path])
    together, x = sum(reached.values()), _goodput(one)
    fields: dict[str, Value | None] = {
        "pairs": 1,
        "pair": one.pair,
        "run": one.id,
        "mptcp_goodput_bit_per_s": x,
        "best_goodput_bit_per_s": reached[best],
        "worst_goodput_bit_per_s": min(reached.values()),
        "sum_goodput_bit_per_s": together,
        "best_path": best if reached[best] > 0 else None,
        "best_operator": operators.get(best) if reached[best] > 0 else None,
        "gain": x / reached[best] if reached[best] > 0 else None,
        "paths": len(singles),
        "failed": sum(not run.ok for run in runs),
        "lower": int(x < reached[best]),
        **_shares(carried, one.path),
    }
    if one.pairing != "simultaneous" and together > 0:
        fields["sum_ratio"] = x / together
        fields["benefit_raw"] = raw = benefit(list(reached.values()), x)
        fields["benefit"] = None if raw is None else max(-1.0, min(1.0, raw))
    fields["benefits"], fields["shares"] = int(fields.get("benefit") is not None), int("primary_share" in fields)
    tags = {
        "pairing": one.pairing,
        "campaign": one.campaign,
        "operator": operators.get(one.path, ""),
        "fallback": str(one.fallback is True).lower(),
    }
    start = one.utc_ns - round((one.duration_s or 0.0) * 1e9)
    return PairPoint(one.utc_ns, start, tags, {name: value for name, value in fields.items() if value is not None})


def benefit(separate: Sequence[float], x: float) -> float | None:
    """Kaspar's aggregation benefit (Cordero et al., Eq. 2) of a goodput ``x``, not limited, with the sum of the paths as what they carry
    at once (disjoint paths: a pair does not measure that). None where one path carried all: there is nothing to gain. ValueError of what is
    no measurement: the schema lets no such goodput in."""
    return bandwidth_benefit(separate, sum(separate), x).raw


def _goodput(run: RunEnded) -> float:
    return run.goodput_bit_per_s or 0.0


def _shares(carried: Mapping[str, int], primary: str) -> dict[str, Value | None]:
    whole = sum(carried.values())
    if not whole:
        return {}
    return {"primary_share": carried.get(primary, 0) / whole, "most_loaded_share": max(carried.values()) / whole}
