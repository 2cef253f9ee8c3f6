"""Quantiles and distributions as figures draw them. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

MOST_STEPS = 200


class Box(NamedTuple):
    """Cordero's box and whiskers: quartiles and the 10 % and 90 % deciles (§4.2)."""

    p10: float
    p25: float
    p50: float
    p75: float
    p90: float
    n: int


def box(values: Sequence[float]) -> Box | None:
    """By linear interpolation; None without finite values."""
    known = [v for v in values if math.isfinite(v)]
    if not known:
        return None
    p10, p25, p50, p75, p90 = (float(q) for q in np.quantile(known, [0.1, 0.25, 0.5, 0.75, 0.9]))
    return Box(p10, p25, p50, p75, p90, len(known))


def cdf(values: Sequence[float], most: int = MOST_STEPS) -> list[tuple[float, float]]:
    """The steps of the distribution function, (value, share of values up to it), at most ``most`` of them."""
    ordered = sorted(v for v in values if math.isfinite(v))
    n = len(ordered)
    places = range(n) if n <= most else sorted({math.ceil((k + 1) * n / most) - 1 for k in range(most)})
    steps = {ordered[k]: (k + 1) / n for k in places}
    return list(steps.items())
