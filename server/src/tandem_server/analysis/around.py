"""Median curves around events: what RTT and goodput did from 10 s before to 10 s after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
SPAN_S = 10.0
STEP_S = 0.5
LEAST_EVENTS = 3
"""A quartile of fewer values than this is no quartile: the band is left out."""


@dataclass(frozen=True, slots=True)
class Curve:
    """``offset_s`` and, of one length, median and quartiles over the events that have values there; ``n`` events that had any.

    Where no event has a value the curve is NaN; quartiles are NaN below LEAST_EVENTS.
    """

    offset_s: Array
    median: Array
    low: Array
    high: Array
    count: NDArray[np.int64]
    n: int


def curve(
    events_s: Sequence[float],
    series: Sequence[tuple[Array, Array]],
    span_s: float = SPAN_S,
    step_s: float = STEP_S,
) -> Curve:
    """For each event the mean of the samples in each step around it, then median and quartiles over the events.

    ``series``: (time, value) arrays of the quantity; a step without samples of an event stays empty, nothing is interpolated.
    """
    edges = np.arange(-span_s, span_s + step_s / 2, step_s)
    rows: list[Array] = []
    for event in events_s:
        t, v = _near(series, event, span_s)
        if len(t) == 0:
            continue
        place = np.digitize(t - event, edges) - 1
        sums = np.bincount(place, weights=v, minlength=len(edges))[: len(edges) - 1]
        counts = np.bincount(place, minlength=len(edges))[: len(edges) - 1]
        with np.errstate(invalid="ignore"):  # 0/0 is a step without samples: NaN is meant
            rows.append(np.where(counts > 0, sums / np.maximum(counts, 1), np.nan))
    offsets = (edges[:-1] + edges[1:]) / 2
    empty = np.full(len(offsets), np.nan)
    if not rows:
        return Curve(offsets, empty, empty, empty, np.zeros(len(offsets), dtype=np.int64), 0)
    table = np.array(rows)
    count = np.sum(np.isfinite(table), axis=0).astype(np.int64)
    some, enough = count > 0, count >= LEAST_EVENTS
    median, low, high = empty.copy(), empty.copy(), empty.copy()
    median[some] = np.nanmedian(table[:, some], axis=0)
    if enough.any():
        low[enough], high[enough] = np.nanquantile(table[:, enough], [0.25, 0.75], axis=0)
    return Curve(offsets, median, low, high, count, len(rows))


def _near(series: Sequence[tuple[Array, Array]], event: float, span_s: float) -> tuple[Array, Array]:
    times, values = [np.empty(0)], [np.empty(0)]
    for t, v in series:
        inside = (t >= event - span_s) & (t < event + span_s) & np.isfinite(v)
        times.append(t[inside])
        values.append(v[inside])
    return np.concatenate(times), np.concatenate(values)
