"""Charts, drawn by matplotlib as SVG that stands in the page: lines, bars and points over time; states over time; bars; maps without a
base map. Sizes are pixels; a chart without anything to draw is an empty text."""

from __future__ import annotations

import io
import math
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from matplotlib import dates, style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from tandem_dashboards.grafana.frames import TIME, Frame, Value
from tandem_dashboards.grafana.macros import Range
from tandem_dashboards.preview.fields import PALETTE, Config, config, sort_of

GREY, FAINT, TEXT = "#8e8e96", "#2c3037", "#d0d0d6"
LEFT, RIGHT, TOP, BOTTOM = 66, 12, 8, 24
Size = tuple[float, float]
Mark = tuple[int, str, str]
"""An annotation: when, its words, its colour."""
_DAY_MS = 86_400_000
_STYLE = {
    "font.family": "DejaVu Sans", "font.size": 8.25, "text.parse_math": False, "text.color": GREY, "svg.fonttype": "none",
    "svg.hashsalt": "tandem", "axes.facecolor": "none", "axes.edgecolor": FAINT, "axes.axisbelow": True, "grid.color": FAINT,
    "axes.spines.top": False, "axes.spines.right": False, "xtick.color": FAINT, "ytick.color": FAINT, "xtick.labelcolor": GREY,
    "ytick.labelcolor": GREY, "ytick.major.size": 0, "xtick.minor.size": 0, "patch.linewidth": 0,
}  # fmt: skip


def _picture(size: Size, draw: Callable[[Figure], None]) -> str:
    """What ``draw`` puts into a figure of this size."""
    with warnings.catch_warnings(), style.context(["default", _STYLE]):
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # a name in letters that DejaVu has not
        figure = Figure(figsize=(size[0] / 96, size[1] / 96))
        draw(figure)
        drawn = io.StringIO()
        figure.savefig(drawn, format="svg", transparent=True, metadata={"Date": None})
    svg = drawn.getvalue()
    svg = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    svg = re.sub(r'<g id="[^"]*"', "<g", svg)  # alike in every picture of the page
    # A link is how matplotlib carries what is shown when the pointer rests.
    return re.sub(r'<a xlink:href="title:([^"]*)"[^>]*>', r"<g><title>\1</title>", svg).replace("</a>", "</g>")


def _visible(text: str) -> str:
    """A text from outside without control characters, which XML has not."""
    return "".join(c if c.isprintable() else "\ufffd" for c in text)


def _hint(text: str) -> str:
    return f"title:{_visible(text)}"


def _axes(figure: Figure, size: Size, left: float = LEFT, right: float = RIGHT, bottom: float = BOTTOM) -> Axes:
    width, height = size
    place = (left / width, bottom / height, (width - left - right) / width, (height - bottom - TOP) / height)
    return figure.add_axes(place)


def _over_time(ax: Axes, span: Range, width: float) -> None:
    locator = dates.AutoDateLocator(minticks=2, maxticks=max(5, int(width / 90)))  # type: ignore[no-untyped-call]  # it has none
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator, show_offset=False))  # type: ignore[no-untyped-call]  # as above
    ax.set_xlim(span.from_ms / _DAY_MS, span.to_ms / _DAY_MS)  # which ends autoscaling: what is outside is cut off


# --- lines, bars and points over time


@dataclass(frozen=True)
class _Series:
    """``at``: days since 1970, as matplotlib has times. ``values``: nan is a gap."""

    config: Config
    at: list[float]
    values: list[float]

    @property
    def right(self) -> bool:
        return self.config.custom.get("axisPlacement") == "right"


def _series(of: Config, frame: Frame) -> _Series:
    """With a gap where points are farther apart than the panel says."""
    gap_ms = of.custom.get("insertNulls")
    at: list[float] = []
    values: list[float] = []
    for when, value in zip(frame.columns[TIME], frame.figures, strict=True):
        ms = float(when or 0)
        if gap_ms and at and ms - at[-1] * _DAY_MS > gap_ms + 0.5:  # a day in a float is exact to a hundredth of a ms
            at.append(at[-1])
            values.append(math.nan)
        at.append(ms / _DAY_MS)
        values.append(float(value) if isinstance(value, int | float) else math.nan)
    return _Series(of, at, values)


def time_series(of: Sequence[tuple[Config, Frame]], span: Range, size: Size, marks: Sequence[Mark]) -> str:
    """Without its legend. ``of``: see ``configured``."""
    drawn = [_series(its, frame) for its, frame in of]
    left = [one for one in drawn if not one.right] or drawn
    right = [one for one in drawn if one.right and left is not drawn]

    def draw(figure: Figure) -> None:
        ax = _axes(figure, size, right=LEFT if right else RIGHT)
        ax.grid(visible=True)
        _over_time(ax, span, size[0])
        _draw_series(ax, left, span, size)
        _grades(ax, left[0].config)
        if right:
            other = ax.twinx()
            _draw_series(other, right, span, size)
        for at, words, colour in marks:
            if span.from_ms <= at <= span.to_ms:
                ax.axvline(at / _DAY_MS, color=colour, linestyle="--", linewidth=0.75, url=_hint(words))

    return _picture(size, draw) if drawn else ""


def configured(panel: Mapping[str, Any], frames: Sequence[Frame]) -> list[tuple[Config, Frame]]:
    """The frames over time, each with its config."""
    return [(config(panel, frame.name, frame.ref, n), frame) for n, frame in enumerate(frames) if TIME in frame.columns]


def _draw_series(ax: Axes, series: Sequence[_Series], span: Range, size: Size) -> None:
    mode = (series[0].config.custom.get("stacking") or {}).get("mode")
    series = _shares(series) if mode == "percent" else series
    base: dict[float, float] | None = {} if mode in ("normal", "percent") else None
    shapes = []
    for one in series:
        low = [0.0 if base is None else base.get(t, 0.0) for t in one.at]
        high = [v + b for v, b in zip(one.values, low, strict=True)]
        if base is not None:
            base.update({t: v for t, v in zip(one.at, high, strict=True) if not math.isnan(v)})
        shapes.append((one, high, low))
    reach = [v for _, high, _ in shapes for v in high if not math.isnan(v)]
    _limits(ax, series, reach + ([0.0] if base is not None else []))
    for one, high, low in shapes:
        _draw_one(ax, one, high, low, span, size)


def _shares(series: Sequence[_Series]) -> list[_Series]:
    """Each as its part of all at that instant."""
    total: dict[float, float] = {}
    for one in series:
        for t, v in zip(one.at, one.values, strict=True):
            total[t] = total.get(t, 0.0) + (0.0 if math.isnan(v) else v)
    return [
        _Series(one.config, one.at, [v / total[t] if total[t] else math.nan for t, v in zip(one.at, one.values, strict=True)])
        for one in series
    ]  # fmt: skip


def _draw_one(ax: Axes, one: _Series, high: list[float], low: list[float], span: Range, size: Size) -> None:
    custom, colour, url = one.config.custom, one.config.colour(None), _hint(one.config.title)
    kind = custom.get("drawStyle", "line")
    if kind == "bars":
        apart = min((b - a for a, b in pairwise(one.at) if b > a), default=0.0) * _DAY_MS
        wide = max(1.0, apart / (span.to_ms - span.from_ms) * size[0] * 0.8) if apart else 6.0
        bars = [n for n, value in enumerate(high) if not math.isnan(value)]
        at, below, above = ([of[n] for n in bars] for of in (one.at, low, high))
        if bars:
            ax.vlines(at, below, above, colors=colour, linewidth=wide * 0.75, alpha=0.75)
        return
    if kind == "points":
        ax.plot(one.at, high, color=colour, linestyle="", marker="o", markersize=4.5, url=url)
        return
    steps = custom.get("lineInterpolation") == "stepAfter"
    dashed = (custom.get("lineStyle") or {}).get("fill") == "dash"
    (line,) = ax.plot(one.at, high, color=colour, linewidth=1.1, linestyle="--" if dashed else "-", url=url)
    line.set_drawstyle("steps-post" if steps else "default")
    beside = [math.nan, *high, math.nan]
    alone = [n for n, v in enumerate(high) if not math.isnan(v) and math.isnan(beside[n]) and math.isnan(beside[n + 2])]
    ax.plot([one.at[n] for n in alone], [high[n] for n in alone], color=colour, linestyle="", marker="o", markersize=3)
    if custom.get("fillOpacity"):
        fill = float(custom["fillOpacity"]) / 100
        ax.fill_between(one.at, high, low, step="post" if steps else None, color=colour, alpha=fill, linewidth=0)


def _limits(ax: Axes, series: Sequence[_Series], reach: list[float]) -> None:
    """Soft or hard limits, and words at the axis, of the first series."""
    raw, custom = series[0].config.raw, series[0].config.custom
    log = (custom.get("scaleDistribution") or {}).get("type") == "log"
    reach = reach + [float(v) for v in (custom.get("axisSoftMin"), custom.get("axisSoftMax")) if v is not None]
    if any(one.config.custom.get("drawStyle") == "bars" for one in series):
        reach.append(0.0)
    if log:
        reach = [value for value in reach if value > 0]
    low, high = (min(reach), max(reach)) if reach else (0.0, 1.0)
    low = float(raw["min"]) if raw.get("min") is not None else low
    high = float(raw["max"]) if raw.get("max") is not None else high
    if log:
        low, high = (low, high) if 0 < low < high else (max(high, 1.0) / 10, max(high, 1.0))
        ax.set_yscale("log")
    elif not low < high:
        low, high = (low - abs(low) * 0.1, low + abs(low) * 0.1) if low else (0.0, 1.0)
    elif raw.get("max") is None:
        high += (high - low) * 0.05  # so that the highest point is not on the edge
    ax.set_ylim(low, high)
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=6) if log else MaxNLocator(5))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: series[0].config.text(round(value, 12))))


def _grades(ax: Axes, of: Config) -> None:
    """As areas or lines."""
    mode = (of.custom.get("thresholdsStyle") or {}).get("mode", "off")
    bottom, top = ax.get_ylim()
    for n, (limit, colour) in enumerate(of.steps):
        low = bottom if limit is None else max(limit, bottom)
        above = of.steps[n + 1][0] if n + 1 < len(of.steps) else None
        high = top if above is None else min(above, top)
        if mode == "area" and high > low:
            ax.axhspan(low, high, facecolor=colour, alpha=0.12)
        elif mode == "dashed" and limit is not None and bottom < limit < top:
            ax.axhline(limit, color=colour, linestyle="--", linewidth=0.75)


# --- states over time


def state_timeline(panel: Mapping[str, Any], frames: Sequence[Frame], span: Range, size: Size) -> str:
    """A lane for each series."""
    lanes = configured(panel, frames)
    left = min(240, 16 + 7 * max((len(its.title) for its, _ in lanes), default=0))
    written = panel["options"].get("showValue") != "never"

    def draw(figure: Figure) -> None:
        ax = _axes(figure, size, left=left)
        colours: dict[str, str] = {}
        for n, (its, frame) in enumerate(lanes):
            states = _states(frame, span.to_ms)
            places = [(begin / _DAY_MS, (end - begin) / _DAY_MS) for begin, end, _ in states]
            shades = [_state_colour(its, value, colours) for _, _, value in states]
            hints = [_hint(its.text(value)) for _, _, value in states]
            if states:
                ax.broken_barh(places, (n + 0.05, 0.9), facecolors=shades, alpha=0.85, urls=hints)
            for begin, end, value in states:
                at, until, text = max(begin, span.from_ms), min(end, span.to_ms), its.text(value)
                pixels = (until - at) / (span.to_ms - span.from_ms) * (size[0] - left - RIGHT)
                if written and pixels > 7 * len(text) + 6:
                    place = (at / _DAY_MS, n + 0.5)
                    ax.annotate(_visible(text), place, (4, 0), textcoords="offset points", va="center", color="#111")
        ax.set_yticks([n + 0.5 for n in range(len(lanes))], [_visible(its.title) for its, _ in lanes], color=TEXT)
        ax.set_ylim(len(lanes), 0)
        ax.spines[:].set_visible(False)
        _over_time(ax, span, size[0])

    return _picture(size, draw) if lanes else ""


def _states(frame: Frame, end_ms: int) -> list[tuple[float, float, Value]]:
    """Each state from its first point until the next point that says otherwise; a null ends it."""
    points = [(float(t or 0), v) for t, v in zip(frame.columns[TIME], frame.figures, strict=True)]
    found: list[tuple[float, float, Value]] = []
    for n, (when, value) in enumerate(points):
        until = points[n + 1][0] if n + 1 < len(points) else float(end_ms)
        if value is None:
            continue
        if found and found[-1][2] == value and found[-1][1] == when:
            found[-1] = (found[-1][0], until, value)
        else:
            found.append((when, until, value))
    return found


def _state_colour(its: Config, value: Value, seen: dict[str, str]) -> str:
    """The state's own; for a text without one (a cell), one each."""
    if its.mapped(value) or not isinstance(value, str):
        return its.colour(value)
    return seen.setdefault(value, PALETTE[len(seen) % len(PALETTE)])


# --- bars

Bars = tuple[list[str], list[tuple[Config, list[float]]]]
"""A label for each row; a bar for each row and config."""


def bars_of(panel: Mapping[str, Any], frames: Sequence[Frame]) -> Bars:
    """Of a bar chart: each row of the first frame."""
    if not frames:
        return [], []
    frame, options = frames[0], panel["options"]
    across = options.get("xField") or next(iter(frame.columns))
    drawn = [
        (config(panel, name, frame.ref, n), [float(v) if isinstance(v, int | float) else 0.0 for v in values])
        for n, (name, values) in enumerate(frame.columns.items())
        if name not in (across, TIME) and sort_of(values, name) == "number"
    ]
    names = config(panel, across, frame.ref, 0)
    return [names.text(label) for label in frame.columns.get(across, [])], drawn


def counts_of(panel: Mapping[str, Any], frames: Sequence[Frame]) -> Bars:
    """Of a histogram: how often figures fall into each of thirty buckets."""
    drawn = [
        (config(panel, frame.name, frame.ref, n), [float(v) for v in frame.figures if isinstance(v, int | float)])
        for n, frame in enumerate(frames)
    ]
    figures = [value for _, values in drawn for value in values]
    if not figures:
        return [], []
    low = min(figures)
    width = (max(figures) - low) / 30 or 1.0
    labels = [drawn[0][0].text(low + n * width) for n in range(int((max(figures) - low) / width) + 1)]
    counted = []
    for its, values in drawn:
        counts = [0.0] * len(labels)
        for value in values:
            counts[int((value - low) / width)] += 1
        counted.append((Config({**its.raw, "unit": "none"}, its.name, its.place), counts))
    return labels, counted


def bar_chart(panel: Mapping[str, Any], bars: Bars, size: Size) -> str:
    """A group of bars for each label, or one on which they are stacked to 100 %. Without its legend."""
    (labels, drawn), options = bars, panel["options"]
    stacked, lying = options.get("stacking") == "percent", options.get("orientation") == "horizontal"
    left = min(200, 16 + 7 * max((len(label) for label in labels), default=0)) if lying else LEFT

    def draw(figure: Figure) -> None:
        ax = _axes(figure, size, left=left)
        ax.grid(visible=not lying, axis="y")
        sums = [sum(values[n] for _, values in drawn) or 1.0 for n in range(len(labels))]
        ground, each = [0.0] * len(labels), 0.8 if stacked else 0.8 / len(drawn)
        for k, (its, values) in enumerate(drawn):
            long = [value / total for value, total in zip(values, sums, strict=True)] if stacked else values
            at = [n + (0 if stacked else (k + 0.5) * each - 0.4) for n in range(len(labels))]
            made = ax.barh(at, long, each, left=ground) if lying else ax.bar(at, long, each, bottom=ground)
            for patch, label, value in zip(made, labels, long, strict=True):
                patch.set(color=its.colour(None), url=_hint(f"{label}, {its.title}: {_figure(its, value, stacked)}"))
            ground = [a + b for a, b in zip(ground, long, strict=True)] if stacked else ground
        along, across = (ax.xaxis, ax.yaxis) if lying else (ax.yaxis, ax.xaxis)
        along.set_major_locator(MaxNLocator(5))
        along.set_major_formatter(FuncFormatter(lambda value, _: _figure(drawn[0][0], round(value, 12), stacked)))
        room = max(1, int(7 * max(map(len, labels)) / max((size[0] - LEFT) / len(labels), 1)) + 1)
        across.set_ticks(
            range(len(labels)), [_visible(t) if lying or n % room == 0 else "" for n, t in enumerate(labels)]
        )
        if lying:
            ax.invert_yaxis()

    return _picture(size, draw) if labels and drawn else ""


def _figure(its: Config, value: float, share: bool) -> str:
    return f"{value:.0%}" if share else its.text(value)


# --- maps

_LETTERS = "0123456789bcdefghjkmnpqrstuvwxyz"
_DEGREE_M = 111_320.0


def middle_of(geohash: str) -> tuple[float, float] | None:
    """Latitude and longitude of an area's middle; None for what is no geohash."""
    latitude, longitude, even = [-90.0, 90.0], [-180.0, 180.0], True
    for letter in geohash:
        if letter not in _LETTERS:
            return None
        for bit in (16, 8, 4, 2, 1):
            pair = longitude if even else latitude
            pair[0 if _LETTERS.index(letter) & bit else 1] = sum(pair) / 2
            even = not even
    return (sum(latitude) / 2, sum(longitude) / 2) if geohash else None


def world(panel: Mapping[str, Any], frames: Sequence[Frame], size: Size) -> str:
    """Every layer's places on a plain ground, true to scale."""
    layers = [(layer, _places(layer, frames)) for layer in panel["options"].get("layers", [])]
    known = [place for _, (places, _) in layers for place in places.values()]
    if not known:
        return ""
    (south, north), (west, east) = ((min(of), max(of)) for of in zip(*known, strict=True))
    narrow = max(0.01, math.cos(math.radians(south / 2 + north / 2)))
    width, height = size[0] - 2 * RIGHT, size[1] - TOP - BOTTOM
    degree = 0.85 * min(width / max((east - west) * narrow, 1e-4), height / max(north - south, 1e-4))

    def draw(figure: Figure) -> None:
        ax = _axes(figure, size, left=RIGHT)
        for layer, (places, frame) in layers:
            if frame:
                _layer(ax, panel, layer, places, frame)
        x, y, wide, tall = west / 2 + east / 2, south / 2 + north / 2, width / degree / narrow, height / degree
        ax.set(xlim=(x - wide / 2, x + wide / 2), ylim=(y - tall / 2, y + tall / 2), xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
        metres = 10.0 ** math.floor(math.log10(wide * narrow * _DEGREE_M / 3))
        bar = metres / _DEGREE_M / narrow / wide
        ax.plot([0.01, 0.01 + bar], [0.02, 0.02], color=GREY, linewidth=3, transform=ax.transAxes)
        ax.text(0.01, 0.05, f"{metres / 1000:g} km" if metres >= 1000 else f"{metres:g} m", transform=ax.transAxes)

    return _picture(size, draw)


def _layer(
    ax: Axes, panel: Mapping[str, Any], layer: Mapping[str, Any], places: dict[int, tuple[float, float]], frame: Frame
) -> None:
    style_of = (layer.get("config") or {}).get("style") or {}
    field, text = (str((style_of.get(of) or {}).get("field")) for of in ("color", "text"))
    its = config(panel, field, frame.ref, 0) if field in frame.columns else None
    plain = (style_of.get("color") or {}).get("fixed", "#5794F2")
    colours = [its.colour(frame.columns[field][row]) if its else plain for row in places]
    hints = [", ".join(f"{name}: {column[row]}" for name, column in frame.columns.items()) for row in places]
    area = (float((style_of.get("size") or {}).get("fixed", 5)) * 1.5) ** 2
    latitudes, longitudes = zip(*places.values(), strict=True)
    ax.scatter(longitudes, latitudes, s=area, c=colours, alpha=0.8, linewidths=0, urls=[_hint(hint) for hint in hints])
    for row, (latitude, longitude) in places.items():
        if text in frame.columns:
            name = str(frame.columns[text][row])
            ax.annotate(
                _visible(name), (longitude, latitude), (0, 8), textcoords="offset points", ha="center", color=TEXT
            )


def _places(layer: Mapping[str, Any], frames: Sequence[Frame]) -> tuple[dict[int, tuple[float, float]], Frame | None]:
    """The place of each row that has one, and the frame that they are from: the first that has any."""
    for frame in frames:
        found = {
            row: place for row in range(frame.length) if (place := _place(layer.get("location") or {}, frame, row))
        }
        if found:
            return found, frame
    return {}, None


def _place(location: Mapping[str, Any], frame: Frame, row: int) -> tuple[float, float] | None:
    if location.get("mode") == "geohash":
        value = frame.columns.get(location["geohash"], [None] * frame.length)[row]
        return middle_of(value) if isinstance(value, str) else None
    both = [frame.columns.get(location.get(name, ""), [None] * frame.length)[row] for name in ("latitude", "longitude")]
    latitude, longitude = both
    if isinstance(latitude, int | float) and isinstance(longitude, int | float):
        return (float(latitude), float(longitude)) if abs(latitude) <= 90 and abs(longitude) <= 180 else None
    return None
