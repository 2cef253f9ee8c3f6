"""Plots over a common horizontal axis, as the body of an SVG whose horizontal unit is 10 ms.

The SVG is stretched to the width of the page (``preserveAspectRatio="none"``); strokes and dots keep their size by
``vector-effect``. Zooming is a change of the view box. All text around it is HTML, so it keeps its size on any screen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tandem_server.report.decimate import envelope, means

Array = NDArray[np.float64]
UNITS_PER_S = 100
GAP_S = 1.6
"""A line is broken where two neighbouring samples lie further apart: nothing was measured between them."""


@dataclass(frozen=True, slots=True)
class Tick:
    """A line of the grid: its text and its place in per cent from the left or the top."""

    text: str
    percent: float


@dataclass(frozen=True, slots=True)
class Axis:
    """The vertical axis from ``low`` (bottom) to ``high``; ``log`` is logarithmic, both ends above 0 then."""

    low: float
    high: float
    unit: str
    log: bool = False

    def place(self, values: Array, height: float) -> Array:
        """Vertical positions, 0 at the top; values outside are drawn at the edge."""
        clipped = np.clip(values, self.low, self.high)
        low, high = self.low, self.high
        if self.log:
            clipped, low, high = np.log(clipped), math.log(low), math.log(high)
        placed: Array = (high - clipped) / (high - low) * height
        return placed

    def ticks(self) -> list[Tick]:
        """Round values, about four; 1-2-5 in each decade on a logarithmic axis."""
        values = _decades(self.low, self.high) if self.log else _rounds(self.low, self.high, 5)
        return [Tick(_short(v), float(self.place(np.array([v]), 100.0)[0])) for v in values]


@dataclass(slots=True)
class Plot:
    """One frame. ``body`` collects the SVG; ``drawn`` is (css class, name) of each thing in it."""

    name: str
    title: str
    axis: Axis
    start_s: float
    end_s: float
    height: int = 170
    digits: int = 1
    group: str = "time"
    body: list[str] = field(default_factory=list)
    drawn: list[tuple[str, str]] = field(default_factory=list)
    empty: str | None = None

    def line(self, name: str, css: str, t: Array, v: Array, gap_s: float = GAP_S) -> None:
        """A line through the samples, broken at gaps and at NaN."""
        t, v = envelope(t, v)
        path = self._broken(t, v, gap_s)
        if path:
            self.body.append(f'<path class="line {css}" {_named(name)} d="{path}"/>')
            self._say(f"line {css}", name)

    def area(self, name: str, css: str, t: Array, low: Array, high: Array) -> None:
        """A filled area between two curves on one time grid without gaps."""
        if len(t) < 2:
            return
        t, (low, high) = means(t, [low, high])
        x = self._x(t)
        top, bottom = self.axis.place(high, self.height), self.axis.place(low, self.height)
        forth = " ".join(f"{a},{b:.2f}" for a, b in zip(x, top, strict=True))
        back = " ".join(f"{a},{b:.2f}" for a, b in zip(x[::-1], bottom[::-1], strict=True))
        self.body.append(f'<path class="area {css}" {_named(name)} d="M{forth} {back}Z"/>')
        self._say(f"area {css}", name)

    def dots(self, name: str, css: str, t: Array, v: Array) -> None:
        """Round marks of constant size."""
        inside = np.isfinite(v)
        if not inside.any():
            return
        places = zip(self._x(t[inside]), self.axis.place(v[inside], self.height), strict=True)
        path = "".join(f"M{a},{b:.2f}h0" for a, b in places)
        self.body.append(f'<path class="dot halo" d="{path}"/><path class="dot {css}" d="{path}"/>')
        self._say(f"dot {css}", name)

    def verticals(self, name: str, css: str, times_s: list[float]) -> None:
        """Lines from top to bottom at the given times."""
        if times_s:
            path = "".join(f"M{a},0v{self.height}" for a in self._x(np.array(times_s)))
            self.body.append(f'<path class="vertical {css}" d="{path}"/>')
            self._say(f"vertical {css}", name)

    def legend(self) -> list[tuple[str, str]]:
        """What is drawn, (css class, name): areas and lines before marks."""
        order = ("area", "line", "dot", "vertical")
        return sorted(self.drawn, key=lambda item: order.index(item[0].split()[0]))

    def x_ticks(self) -> list[Tick]:
        """Round times."""
        span = self.end_s - self.start_s
        return [Tick(_short(v), (v - self.start_s) / span * 100) for v in _rounds(self.start_s, self.end_s, 10)]

    @property
    def x0(self) -> int:
        """The left edge in the SVG's units."""
        return round(self.start_s * UNITS_PER_S)

    @property
    def width(self) -> int:
        """The width in the SVG's units."""
        return max(1, round((self.end_s - self.start_s) * UNITS_PER_S))

    def grid(self) -> str:
        """The horizontal lines of the grid as one path."""
        return "".join(f"M{self.x0},{tick.percent * self.height / 100:.2f}h{self.width}" for tick in self.axis.ticks())

    def _x(self, t: Array) -> NDArray[np.int64]:
        return np.rint(t * UNITS_PER_S).astype(np.int64)

    def _broken(self, t: Array, v: Array, gap_s: float) -> str:
        x, y = self._x(t), self.axis.place(v, self.height)
        parts: list[str] = []
        last = -math.inf
        for at, a, b in zip(t, x, y, strict=True):
            if math.isnan(b):
                last = -math.inf
                continue
            parts.append(f"{'M' if at - last > gap_s else 'L'}{a},{b:.2f}")
            last = float(at)
        return "".join(parts)

    def _say(self, css: str, name: str) -> None:
        if (css, name) not in self.drawn:
            self.drawn.append((css, name))


def _named(name: str) -> str:
    escaped = name.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
    return f'data-name="{escaped}"'


def _rounds(low: float, high: float, about: int) -> list[float]:
    raw = (high - low) / about
    if raw <= 0:
        return [low]
    power = 10 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [n * step for n in range(first, last + 1)]


def _decades(low: float, high: float) -> list[float]:
    wanted = (1,) if high / low > 1000 else (1, 2, 5) if high / low < 60 else (1, 3)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [m * 10.0**p for p in powers for m in wanted if low * 0.999 <= m * 10.0**p <= high * 1.001]


def _short(value: float) -> str:
    return f"{value:,.10g}".replace(",", "\u202f").replace("-", "−")
