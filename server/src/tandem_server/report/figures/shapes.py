"""The marks as matplotlib draws them: one function each. Marks of another module register theirs with ``shape``."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.font_manager import FontProperties
from matplotlib.patches import PathPatch, Polygon
from matplotlib.path import Path
from matplotlib.textpath import text_to_path
from matplotlib.transforms import Affine2D

from tandem_server.analysis.estimates import Box, Estimate
from tandem_server.report.figures import marks
from tandem_server.report.figures.marks import Array, Mark
from tandem_server.report.figures.sheet import BAD, GREY, INK, PALE, PAPER, SOFT, Axis, Hues
from tandem_server.report.words import visible

SMALL = 7.5
"""Points of sample sizes and of words within a panel: the least."""
MOST_WIDE = 44.0
_UPRIGHT = 12
"""What an upright word takes, px."""
_BEHIND = {"boxstyle": "square,pad=0.1", "facecolor": PAPER, "edgecolor": "none", "alpha": 0.8}
"""Ground of words that may lie on a mark."""
STACKS = (84, 176)
"""px beside the bars of runs: their labels, and what is said behind them."""
_STEPS = 900
"""Columns of a picture that a reader can tell apart."""
Ends = tuple[float, float]


class At(NamedTuple):
    """A panel: ``width`` and ``height`` in px, the axes' ends, the series that stand beside each other, and all its marks."""

    ax: Axes
    hues: Hues
    x_axis: Axis
    y_axis: Axis
    x: Ends
    y: Ends
    width: float
    height: float
    beside: Sequence[str]
    marks: Sequence[Mark]

    def across(self, value: float) -> float:
        """px from the left; outside it is put to the edge."""
        part = _part(value, self.x, self.x_axis)
        return self.width * part

    def up(self, value: float) -> float:
        """px from the foot."""
        return self.height * _part(value, self.y, self.y_axis)

    def px(self, x: float, y: float) -> tuple[float, float]:
        """As ``ax.transAxes`` takes them."""
        return x / self.width, y / self.height

    def inside(self, points: Iterable[tuple[float, float]]) -> tuple[Array, Array]:
        """Those outside are put to the edge."""
        x, y = np.array(list(points), dtype=np.float64).reshape(-1, 2).T
        return np.clip(x, *self.x), np.clip(y, *self.y)


def _part(value: float, ends: Ends, axis: Axis) -> float:
    kept = min(max(value, ends[0]), ends[1])
    low, high, kept = (math.log10(v) for v in (*ends, kept)) if axis.log else (*ends, kept)
    part = (kept - low) / (high - low)
    return 1 - part if axis.flipped else part


@functools.cache
def wide(text: str, points: float = 9) -> float:
    """How long a text is, px."""
    found = text_to_path.get_text_width_height_descent(visible(text), FontProperties(size=points), ismath=False)
    return float(found[0]) * 96 / 72


@functools.singledispatch
def shape(mark: Mark, at: At) -> None:  # noqa: ARG001
    """Draw it into ``at.ax``."""
    raise TypeError(f"{type(mark).__name__} is no mark of a panel")


def _strokes(at: At, pieces: Iterable[Sequence[tuple[float, float]]], hue: str, width: float = 1, **how: Any) -> None:  # noqa: ANN401
    """One path of several strokes; ``px=True``: their points are px of the panel."""
    transform = at.ax.transAxes if how.pop("px", False) else at.ax.transData
    points, codes = [], []
    for piece in pieces:
        points += [at.px(*p) if transform is at.ax.transAxes else p for p in piece]
        codes += [Path.MOVETO] + [Path.LINETO] * (len(piece) - 1)
    if points:
        path = Path(np.array(points, dtype=np.float64), codes)
        path.should_simplify = False  # a dot is a stroke of no length
        at.ax.add_artist(PathPatch(path, fill=False, edgecolor=hue, linewidth=width, transform=transform, **how))


def _fill(at: At, x: Sequence[float] | Array, y: Sequence[float] | Array, **how: Any) -> None:  # noqa: ANN401
    """What lies within a polygon. Patches are added as artists: the axes have their ends already, nobody has to look for them."""
    at.ax.add_artist(Polygon(np.column_stack((x, y)), closed=True, **how))


def _box_px(at: At, left: float, foot: float, width: float, height: float, **how: Any) -> None:  # noqa: ANN401
    (x, y), (w, h) = at.px(left, foot), at.px(width, height)
    at.ax.add_artist(
        PathPatch(Path.unit_rectangle(), transform=Affine2D().scale(w, h).translate(x, y) + at.ax.transAxes, **how)
    )


def _say(at: At, text: str, x: float, y: float, hue: str = SOFT, size: float = SMALL, **how: Any) -> None:  # noqa: ANN401
    """A word at px of the panel."""
    at.ax.text(*at.px(x, y), text, transform=at.ax.transAxes, color=hue, size=size, **how)


@shape.register
def _(mark: marks.Line, at: At) -> None:
    if not mark.points:
        return
    x, y = at.inside(mark.points)
    if mark.step:  # from nothing up, at each value; then to the right edge
        x, y = np.concatenate((x[:1], x, at.x[1:])), np.concatenate((np.clip([0.0], *at.y), y, y[-1:]))
    dashed = mark.bound or mark.dashed
    at.ax.plot(
        x,
        y,
        color=at.hues.of(mark.series),
        linestyle="--" if dashed else "-",
        linewidth=1.1 if mark.bound else 1.4,
        drawstyle="steps-post" if mark.step else "default",
        marker="o" if mark.spots else "",
        markersize=3.5,
    )


@shape.register
def _(mark: marks.Curve, at: At) -> None:
    points = sorted(mark.points, key=lambda p: p[0])
    hue = at.hues.of(mark.series)
    x, y = at.inside((x, e.value) for x, e in points)
    at.ax.plot(x, y, at.hues.form(mark.series), color=hue, linestyle="--" if mark.dashed else "-", linewidth=1.2)
    for place, e in points:
        _interval(at.across(place), e, at, hue)


def _interval(x: float, e: Estimate | None, at: At, hue: str) -> None:
    if e is None or e.low is None or e.high is None:
        return
    low, high = at.up(e.low), at.up(e.high)
    pieces = [[(x, low), (x, high)], [(x - 3, low), (x + 3, low)], [(x - 3, high), (x + 3, high)]]
    _strokes(at, pieces, hue, px=True)


def places_beside(drawn: Iterable[Mark]) -> list[float]:
    """Where bars or boxes stand beside each other, in order."""
    return sorted({x for m in drawn if isinstance(m, marks.Bars | marks.Boxes) for x, _ in m.points})


def slot_of(places: Sequence[float], width: float, series: int) -> float:
    """px for each series at a place; ``places`` are px in order."""
    gap = min((b - a for a, b in pairwise(places)), default=width / 3)
    return min(gap * 0.84 / series, MOST_WIDE)


@shape.register(marks.Bars)
@shape.register(marks.Boxes)
def _(mark: marks.Bars | marks.Boxes, at: At) -> None:
    """Series side by side at each place."""
    nth, of = at.beside.index(mark.series), len(at.beside)
    slot = slot_of([at.across(x) for x in places_beside(at.marks)], at.width, of)
    half, hue = max(1.5, slot * 0.42), at.hues.of(mark.series)
    points: Sequence[tuple[float, Estimate | Box]] = mark.points
    for n, (x, found) in enumerate(points):
        middle = at.across(x) + (nth - (of - 1) / 2) * slot
        if isinstance(found, Estimate):
            zero, top = at.up(0.0), at.up(found.value)
            _box_px(at, middle - half, min(zero, top), 2 * half, abs(zero - top), facecolor=hue, alpha=0.72)
            e: Estimate | None = found
            upper = max(zero, top)
        else:
            e = mark.estimates[n] if isinstance(mark, marks.Boxes) and n < len(mark.estimates) else None
            _box(middle, half, found, at, hue)
            upper = at.up(found.p90)
        _interval(middle, e, at, INK)
        if e is not None and e.high is not None:
            upper = max(upper, at.up(e.high))
        _count(middle, upper, found.n, slot, nth, at)


def _box(x: float, half: float, box: Box, at: At, hue: str) -> None:
    p10, p25, p50, p75, p90 = (at.up(v) for v in box[:5])
    whiskers = [[(x, p10), (x, p25)], [(x, p75), (x, p90)]]
    whiskers += [[(x - half / 2, end), (x + half / 2, end)] for end in (p10, p90)]
    _strokes(at, whiskers, hue, px=True)
    _box_px(at, x - half, p25, 2 * half, max(0.5, p75 - p25), facecolor=hue, alpha=0.25)
    edge = [(x - half, p25), (x + half, p25), (x + half, p75), (x - half, p75), (x - half, p25)]
    _strokes(at, [edge], hue, 0.75, px=True)
    _strokes(at, [[(x - half, p50), (x + half, p50)]], hue, 2, px=True)


def _count(x: float, y: float, n: int, slot: float, nth: int, at: At) -> None:
    """The sample size over its mark, upright where it would touch its neighbour, and each series' higher where that would still do."""
    word = f"n={n}"
    long = wide(word, SMALL)
    if long <= slot + 1:
        _say(at, word, x, min(y + 4, at.height - 10), ha="center", va="bottom")
        return
    rise = nth * (long + 3) if slot < _UPRIGHT else 0
    _say(at, word, x, min(y + 4 + rise, at.height - long), ha="center", va="bottom", rotation=90)


@shape.register
def _(mark: marks.Dots, at: At) -> None:
    points = zip(*at.inside(mark.points), strict=True)
    how = {"capstyle": "round", "alpha": 0.35 if mark.faint else 0.8}
    _strokes(at, ([p, p] for p in points), at.hues.of(mark.series), 2.7 if mark.faint else 4.2, **how)


@shape.register
def _(mark: marks.Forest, at: At) -> None:
    """An interval that does not hold the value of no effect is drawn in full ink."""
    none = at.across(mark.none)
    _strokes(at, [[(none, 0), (none, at.height)]], SOFT, 0.75, px=True, linestyle=(0, (1.5, 2.25)))
    for n, (name, e) in enumerate(mark.points):
        x, y, hue = at.across(e.value), at.height * (1 - (n + 0.6) / len(mark.points)), SOFT
        if e.low is not None and e.high is not None:
            hue = SOFT if e.low <= mark.none <= e.high else INK
            low, high = at.across(e.low), at.across(e.high)
            ends = [[(end, y - 4), (end, y + 4)] for end in (low, high)]
            _strokes(at, [[(low, y), (high, y)], *ends], hue, 1.2, px=True)
        _box_px(at, x - 3, y - 3, 6, 6, facecolor=hue)
        _say(at, f"{name}, n={e.n}", 6, y + 8, INK, 8.25, va="bottom", bbox=_BEHIND)


@shape.register
def _(mark: marks.Heat, at: At) -> None:
    """Lightness falls evenly, so it can be read without colours too."""
    most, hot = max(mark.shares.values(), default=1.0), colormaps["magma_r"]
    for (column, row), share in sorted(mark.shares.items()):
        a, b = (at.across(n / mark.side) for n in (column, column + 1))
        low, high = (at.up(n / mark.side) for n in (row, row + 1))
        hue = to_hex(hot(0.04 + 0.86 * (share / most) ** 0.5))
        _box_px(at, a, low, b - a, high - low, facecolor=hue)
    told = f"darkest cell: {most * 100:.0f} %"
    _say(at, told, at.width - 4, at.height - 4, INK, 8.25, ha="right", va="top", bbox=_BEHIND)


@shape.register
def _(mark: marks.Oval, at: At) -> None:
    hue = at.hues.of(mark.series)
    x, y = at.inside(mark.of.outline())
    _fill(at, x, y, facecolor=hue, alpha=0.12)
    at.ax.plot(x, y, color=hue, linewidth=1.2)
    at.ax.plot(*at.inside([mark.middle]), marker=(6, 2), color=hue, markersize=8, markeredgewidth=1.3)


@shape.register
def _(mark: marks.Shade, at: At) -> None:
    a, b = sorted((at.across(mark.low), at.across(mark.high)))
    _box_px(at, a, 0, max(1.0, b - a), at.height, facecolor=SOFT, alpha=0.16)
    half = wide(mark.name, 8.25) / 2
    _say(at, mark.name, min(max((a + b) / 2, half), at.width - half), at.height - 3, SOFT, 8.25, ha="center", va="top")


@shape.register
def _(mark: marks.Level, at: At) -> None:
    y = at.up(mark.y)
    _strokes(at, [[(0, y), (at.width, y)]], SOFT, 0.75, px=True, linestyle=(0, (1.5, 2.25)))
    if mark.name:
        _say(at, mark.name, at.width - 2, y + 3, INK, 8.25, ha="right", va="bottom", bbox=_BEHIND)


# --- a table


def table_widths(mark: marks.Cells) -> list[float]:
    """Of its columns, px."""
    rows = [mark.heads, *mark.texts]
    return [max(wide(row[n]) for row in rows) + 20 for n in range(len(mark.heads))]


@shape.register
def _(mark: marks.Cells, at: At) -> None:
    """Heads, a rule, rows; the first column to the left, the others to the right."""
    high, margin = at.height / (len(mark.texts) + 1), 8.0
    ends = np.cumsum(table_widths(mark)) + margin
    for n, row in enumerate([mark.heads, *mark.texts]):
        foot = at.height - (n + 1) * high
        if n and n % 2 == 0:
            _box_px(at, 4, foot, ends[-1], high, facecolor=PALE)
        for k, text in enumerate(row):
            x, ha = (margin, "left") if k == 0 else (ends[k] - margin, "right")
            _say(at, text, x, foot + high / 2, INK if n else SOFT, 9, ha=ha, va="center_baseline")
    _strokes(at, [[(4, at.height - high), (ends[-1] + 4, at.height - high)]], SOFT, 0.75, px=True)


# --- of the page's own pictures


@shape.register
def _(mark: marks.Trace, at: At) -> None:
    """matplotlib leaves out points that nobody could tell from the line between their neighbours."""
    apart = np.flatnonzero(np.diff(mark.t) > mark.gap_s) + 1
    t, v = np.insert(mark.t, apart, np.nan), np.insert(np.clip(mark.v, *at.y), apart, np.nan)
    width, alpha = (0.85, 0.55) if mark.faint else (1.2, 1.0)
    at.ax.plot(t, v, color=at.hues.of(mark.series), linewidth=width, alpha=alpha)


@shape.register
def _(mark: marks.Area, at: At) -> None:
    t, (low, high) = means(mark.t, [mark.low, mark.high])
    x, y = np.concatenate((t, t[::-1])), np.concatenate((high, low[::-1]))
    if len(t) > 1:
        _fill(at, x, np.clip(y, *at.y), facecolor=at.hues.of(mark.series), alpha=0.4 if mark.faint else 1.0)


def means(t: Array, columns: Sequence[Array], buckets: int = _STEPS) -> tuple[Array, list[Array]]:
    """Each bucket's mean time and mean of every column; short series come back as they are. ``t`` ascending, no NaN."""
    if len(t) <= 2 * buckets:
        return t, list(columns)
    place = np.minimum(((t - t[0]) / ((t[-1] - t[0]) / buckets or 1.0)).astype(np.int64), buckets - 1)
    count = np.bincount(place, minlength=buckets)
    used = count > 0
    averaged = [np.bincount(place, weights=c, minlength=buckets)[used] / count[used] for c in (t, *columns)]
    return averaged[0], averaged[1:]


@shape.register
def _(mark: marks.Moments, at: At) -> None:
    hue = at.hues.of(mark.series)
    how: dict[str, Any] = {} if hue == BAD else {"linestyle": (0, (2.25, 2.25)), "alpha": 0.75}
    _strokes(at, ([(t, at.y[0]), (t, at.y[1])] for t in mark.times), hue, 0.75, **how)


@shape.register
def _(mark: marks.Bands, at: At) -> None:
    for span in mark.spans:
        start, end = (float(np.clip(v, *at.x)) for v in (span.start, span.end))
        x, y = [start, end, end, start], [mark.row - 0.42] * 2 + [mark.row + 0.42] * 2
        how: dict[str, Any] = {"facecolor": span.hue, "alpha": span.part, "edgecolor": PAPER, "linewidth": 0.75}
        _fill(at, x, y, url=f"title:{visible(span.title)}", **how)
        if span.text:
            room = at.across(end) - at.across(start)
            shown = span.text if wide(span.text, SMALL) < room - 4 else ""
            hue = PAPER if span.hue == INK and span.part == 1.0 else INK
            middle, row = (start + end) / 2, mark.row
            at.ax.text(middle, row, shown, size=SMALL, color=hue, ha="center", va="center_baseline", clip_on=True)


@shape.register
def _(mark: marks.Stacks, at: At) -> None:
    high = at.height / max(1, len(mark.bars))
    for n, bar in enumerate(mark.bars):
        middle = at.height - (n + 0.5) * high
        if bar.head:
            hue, size, rise = (SOFT, 8.25, 3) if bar.soft else (INK, 9, -3)
            _say(at, bar.head, 4 - STACKS[0], middle + rise, hue, size, va="center_baseline")
            continue
        _say(at, bar.label, -6, middle, INK, 8.25, ha="right", va="center_baseline")
        if bar.offered is not None:
            _box_px(at, 0, middle - high * 0.38, at.across(bar.offered), high * 0.76, facecolor=GREY, alpha=0.55)
        left = 0.0  # of the next part
        for hue, part, length in bar.parts:
            a, b = at.across(left), at.across(left + length)
            _box_px(at, a, middle - high * 0.24, b - a, high * 0.48, facecolor=hue, alpha=part)
            left += length
        _say(at, bar.text, at.width + 6, middle, SOFT, va="center", linespacing=1.1)
