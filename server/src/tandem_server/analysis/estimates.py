"""Estimates with their confidence intervals (a bootstrap with a fixed seed, so that one campaign always gives one figure), quantiles,
distributions, ellipses, and histograms of delays. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
LEVEL = 0.95
RESAMPLES = 1000
SEED = 2019
LEAST = 3
"""Of fewer values than this an interval says nothing: it is None."""
_AT_ONCE = 2_000_000


class Estimate(NamedTuple):
    """``value`` of ``n`` values; ``low`` to ``high``: the interval, None below ``LEAST`` values."""

    value: float
    low: float | None
    high: float | None
    n: int


def median(
    values: Sequence[float], level: float = LEVEL, resamples: int = RESAMPLES, seed: int = SEED
) -> Estimate | None:
    """The median and its interval at ``level``, whatever the values' order; None without finite values."""
    known = _finite(values)
    if len(known) == 0:
        return None
    drawn = drawn_again(len(known), lambda picked: np.median(known[picked], axis=1), resamples, seed)
    low, high = ends(drawn, level) if len(drawn) else (None, None)
    return Estimate(float(np.median(known)), low, high, len(known))


def drawn_again(
    n: int, of: Callable[[NDArray[np.int64]], Array], resamples: int = RESAMPLES, seed: int = SEED
) -> Array:
    """``of`` rows of places of ``n`` values, drawn with replacement, a row a resample; nothing of fewer than ``LEAST``."""
    chance, rows = np.random.default_rng(seed), max(1, _AT_ONCE // max(n, 1))
    parts = [
        of(chance.integers(0, n, (min(rows, resamples - done), n)))
        for done in range(0, resamples if n >= LEAST else 0, rows)
    ]
    return np.concatenate(parts) if parts else np.empty(0)


def mean(values: Sequence[float]) -> Estimate | None:
    """The mean and its interval; None without finite values. Of paired differences or logarithms of ratios: the pairs are
    what is drawn again.

    Percentiles alone are too narrow for few values (of normal ones they held the mean in 83, 89, 93 % for 5, 10, 30 values): they are
    expanded as Student's interval is over the normal one (Hesterberg, The American Statistician 69, 2015, section 3.4)."""
    known = _finite(values)
    if len(known) == 0:
        return None
    value, drawn = float(known.mean()), drawn_again(len(known), lambda picked: known[picked].mean(axis=1))
    if not len(drawn):
        return Estimate(value, None, None, len(known))
    wider = math.sqrt(len(known) / (len(known) - 1)) * _student(len(known) - 1) / _Z
    low, high = (value + wider * (end - value) for end in ends(drawn))
    return Estimate(value, low, high, len(known))


def spread(values: Sequence[float]) -> tuple[float, float | None] | None:
    """Mean and its standard error (the sample's deviation over √n; None of a single value), as Chen et al. print them; None without
    finite values."""
    known = _finite(values)
    if len(known) == 0:
        return None
    error = float(known.std(ddof=1)) / math.sqrt(len(known)) if len(known) > 1 else None
    return float(known.mean()), error


def rate(counts: Sequence[float], exposures: Sequence[float], per: float) -> Estimate | None:
    """How many in ``per`` of exposure: Σ counts / Σ exposures · per over windows, which are drawn again. ``n``: windows. None without
    exposure. ValueError for lists of two lengths and negative exposures."""
    if len(counts) != len(exposures) or any(e < 0 for e in exposures):
        raise ValueError("each window has one count and one exposure, which is not negative")
    windows = [(c, e) for c, e in zip(counts, exposures, strict=True) if e > 0]
    if not windows:
        return None
    c, e = (np.array(column, dtype=np.float64) for column in zip(*windows, strict=True))
    drawn = drawn_again(len(windows), lambda picked: c[picked].sum(axis=1) / e[picked].sum(axis=1) * per)
    low, high = ends(drawn) if len(drawn) else (None, None)
    return Estimate(float(c.sum() / e.sum() * per), low, high, len(windows))


def share(true: int, n: int) -> Estimate | None:
    """A share of ``n`` yes-or-no values. The interval is Wilson's, which a bootstrap lacks at 0 and 1; None without values."""
    if n == 0:
        return None
    if not 0 <= true <= n:
        raise ValueError(f"{true} of {n} is no share")
    p, factor = true / n, 1 + _Z * _Z / n
    middle = (p + _Z * _Z / (2 * n)) / factor
    half = _Z / factor * math.sqrt(p * (1 - p) / n + _Z * _Z / (4 * n * n))
    return Estimate(p, middle - half if true else 0.0, middle + half if true < n else 1.0, n)


_Z = NormalDist().inv_cdf((1 + LEVEL) / 2)
"""Within so many standard deviations a normal value lies with probability ``LEVEL``."""


def _student(freedom: int) -> float:
    """The same of Student's distribution, from 2 degrees of ``freedom`` on to 3 % (Abramowitz and Stegun 26.7.5)."""
    z = _Z
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return z + sum(float(term / freedom**power) for power, term in enumerate(terms, 1))


def _finite(values: Sequence[float]) -> Array:
    """In order, so that theirs does not matter."""
    found = np.asarray(values, dtype=np.float64)
    return np.sort(found[np.isfinite(found)])


def ends(found: Array, level: float = LEVEL) -> tuple[float, float]:
    """Of the interval at ``level`` of what was drawn again."""
    low, high = np.quantile(found, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


MOST_STEPS = 200


class Box(NamedTuple):
    """Cordero's box and whiskers: quartiles and the 10 % and 90 % deciles (§4.2)."""

    p10: float
    p25: float
    p50: float
    p75: float
    p90: float
    n: int


def quantile(values: Sequence[float], share: float) -> float | None:
    """By linear interpolation; None without values."""
    return float(np.quantile(np.asarray(values, dtype=np.float64), share)) if len(values) else None


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


class Ellipse(NamedTuple):
    """Centre, standard deviations and correlation of a Gaussian of ``n`` points. Its outline: ``outline``."""

    x: float
    y: float
    sd_x: float
    sd_y: float
    correlation: float
    n: int

    def outline(self, points: int = 48) -> list[tuple[float, float]]:
        """Points at one Mahalanobis distance from the centre, the first again at the end."""
        rest = math.sqrt(max(0.0, 1 - self.correlation**2))
        turns = (2 * math.pi * k / points for k in range(points + 1))
        return [
            (
                self.x + self.sd_x * math.cos(a),
                self.y + self.sd_y * (self.correlation * math.cos(a) + rest * math.sin(a)),
            )
            for a in turns
        ]


def ellipse(x: Sequence[float], y: Sequence[float]) -> Ellipse | None:
    """Of at least three points; None of fewer."""
    if len(x) < 3:
        return None
    a, b = np.array(x, dtype=np.float64), np.array(y, dtype=np.float64)
    sd_x, sd_y = float(a.std(ddof=1)), float(b.std(ddof=1))
    correlation = float(np.corrcoef(a, b)[0, 1]) if sd_x > 0 and sd_y > 0 else 0.0
    return Ellipse(float(a.mean()), float(b.mean()), sd_x, sd_y, correlation, len(a))


MOST_POINTS = 200


@dataclass(frozen=True, slots=True)
class Histogram:
    """``counts`` by ``ms`` begun (*n*: more than *n* - 1 and at most *n*; 0: none), in order, once each. ``longer``: how many took longer
    than anybody saw, so longer than any number says."""

    ms: Array
    counts: Array
    longer: float = 0.0

    @property
    def n(self) -> int:
        """All of them."""
        return int(self.counts.sum() + self.longer)

    def above(self, most: int = MOST_POINTS) -> list[tuple[float, float]]:
        """(ms, share that took longer), exact at each; at most so many, as many in the tail as before it."""
        share = (self.longer + self.counts.sum() - np.cumsum(self.counts)) / max(self.n, 1)
        places = np.arange(len(self.ms))
        if len(places) > most:
            wanted = np.geomspace(max(float(self.ms[0]), 1.0), float(self.ms[-1]), most)
            places = np.unique(np.searchsorted(self.ms, wanted).clip(0, len(places) - 1))
        return [(float(self.ms[k]), float(share[k])) for k in places]

    def mean_ms(self) -> float | None:
        """Over those that are known, each in the middle of its millisecond; None without any."""
        middle = np.maximum(self.ms - 0.5, 0.0)
        return float(np.average(middle, weights=self.counts)) if self.counts.sum() > 0 else None


def histogram(ms: Array, counts: Array) -> Histogram:
    """Of rows of such a table, in any order; NaN: longer than is known."""
    known = np.isfinite(ms)
    values, place = np.unique(ms[known], return_inverse=True)
    sums = np.asarray(np.bincount(place, counts[known], len(values)), dtype=np.float64)
    return Histogram(values, sums, float(counts[~known].sum()))


def pooled(found: Iterable[Histogram]) -> Histogram:
    """All together."""
    every = list(found)
    ms = np.concatenate([np.empty(0), *(one.ms for one in every), np.full(len(every), np.nan)])
    return histogram(ms, np.concatenate([np.empty(0), *(one.counts for one in every), [one.longer for one in every]]))
