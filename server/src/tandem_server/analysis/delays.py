"""How long round trips took and packets waited, by the captures' tables ``rtts`` and ``waits``: how often each was seen. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
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
