"""A run's series as the figures take them: seconds, pairs of subflows, what surrounds an event. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tandem_server.analysis.recorded import SubflowSeries

Array = NDArray[np.float64]


def by_second(t_s: Array, values: Array) -> dict[int, float]:
    """The mean of each second that has a finite value."""
    known = np.isfinite(values)
    seconds, place, counts = np.unique(np.floor(t_s[known]).astype(np.int64), return_inverse=True, return_counts=True)
    sums = np.bincount(place, values[known], len(seconds))
    return dict(zip(seconds.tolist(), (sums / counts).tolist(), strict=True))


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
    """Between the least and the greatest RTT of operators, in each second in which one has a sample and two have begun.

    An operator that is silent in that second counts with the greater of its RTTs before and after the silence: left out, the seconds in
    which one link is at its worst would be missing.
    """
    seconds = sorted({second for series in found.values() for second in series})
    filled = [_filled(series, seconds[-1]) for series in found.values() if series]
    both = ([series[s] for series in filled if s in series] for s in seconds)
    return [max(values) - min(values) for values in both if len(values) > 1]


def _filled(series: Mapping[int, float], last: int) -> dict[int, float]:
    """With every second from its first one to ``last``."""
    known = sorted(series)
    out = dict(series)
    for second, following in zip(known, [*known[1:], last + 1], strict=True):
        worst = max(series[second], series.get(following, 0.0))
        out.update(dict.fromkeys(range(second + 1, following), worst))
    return out


def summed(series: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Times of all, in order, and what they add up to at each. Between its own times a series is what it was last; before and after it is
    nothing. Absent values (NaN) are no times."""
    known = [(t[keep], v[keep]) for t, v in series if (keep := np.isfinite(v)).any()]
    times = np.unique(np.concatenate([t for t, _ in known])) if known else np.empty(0)
    total = np.zeros(len(times))
    for t, v in known:
        order = np.argsort(t, kind="stable")
        inside = slice(np.searchsorted(times, t[order[0]]), np.searchsorted(times, t[order[-1]], side="right"))
        total[inside] += v[order[np.searchsorted(t[order], times[inside], side="right") - 1]]
    return times, total


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


SPAN_S = 10.0
STEP_S = 0.5
LEAST_EVENTS = 3
"""A quartile of fewer values than this is no quartile: the band is left out."""


class Curve(NamedTuple):
    """``offset_s`` and, of one length, median and quartiles over the events that have values there; ``n`` events that had any.

    Where no event has a value the curve is NaN; quartiles are NaN below LEAST_EVENTS.
    """

    offset_s: Array
    median: Array
    low: Array
    high: Array
    n: int


def curve(of: Sequence[tuple[Sequence[float], Sequence[tuple[Array, Array]]]]) -> Curve:
    """For each event the mean of the samples in each step around it, then median and quartiles over the events.

    ``of``: events, and the (time, value) arrays of the quantity that they may have moved; a step without samples of an event stays
    empty, nothing is interpolated.
    """
    edges = np.arange(-SPAN_S, SPAN_S + STEP_S / 2, STEP_S)
    table = np.array([row for events, series in of for row in _around_each(events, series, edges)])
    offsets = (edges[:-1] + edges[1:]) / 2
    median, low, high = (np.full(len(offsets), np.nan) for _ in range(3))
    if len(table):
        count = np.sum(np.isfinite(table), axis=0)
        some, enough = count > 0, count >= LEAST_EVENTS
        median[some] = np.nanmedian(table[:, some], axis=0)
        if enough.any():
            low[enough], high[enough] = np.nanquantile(table[:, enough], [0.25, 0.75], axis=0)
    return Curve(offsets, median, low, high, len(table))


def _around_each(events_s: Sequence[float], series: Sequence[tuple[Array, Array]], edges: Array) -> Iterator[Array]:
    """Means between ``edges``, of each event that has any."""
    times = np.concatenate([np.empty(0), *(t for t, _ in series)])
    values = np.concatenate([np.empty(0), *(v for _, v in series)])
    known = np.flatnonzero(np.isfinite(values))
    known = known[np.argsort(times[known], kind="stable")]
    times, values = times[known], values[known]
    for event in events_s:
        near = slice(*np.searchsorted(times, (event + edges[0], event + edges[-1])))
        if near.start == near.stop:
            continue
        place = np.digitize(times[near] - event, edges) - 1
        sums = np.bincount(place, weights=values[near], minlength=len(edges))[: len(edges) - 1]
        counts = np.bincount(place, minlength=len(edges))[: len(edges) - 1]
        yield np.divide(sums, counts, out=np.full(len(counts), np.nan), where=counts > 0)
