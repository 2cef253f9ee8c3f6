"""Axes of a figure's panel: from values to places, with round ticks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tandem_server.report.charts import short, ticks


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

    def fitted(self, values: Sequence[float], begin: float, end: float, head: float = 0.05) -> Scale:
        """From ``begin`` to ``end`` (places) so that every value lies on it; values that a logarithm has not are left out. ``head``: room
        above the greatest."""
        if self.names:
            low, high = -0.5, len(self.names) - 0.5
        elif self.log:
            known = [math.log10(v) for v in values if v > 0]
            low, high = min(known, default=0.0), max(known, default=1.0)
            low = low if self.low is None else math.log10(self.low)
            high = high if self.high is None else math.log10(self.high)
            if high - low < 0.3:
                low, high = low - 0.3, high + 0.3
            long = high - low
            low, high = low - (long * 0.04 if self.low is None else 0), high + (long * head if self.high is None else 0)
        else:
            known = [*values, *([0.0] if self.zero else [])]
            low = min(known, default=0.0) if self.low is None else self.low
            high = max(known, default=1.0) if self.high is None else self.high
            if high <= low:
                low, high = (low - 0.5 if self.low is None else low), high + 0.5
            long = high - low
            if self.low is None and low != 0:
                low -= long * 0.06
            if self.high is None and high != 0:
                high += long * head
        return Scale(self, low, high, *((end, begin) if self.flipped else (begin, end)))


@dataclass(frozen=True, slots=True)
class Scale:
    """``low`` and ``high`` in the axis' own measure (powers of ten on a logarithmic one), at the places ``begin`` and ``end``."""

    axis: Axis
    low: float
    high: float
    begin: float
    end: float

    def at(self, value: float) -> float:
        """The place of a value; outside it is put to the edge."""
        measure = math.log10(max(value, 1e-300)) if self.axis.log else value
        part = (min(max(measure, self.low), self.high) - self.low) / (self.high - self.low)
        return self.begin + part * (self.end - self.begin)

    def ticks(self) -> list[tuple[float, str]]:
        """Places and their words."""
        if self.axis.names:
            return [(self.at(n), name) for n, name in enumerate(self.axis.names)]
        if not self.axis.log:
            return [(self.at(v), short(v)) for v in ticks(self.low, self.high)]
        span = self.high - self.low
        wanted = (1,) if span > 2.2 else (1, 3) if span > 1.2 else (1, 2, 5)
        powers = range(math.floor(self.low), math.ceil(self.high) + 1)
        values = [m * 10.0**p for p in powers for m in wanted if self.low <= math.log10(m * 10.0**p) <= self.high]
        every = 2 if len(values) > 7 else 1
        if self.axis.bytes:
            return [(self.at(v), size(v)) for v in values[::every]]
        return [(self.at(v), short(v)) for v in values[::every]]


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
