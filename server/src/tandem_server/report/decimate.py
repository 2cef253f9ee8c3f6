"""Fewer points that look the same: an envelope of minima and maxima for lines, means for filled areas."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
BUCKETS = 900
"""Columns of a plot that a reader can tell apart; a line gets two points in each."""


def envelope(t: Array, v: Array, buckets: int = BUCKETS) -> tuple[Array, Array]:
    """At most 2·``buckets`` points, in order of time, that keep each bucket's least and greatest value at their own times.

    ``t`` ascending. NaN marks a gap and is kept where a whole bucket has no value. Short series come back as they are.
    """
    if len(t) <= 2 * buckets:
        return t, v
    place = _places(t, buckets)
    keep: list[int] = []
    starts = np.searchsorted(place, np.arange(buckets))
    for start, end in zip(starts, [*starts[1:], len(t)], strict=True):
        if start == end:
            continue
        part = v[start:end]
        if np.all(np.isnan(part)):
            keep.append(int(start))
            continue
        low, high = start + int(np.nanargmin(part)), start + int(np.nanargmax(part))
        keep += sorted({int(low), int(high)})
    return t[keep], v[keep]


def means(t: Array, columns: list[Array], buckets: int = BUCKETS) -> tuple[Array, list[Array]]:
    """Each bucket's mean time and mean of every column; short series come back as they are. ``t`` ascending, no NaN."""
    if len(t) <= 2 * buckets:
        return t, columns
    place = _places(t, buckets)
    count = np.bincount(place, minlength=buckets)
    used = count > 0
    averaged = [np.bincount(place, weights=c, minlength=buckets)[used] / count[used] for c in (t, *columns)]
    return averaged[0], averaged[1:]


def _places(t: Array, buckets: int) -> NDArray[np.int64]:
    width = (t[-1] - t[0]) / buckets or 1.0
    places: NDArray[np.int64] = np.minimum(((t - t[0]) / width).astype(np.int64), buckets - 1)
    return places
