"""Axes of a figure's panel: their ends, and round ticks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_FURTHEST = 300.0
"""Powers of ten that a logarithmic axis reaches to."""


@dataclass(frozen=True, slots=True)
class Axis:
    """``name`` ends in the unit. ``names``: places with a name each, 0, 1, …. ``low``, ``high``: fixed ends; else those of the values, with
    ``zero`` among them. ``flipped``: great values at the beginning."""

    name: str
    log: bool = False
    names: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    zero: bool = False
    flipped: bool = False
    bytes: bool = False

    def ends(self, values: Iterable[float], head: float = 0.05) -> tuple[float, float]:
        """So that every value lies between them; values that a logarithm has not are left out. ``head``: room above the greatest."""
        if self.names:
            return -0.5, len(self.names) - 0.5
        if self.log:
            known = [min(math.log10(v), _FURTHEST) for v in values if v > 0]
            low = min(known, default=0.0) if self.low is None else math.log10(self.low)
            high = max(known, default=1.0) if self.high is None else math.log10(self.high)
            if high - low < 0.3:
                low, high = low - 0.3, high + 0.3
            long = high - low
            low, high = low - (0.04 * long if self.low is None else 0), high + (head * long if self.high is None else 0)
            return 10.0**low, 10.0**high
        known = [*values, *([0.0] if self.zero else [])]
        low = min(known, default=0.0) if self.low is None else self.low
        high = max(known, default=1.0) if self.high is None else self.high
        if high <= low:
            low, high = (low - 0.5 if self.low is None else low), low + max(0.5, abs(low) * 1e-9)
        long = high - low
        low -= 0.06 * long if self.low is None and low != 0 else 0
        return low, high + (head * long if self.high is None and high != 0 else 0)

    def ticks(self, low: float, high: float) -> list[tuple[float, str]]:
        """Values between the ends, and their words."""
        if self.names:
            return [(float(n), name) for n, name in enumerate(self.names)]
        if not self.log:
            return [(v, short(v)) for v in rounds(low, high)]
        span = math.log10(high / low) if high / low < math.inf else 2 * _FURTHEST
        wanted = (1,) if span > 2.2 else (1, 3) if span > 1.2 else (1, 2, 5)
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        values = [v for p in powers for m in wanted if low * 0.999 <= (v := m * 10.0**p) <= high * 1.001]
        written = size if self.bytes else short
        return [(v, written(v)) for v in values[:: math.ceil(len(values) / 7)]] if values else []


def rounds(low: float, high: float, most: float = 5.5) -> list[float]:
    """Three to six round numbers between ``low`` and ``high``."""
    step = 10.0 ** math.floor(math.log10((high - low) / 4))
    step *= next(m for m in (1, 2, 5, 10, 20) if (high - low) / (step * m) <= most)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [n * step for n in range(first, last + 1)]


def short(value: float) -> str:
    """Three figures, with k, M or G for large ones."""
    for factor, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= factor:
            return f"{value / factor:.3g}{letter}".replace("-", "−")
    return f"{value:.3g}".replace("-", "−")


def size(count: float) -> str:
    """Bytes in decimal units, without a space between."""
    for factor, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= factor:
            return f"{count / factor:.4g} {unit}"
    return f"{count:.4g} B"


def binary_size(count: float) -> str:
    """Bytes as the papers with sizes of powers of two write them: 8 KB are 8192."""
    for factor, unit in ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")):
        if count >= factor and count % (factor >> 2) == 0:
            return f"{count / factor:.4g} {unit}"
    return size(count)


def round_top(values: Sequence[float]) -> float:
    """A round end of an axis, a little above the greatest, which counts as 1 where it is less."""
    top = max([1.0, *values])
    step = 10.0 ** math.floor(math.log10(top)) / 2
    return math.ceil(top * 1.04 / step) * step
