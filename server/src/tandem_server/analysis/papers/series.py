"""A run's series as the figures take them: seconds, pairs of subflows, what surrounds an event. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tandem_server.analysis.recorded import SubflowSeries

Array = NDArray[np.float64]


def by_second(t_s: Array, values: Array) -> dict[int, float]:
    """The mean of each second that has a finite value."""
    known = np.isfinite(values)
    seconds = np.floor(t_s[known]).astype(np.int64)
    out: dict[int, float] = {}
    for second in np.unique(seconds):
        out[int(second)] = float(values[known][seconds == second].mean())
    return out


def of_operators(series: Sequence[SubflowSeries], key: str) -> dict[str, dict[int, float]]:
    """Of one run and end: each operator's seconds of ``goodput_bit_per_s`` (added up over its subflows) or ``rtt_ms`` (the least one's)."""
    out: dict[str, dict[int, float]] = {}
    for one in series:
        if one.operator is None:
            continue
        mine = out.setdefault(one.operator, {})
        for second, value in by_second(one.t_s, getattr(one, key)).items():
            if key == "rtt_ms":
                mine[second] = min(value, mine.get(second, value))
            else:
                mine[second] = mine.get(second, 0.0) + value
    return out


def differences(found: Mapping[str, Mapping[int, float]]) -> list[float]:
    """Between the least and the greatest, in each second that two operators have."""
    seconds = {second for series in found.values() for second in series}
    both = ([series[s] for series in found.values() if s in series] for s in sorted(seconds))
    return [max(values) - min(values) for values in both if len(values) > 1]


def utilisation(found: Mapping[str, Mapping[int, float]], first: str, second: str) -> list[tuple[float, float]]:
    """What two operators carried in each second, over what both carried in the run's best seconds (their 95 % quantile), at most 1."""
    a, b = found.get(first, {}), found.get(second, {})
    seconds = sorted(set(a) | set(b))
    pairs = [(a.get(s, 0.0), b.get(s, 0.0)) for s in seconds]
    best = float(np.quantile([x + y for x, y in pairs], 0.95)) if pairs else 0.0
    return [(min(1.0, x / best), min(1.0, y / best)) for x, y in pairs] if best > 0 else []


def means(points: Sequence[tuple[float, float]], step_s: float) -> list[tuple[float, float]]:
    """Of each step that has any, at its middle."""
    found: dict[int, list[float]] = {}
    for t, value in points:
        found.setdefault(math.floor(t / step_s), []).append(value)
    return [((step + 0.5) * step_s, sum(values) / len(values)) for step, values in sorted(found.items())]


def around(t_s: Array, values: Array, at_s: float, before_s: float, after_s: float) -> list[tuple[float, float]]:
    """Finite samples from ``before_s`` to ``after_s`` about a moment, their times from it."""
    inside = (t_s >= at_s - before_s) & (t_s <= at_s + after_s) & np.isfinite(values)
    return [(float(t - at_s), float(v)) for t, v in zip(t_s[inside], values[inside], strict=True)]
