"""What an event did to a subflow's round-trip time: t_R, the peak, and how much a decibel costs (Mohan §4.1, §4.2). Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
BEFORE_S = 5.0
SETTLED_S = 2.0
"""So long a subflow must have had samples before the event: in a transfer's first round trips everything rises."""
FACTOR = 1.5
"""Recovered is what is back within this factor of the level before."""
RISES_WITHIN_S = 5.0
LONGEST_S = 60.0


class Recovery(NamedTuple):
    """``level_ms``: median before; ``peak_ms``: the greatest until recovery. ``t_r_s``: None when it was not back before the samples, or
    ``LONGEST_S``, ended; 0 when it never left."""

    level_ms: float
    peak_ms: float
    t_r_s: float | None


def recovery(t_s: Array, rtt_ms: Array, event_s: float, factor: float = FACTOR) -> Recovery | None:
    """Of one subflow's samples in order of time; None without samples after the event, or since ``SETTLED_S`` before it at
    least."""
    known = np.isfinite(rtt_ms)
    t, v = t_s[known], rtt_ms[known]
    before = v[(t >= event_s - BEFORE_S) & (t < event_s)]
    after = (t >= event_s) & (t <= event_s + LONGEST_S)
    if len(before) == 0 or t[0] > event_s - SETTLED_S or not after.any():
        return None
    level = float(np.median(before))
    at, seen = t[after] - event_s, v[after]
    above = seen > factor * level
    early = np.flatnonzero(above & (at <= RISES_WITHIN_S))
    if len(early) == 0:
        return Recovery(level, float(seen[at <= RISES_WITHIN_S].max(initial=seen[0])), 0.0)
    back = np.flatnonzero(~above[early[0] :])
    if len(back) == 0:
        return Recovery(level, float(seen.max()), None)
    end = early[0] + back[0]
    return Recovery(level, float(seen[: end + 1].max()), float(at[end]))


def factor_per_2_db(drops_db: Sequence[float], normalised: Sequence[float]) -> float | None:
    """By which factor the normalised RTT grows when a drop is 2 dB larger: the least squares of its logarithm (the paper's is 1.7). None
    of fewer than three values or of drops of one size. ValueError of what is not above 0."""
    if len(drops_db) < 3 or len(set(drops_db)) < 2:
        return None
    if any(not math.isfinite(v) or v <= 0 for v in normalised):
        raise ValueError("a normalised RTT is above 0")
    slope = np.polyfit(np.abs(np.array(drops_db, dtype=np.float64)), np.log(np.array(normalised, dtype=np.float64)), 1)[
        0
    ]
    return float(math.exp(2 * slope))
