"""Small charts without a time axis of the campaign: curves over any quantity, as one SVG each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import escape

WIDTH, HEIGHT = 640, 230
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 12, 24, 34
MOST = 8
"""Curves in one chart: four colours, drawn through and dashed."""

Points = Sequence[tuple[float, float]]

_DOTTED = 25
"""Points of a curve that are drawn as spots too."""


@dataclass(frozen=True, slots=True)
class Chart:
    """``svg``: numbers and escaped texts only. ``legend``: class and name of each curve."""

    title: str
    svg: str
    legend: list[tuple[str, str]]
    note: str = ""


def lines(
    title: str,
    x_name: str,
    y_name: str,
    curves: Sequence[tuple[str, Points]],
    *,
    log_x: bool = False,
    note: str = "",
) -> Chart | None:
    """Curves by name; None without two points of any. Absent and endless values must be left out before."""
    shown = [(name, sorted(points)) for name, points in curves if len(points) > 1][:MOST]
    if log_x:
        shown = [(name, [(math.log10(x), y) for x, y in points if x > 0]) for name, points in shown]
    every = [point for _, points in shown for point in points]
    if len(every) < 2:
        return None
    x0, x1 = _span([x for x, _ in every])
    y0, y1 = _span([*(y for _, y in every), 0.0])

    def place(x: float, y: float) -> str:
        across = _LEFT + (x - x0) / (x1 - x0) * (WIDTH - _LEFT - _RIGHT)
        down = HEIGHT - _BOTTOM - (y - y0) / (y1 - y0) * (HEIGHT - _TOP - _BOTTOM)
        return f"{across:.1f} {down:.1f}"

    parts = []
    for value in ticks(y0, y1):
        at = place(x0, value)
        parts.append(f'<path class="grid" d="M{at}H{WIDTH - _RIGHT}"/>')
        parts.append(
            f'<text x="{_LEFT - 5}" y="{float(at.split()[1]) + 4:.1f}" text-anchor="end">{short(value)}</text>'
        )
    for value in ticks(x0, x1, whole=log_x):
        across = place(value, y0).split()[0]
        told = short(10**value) if log_x else short(value)
        parts.append(f'<text x="{across}" y="{HEIGHT - _BOTTOM + 15}" text-anchor="middle">{told}</text>')
    parts.append(f'<text class="name" x="{WIDTH - _RIGHT}" y="{HEIGHT - 3}" text-anchor="end">{escape(x_name)}</text>')
    parts.append(f'<text class="name" x="4" y="11">{escape(y_name)}</text>')
    legend = []
    for n, (name, points) in enumerate(shown):
        css = f"op{n % 4}" + (" dashed" if n >= 4 else "")
        parts.append(f'<path class="line {css}" d="M{"L".join(place(x, y) for x, y in points)}"/>')
        if len(points) <= _DOTTED:
            spots = (place(x, y).split() for x, y in points)
            parts += [f'<circle class="spot {css}" cx="{across}" cy="{down}" r="2.6"/>' for across, down in spots]
        legend.append((css, name))
    left_out = len(curves) - len(shown)
    more = f" {left_out} more in the CSV." if left_out > 0 and len(shown) == MOST else ""
    return Chart(title, "".join(parts), legend, (note + more).strip())


def _span(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def ticks(low: float, high: float, *, whole: bool = False) -> list[float]:
    """Three to six round numbers between ``low`` and ``high``; ``whole`` ones for powers of ten."""
    step = 10.0 ** math.floor(math.log10((high - low) / 4))
    step *= next(m for m in (1, 2, 5, 10) if (high - low) / (step * m) <= 5.5)
    if whole:
        step = max(1.0, round(step))
    first = math.ceil(low / step - 1e-9)
    slack = step * 1e-9
    return [n * step for n in range(first, first + 8) if low - slack <= n * step <= high + slack]


def short(value: float) -> str:
    """Three figures, with k, M or G for large ones."""
    for factor, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= factor:
            return f"{value / factor:.3g}{letter}"
    return f"{value:.3g}".replace("-", "−")
