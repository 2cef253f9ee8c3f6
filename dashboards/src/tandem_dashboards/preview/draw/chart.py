"""Lines, bars and points over time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Any

from tandem_dashboards.grafana.frames import TIME, Frame
from tandem_dashboards.grafana.times import Range
from tandem_dashboards.preview.draw import svg
from tandem_dashboards.preview.fields import Config, config

LEFT, RIGHT, TOP, BOTTOM = 66, 12, 8, 22
_MOST_ROWS = 5
Mark = tuple[int, str, str]
"""An annotation: when, its words, its colour."""


@dataclass(frozen=True)
class Series:
    """What is drawn of one frame."""

    config: Config
    points: list[tuple[float, float | None]]

    @property
    def right(self) -> bool:
        """It has the axis at the right."""
        return self.config.custom.get("axisPlacement") == "right"

    @property
    def figures(self) -> list[float]:
        """Without gaps."""
        return [value for _, value in self.points if value is not None]


class Scale:
    """From figures to pixels, with soft or hard limits."""

    def __init__(self, series: Sequence[Series], top: float, bottom: float, stacked: bool) -> None:
        first = series[0].config
        custom = first.custom
        self.config, self.top, self.bottom = first, top, bottom
        self.log = (custom.get("scaleDistribution") or {}).get("type") == "log"
        figures = [value for one in series for value in one.figures]
        if stacked:
            figures = [*_sums(series), 0.0]
        if self.log:
            figures = [value for value in figures if value > 0]
        soft = [limit for limit in (custom.get("axisSoftMin"), custom.get("axisSoftMax")) if limit is not None]
        figures += [float(limit) for limit in soft if not self.log or limit > 0]
        if any(one.config.custom.get("drawStyle") == "bars" for one in series) and not self.log:
            figures.append(0.0)
        low, high = (min(figures), max(figures)) if figures else (0.0, 1.0)
        low = float(first.raw["min"]) if first.raw.get("min") is not None else low
        high = float(first.raw["max"]) if first.raw.get("max") is not None else high
        if self.log:
            low, high = (low, high) if 0 < low < high else (max(high, 1.0) / 10, max(high, 1.0))
        elif not low < high:
            low, high = (low - abs(low) * 0.1, low + abs(low) * 0.1) if low else (0.0, 1.0)
        elif first.raw.get("max") is None:
            high += (high - low) * 0.05  # so that the highest point is not on the edge
        self.low, self.high = low, high

    def y(self, value: float) -> float:
        """Pixels from the top."""
        low, high = self.low, self.high
        if self.log:
            value, low, high = (math.log10(max(v, 1e-12)) for v in (value, low, high))
        part = (value - low) / (high - low) if high > low else 0.5
        return self.bottom - part * (self.bottom - self.top)

    def ticks(self) -> list[float]:
        """Where the axis has words."""
        if self.log:
            exponents = range(math.floor(math.log10(self.low)), math.floor(math.log10(self.high)) + 1)
            tens = [10.0**n for n in exponents]
            steps = tens if len(tens) > 3 else [factor * ten for ten in tens for factor in (1, 2, 5)]
            return [step for step in steps if self.low <= step <= self.high]
        return svg.nice_steps(self.low, self.high, max(2, int((self.bottom - self.top) / 34)))


def draw(
    panel: Mapping[str, Any], frames: Sequence[Frame], span: Range, width: float, height: float, marks: Sequence[Mark]
) -> str:
    """The chart with its legend."""
    drawn = [
        Series(
            config(panel, frame.name, frame.ref, n),
            [(float(t or 0), _number(v)) for t, v in zip(frame.columns[TIME], frame.figures, strict=True)],
        )
        for n, frame in enumerate(frames)
        if TIME in frame.columns
    ]
    shown = panel["options"].get("legend") or {}
    wide = sum(len(one.config.title) * 7 + 30 for one in drawn)
    rows = len(drawn) + 1 if shown.get("calcs") else math.ceil(wide / width)
    rows = min(rows, _MOST_ROWS) if shown.get("showLegend") else 0
    plot = max(60.0, height - rows * 18 - (6 if rows else 0))
    return svg.picture(width, plot, _plot(drawn, span, width, plot, marks)) + (_legend(panel, drawn) if rows else "")


def _plot(drawn: list[Series], span: Range, width: float, height: float, marks: Sequence[Mark]) -> str:
    left = [one for one in drawn if not one.right] or drawn
    right = [one for one in drawn if one.right and left is not drawn]
    margin = LEFT if right else RIGHT
    bottom = height - BOTTOM
    stacked = any((one.config.custom.get("stacking") or {}).get("mode") == "normal" for one in left)
    scale = Scale(left, TOP, bottom, stacked)

    def x(ms: float) -> float:
        return LEFT + (ms - span.from_ms) / (span.to_ms - span.from_ms) * (width - LEFT - margin)

    parts = [_bands(scale, LEFT, width - margin)]
    for at, words in svg.time_steps(span.from_ms, span.to_ms, int(width / 90)):
        parts.append(svg.tag("line", x1=x(at), x2=x(at), y1=TOP, y2=bottom, stroke=svg.FAINT))
        parts.append(svg.words(x(at), height - 6, words, anchor="middle"))
    for value in scale.ticks():
        parts.append(
            svg.tag("line", x1=LEFT, x2=width - margin, y1=scale.y(value), y2=scale.y(value), stroke=svg.FAINT)
        )
        parts.append(svg.words(LEFT - 6, scale.y(value) + 4, scale.config.text(value), anchor="end"))
    base: dict[float, float] = {}
    lines = [_line(one, x, scale, base if stacked else None) for one in left]
    if right:
        its = Scale(right, TOP, bottom, False)
        parts += [svg.words(width - margin + 6, its.y(v) + 4, its.config.text(v)) for v in its.ticks()]
        lines += [_line(one, x, its, None) for one in right]
    # A window may begin before the range: what is outside the axes is cut off.
    inner = {"x": LEFT, "y": TOP, "width": width - LEFT - margin, "height": bottom - TOP}
    box = f"{LEFT} {TOP} {width - LEFT - margin:.1f} {bottom - TOP:.1f}"
    parts.append(svg.tag("svg", "".join(lines), viewBox=box, **inner))
    for at, words, colour in marks:
        if span.from_ms <= at <= span.to_ms:
            line = svg.tag("line", svg.hint(words), x1=x(at), x2=x(at), y1=TOP, y2=bottom, stroke=colour)
            parts.append(svg.tag("g", line, stroke_dasharray="3 3", opacity=0.8))
    return "".join(parts)


def _line(one: Series, x: Any, scale: Scale, base: dict[float, float] | None) -> str:  # noqa: ANN401 a function of the plot
    colour, custom = one.config.colour(None), one.config.custom
    style, points = custom.get("drawStyle", "line"), one.points
    if base is not None:
        points = [(t, None if v is None else v + base.get(t, 0.0)) for t, v in points]
        base.update({t: v for t, v in points if v is not None})
    about = svg.hint(one.config.title)
    if style == "bars":
        wide = _bar_width(points, x)
        zero = scale.y(max(scale.low, 0.0))
        bars = [
            svg.tag("rect", x=x(t) - wide / 2, width=wide, y=min(scale.y(v), zero), height=abs(zero - scale.y(v)) + 0.5)
            for t, v in points
            if v is not None
        ]
        return svg.tag("g", about + "".join(reversed(bars)), fill=colour, opacity=0.75)
    if style == "points":
        return svg.tag("g", about + "".join(_dot(x(t), scale.y(v)) for t, v in points if v is not None), fill=colour)
    stretches = _stretches(points, custom.get("insertNulls") or None)
    steps = custom.get("lineInterpolation") == "stepAfter"
    path = " ".join(_path([(x(t), scale.y(v)) for t, v in stretch], steps) for stretch in stretches if len(stretch) > 1)
    lone = "".join(_dot(x(s[0][0]), scale.y(s[0][1])) for s in stretches if len(s) == 1)
    dashed = {"stroke_dasharray": "8 6"} if (custom.get("lineStyle") or {}).get("fill") == "dash" else {}
    drawn = svg.tag("path", about, d=path, fill="none", stroke=colour, stroke_width=1.5, **dashed)
    area = ""
    if custom.get("fillOpacity"):
        ground = scale.y(max(scale.low, 0.0))
        closed = [
            f"{_path([(x(t), scale.y(v)) for t, v in s], steps)} L{x(s[-1][0]):.1f} {ground:.1f} L{x(s[0][0]):.1f} {ground:.1f} Z"
            for s in stretches
            if len(s) > 1
        ]
        area = svg.tag("path", d=" ".join(closed), fill=colour, opacity=float(custom["fillOpacity"]) / 100)
    return area + drawn + svg.tag("g", lone, fill=colour)


def _bands(scale: Scale, left: float, right: float) -> str:
    """Grades as areas or lines."""
    mode = (scale.config.custom.get("thresholdsStyle") or {}).get("mode", "off")
    if mode == "off":
        return ""
    parts, steps = [], scale.config.steps
    for n, (limit, colour) in enumerate(steps):
        low = scale.low if limit is None else max(limit, scale.low)
        above = steps[n + 1][0] if n + 1 < len(steps) else None
        high = scale.high if above is None else min(above, scale.high)
        if mode == "area" and high > low:
            y = scale.y(high)
            parts.append(
                svg.tag("rect", x=left, width=right - left, y=y, height=scale.y(low) - y, fill=colour, opacity=0.12)
            )
        elif mode == "dashed" and limit is not None and scale.low < limit < scale.high:
            y = scale.y(limit)
            parts.append(svg.tag("line", x1=left, x2=right, y1=y, y2=y, stroke=colour, stroke_dasharray="6 4"))
    return "".join(parts)


def _legend(panel: Mapping[str, Any], drawn: list[Series]) -> str:
    sums = panel["options"]["legend"].get("calcs") or []
    if not sums:
        return svg.legend([(one.config.colour(None), one.config.title) for one in drawn])
    from tandem_dashboards.preview.draw.figure import reduced

    head = "".join(svg.tag("th", escape(name)) for name in ("", *sums))
    rows = ""
    for one in drawn:
        name = svg.tag("i", "", style=f"background:{one.config.colour(None)}") + escape(one.config.title)
        cells = "".join(
            svg.tag("td", escape(one.config.text(reduced([v for _, v in one.points], how)))) for how in sums
        )
        rows += svg.tag("tr", svg.tag("td", name) + cells)
    return svg.tag("table", svg.tag("tr", head) + rows, class_="legend")


def _stretches(
    points: list[tuple[float, float | None]], gap_ms: float | None = None
) -> list[list[tuple[float, float]]]:
    """What is joined: a null ends it, and so do ``gap_ms`` without a point."""
    found: list[list[tuple[float, float]]] = [[]]
    for when, value in points:
        if gap_ms is not None and found[-1] and when - found[-1][-1][0] > gap_ms:
            found.append([])
        if value is None:
            found.append([])
        else:
            found[-1].append((when, value))
    return [stretch for stretch in found if stretch]


def _path(points: list[tuple[float, float]], steps: bool) -> str:
    parts = [f"M{points[0][0]:.1f} {points[0][1]:.1f}"]
    for x, y in points[1:]:
        parts.append(f"H{x:.1f} V{y:.1f}" if steps else f"L{x:.1f} {y:.1f}")
    return " ".join(parts)


def _bar_width(points: list[tuple[float, float | None]], x: Any) -> float:  # noqa: ANN401 a function of the plot
    apart = min((b[0] - a[0] for a, b in pairwise(points) if b[0] > a[0]), default=0.0)
    return max(1.0, (x(apart) - x(0.0)) * 0.8) if apart else 6.0


def _dot(x: float, y: float) -> str:
    return svg.tag("circle", cx=x, cy=y, r=3)


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _sums(series: Sequence[Series]) -> list[float]:
    total: dict[float, float] = {}
    for one in series:
        for when, value in one.points:
            if value is not None:
                total[when] = total.get(when, 0.0) + value
    return list(total.values())
