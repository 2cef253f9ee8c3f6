"""Stretches of a table's rows, many at once: from where to where, sums, and the rows themselves side by side. Pure."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from tandem_server.analysis.radio.shapes import Array, Whole

Truth = NDArray[np.bool_]
CELLS = 1 << 21
"""So many values are laid side by side at once."""


class Index:
    """Finds rows by subflow and place; the rows are in this order."""

    def __init__(self, flow: Whole, place: Whole, first: int, last: int) -> None:
        self._first, self._span = first, last - first + 2
        self._key = flow * self._span + (place - first)

    def between(self, flow: Whole, low: Whole, high: Whole) -> tuple[Whole, Whole]:
        """Of each subflow the rows from place ``low`` to before ``high``, as rows from … to before …."""
        a, b = (np.clip(at - self._first, 0, self._span - 1) for at in (low, np.maximum(low, high)))
        return np.searchsorted(self._key, flow * self._span + a), np.searchsorted(self._key, flow * self._span + b)


def sums(values: Array, low: Whole, high: Whole) -> Array:
    """Of each stretch."""
    upto = np.concatenate([[0.0], np.cumsum(values)])
    return np.asarray(upto[high] - upto[low], dtype=np.float64)


def repeated(counts: Whole) -> tuple[Whole, Whole]:
    """As many rows as ``counts`` say: which one each belongs to, and its number there."""
    whose = np.repeat(np.arange(len(counts)), counts)
    return whose, np.arange(len(whose)) - np.repeat(np.cumsum(counts) - counts, counts)


def side_by_side(low: Whole, high: Whole) -> Iterator[tuple[Whole, Whole, Truth]]:
    """Stretches as rectangles of moderate size: which stretches, their rows' numbers, and which of these count."""
    lengths = np.maximum(high - low, 0)
    order = np.argsort(lengths, kind="stable")
    at = 0
    while at < len(order):
        # The longest of so many decides how wide they are; they come in order of length.
        widths = np.maximum(lengths[order[at:]], 1)
        many = max(1, int(np.searchsorted(widths * np.arange(1, len(widths) + 1), CELLS, side="right")))
        which = order[at : at + many]
        across = np.arange(max(1, int(lengths[which].max())))
        yield which, low[which, None] + across, across < lengths[which, None]
        at += many


def medians(values: Array, low: Whole, high: Whole) -> Array:
    """Of each stretch; NaN of an empty one. ``values`` without NaN."""
    out = np.full(len(low), np.nan)
    for which, rows, there in side_by_side(low, high):
        if len(values) == 0:
            continue
        picked = np.where(there, values[np.minimum(rows, len(values) - 1)], np.inf)
        picked.sort(axis=1)
        count = there.sum(axis=1)
        some = count > 0
        line = np.arange(len(which))[some]
        upper, lower = picked[line, count[some] // 2], picked[line, (count[some] - 1) // 2]
        out[which[some]] = (upper + lower) / 2
    return out


def greatest(values: Array, low: Whole, high: Whole) -> Array:
    """Of each stretch; NaN of an empty one. ``values`` without NaN."""
    out = np.full(len(low), np.nan)
    for which, rows, there in side_by_side(low, high):
        if len(values):
            some = there.any(axis=1)
            picked = np.where(there, values[np.minimum(rows, len(values) - 1)], -np.inf)
            out[which[some]] = picked.max(axis=1)[some]
    return out
