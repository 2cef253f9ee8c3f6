"""The marks as pieces of SVG."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from tandem_server.analysis.estimates import Box, Estimate
from tandem_server.report.figures.elements import element, path, rect, to, words
from tandem_server.report.figures.hues import INK, SOFT, Hues
from tandem_server.report.figures.layout import Entry, wide
from tandem_server.report.figures.marks import Bars, Boxes, Curve, Dots, Forest, Heat, Level, Line, Mark, Oval, Shade
from tandem_server.report.figures.scale import Scale

_UPRIGHT = 12
"""What an upright word takes."""
_HALO: dict[str, str | float | None] = {"stroke": "#fff", "stroke_width": "3", "paint_order": "stroke"}
"""Of words that may lie on a mark."""
_COLD, _HOT = (253, 231, 160), (90, 12, 40)
"""Of the heat map: lightness falls evenly from pale yellow to dark, so it can be read without colours too."""


class Places(NamedTuple):
    """Both scales, and the panel's upper and lower edge."""

    x: Scale
    y: Scale
    top: float
    floor: float


def nearest(x: Scale, marks: Sequence[Mark]) -> float:
    """The least distance between two places of bars or boxes."""
    places = sorted({x.at(at) for m in marks if isinstance(m, Bars | Boxes) for at, _ in m.points})
    return min((b - a for a, b in pairwise(places)), default=abs(x.end - x.begin) / 3)


def shape(mark: Mark, at: Places, hues: Hues, nth: int, of: int, gap: float) -> str:
    """``nth`` of ``of`` series that stand beside each other, ``gap`` px from place to place."""
    hue = hues.of(mark.series)
    match mark:
        case Line():
            return _line(mark, at, hue)
        case Curve():
            return _curve(mark, at, hue, hues.form(mark.series))
        case Bars() | Boxes():
            return "".join(_beside(mark, at, hue, nth, of, gap))
        case Dots():
            size, opacity = (1.8, 0.35) if mark.faint else (2.6, 0.8)
            dots = (element("circle", cx=at.x.at(x), cy=at.y.at(y), r=size) for x, y in mark.points)
            return element("g", "".join(dots), fill=hue, fill_opacity=opacity)
        case Forest():
            return _forest(mark, at)
        case Heat():
            return "".join(_heat(mark, at))
        case Oval():
            return _oval(mark, at, hue)
        case Shade():
            a, b = sorted((at.x.at(mark.low), at.x.at(mark.high)))
            name = words(mark.name, (a + b) / 2, at.top + 12, 11, text_anchor="middle", fill=SOFT)
            return rect(a, at.top, max(1.0, b - a), at.floor - at.top, SOFT, fill_opacity=0.16) + name
        case Level():
            y, ends = at.y.at(mark.y), sorted((at.x.begin, at.x.end))
            name = words(mark.name, ends[1] - 2, y - 4, 11, text_anchor="end", fill=INK, **_HALO)
            return path(f"M{to(ends[0], y)}H{to(ends[1])}", SOFT, dashes="2 3") + name
        case _:
            raise TypeError(f"{type(mark).__name__} is no mark of a panel")


def key(word: Entry, hues: Hues) -> str:
    """A word of the legend with its sign."""
    hue = hues.of(word.series)
    sign = path(f"M{to(word.x, word.y - 4)}h22", hue, 3, dashes="5 3" if word.dashed else None)
    form = "" if word.dashed else _form(word.x + 11, word.y - 4, hue, hues.form(word.series))
    return sign + form + words(word.text, word.x + 28, word.y)


def _form(x: float, y: float, hue: str, form: int) -> str:
    if form == 0:
        return element("circle", cx=x, cy=y, r=3.2, fill=hue)
    if form == 1:
        return rect(x - 3, y - 3, 6, 6, hue)
    return element("path", d=f"M{to(x, y - 4.2)}" + ("l4 7h-8z" if form == 2 else "l4 4.2l-4 4.2l-4 -4.2z"), fill=hue)


def _line(mark: Line, at: Places, hue: str) -> str:
    places = [(at.x.at(x), at.y.at(y)) for x, y in mark.points]
    if not places:
        return ""
    if mark.step:  # from nothing up, at each value; then to the right edge
        d = f"M{to(places[0][0], at.y.at(0.0))}V{to(places[0][1])}"
        d += "".join(f"H{to(x)}V{to(y)}" for x, y in places[1:]) + f"H{to(max(at.x.begin, at.x.end))}"
    else:
        d = "M" + "L".join(to(*place) for place in places)
    dashes = "6 4" if mark.bound or mark.dashed else None
    return path(d, hue, 1.4 if mark.bound else 1.9, dashes=dashes, stroke_linejoin="round")


def _curve(mark: Curve, at: Places, hue: str, form: int) -> str:
    places = [(at.x.at(x), at.y.at(e.value), e) for x, e in sorted(mark.points, key=lambda p: p[0])]
    d = "L".join(to(x, y) for x, y, _ in places)
    line = path(f"M{d}", hue, 1.6, dashes="6 4" if mark.dashed else None) if len(places) > 1 else ""
    return line + "".join(_interval(x, e, at, hue) + _form(x, y, hue, form) for x, y, e in places)


def _interval(x: float, e: Estimate | None, at: Places, hue: str) -> str:
    if e is None or e.low is None or e.high is None:
        return ""
    low, high = at.y.at(e.low), at.y.at(e.high)
    return path(f"M{to(x, low)}V{to(high)}M{to(x - 3, low)}h6M{to(x - 3, high)}h6", hue, 1.3)


def _beside(mark: Bars | Boxes, at: Places, hue: str, nth: int, of: int, gap: float) -> list[str]:
    slot = min(gap * 0.84 / of, 44.0)
    half = max(1.5, slot * 0.42)
    parts = []
    points: Sequence[tuple[float, Estimate | Box]] = mark.points
    for n, (x, found) in enumerate(points):
        middle = at.x.at(x) + (nth - (of - 1) / 2) * slot
        if isinstance(found, Estimate):
            zero, top = at.y.at(0.0), at.y.at(found.value)
            parts.append(rect(middle - half, min(zero, top), 2 * half, abs(zero - top), hue, fill_opacity=0.72))
            parts.append(_interval(middle, found, at, INK))
            upper = min([zero, top, *(at.y.at(v) for v in (found.low, found.high) if v is not None)])
        else:
            e = mark.estimates[n] if isinstance(mark, Boxes) and n < len(mark.estimates) else None
            parts += [_box(middle, half, found, at, hue), _interval(middle, e, at, INK)]
            upper = min([at.y.at(found.p90), *(at.y.at(v) for v in (e.high if e else None,) if v is not None)])
        parts.append(_count(middle, upper, found.n, slot, nth, at))
    return parts


def _box(x: float, half: float, box: Box, at: Places, hue: str) -> str:
    p10, p25, p50, p75, p90 = (at.y.at(v) for v in box[:5])
    whiskers = f"M{to(x, p10)}V{to(p25)}M{to(x, p75)}V{to(p90)}"
    whiskers += "".join(f"M{to(x - half / 2, end)}h{to(half)}" for end in (p10, p90))
    body = rect(x - half, p75, 2 * half, max(0.5, p25 - p75), hue, fill_opacity=0.25, stroke=hue)
    return path(whiskers, hue, 1.3) + body + path(f"M{to(x - half, p50)}h{to(2 * half)}", hue, 2.6)


def _count(x: float, y: float, n: int, slot: float, nth: int, at: Places) -> str:
    """The sample size over its mark, upright where it would touch its neighbour, and each series' higher where that would still do."""
    word, long = f"n={n}", wide(f"n={n}", 10)
    if long <= slot + 1:
        return words(word, x, max(y - 4, at.top + 9), 10, text_anchor="middle", fill=SOFT)
    rise = nth * (long + 3) if slot < _UPRIGHT else 0
    place = f"translate({to(x + 3.5, max(y - 4 - rise, at.top + long))}) rotate(-90)"
    return words(word, 0, 0, 10, transform=place, fill=SOFT)


def _forest(mark: Forest, at: Places) -> str:
    """An interval that does not hold the value of no effect is drawn in full ink."""
    parts = [path(f"M{to(at.x.at(mark.none), at.top)}V{to(at.floor)}", SOFT, dashes="2 3")]
    for n, (name, e) in enumerate(mark.points):
        x, y = at.x.at(e.value), at.top + (at.floor - at.top) * (n + 0.6) / len(mark.points)
        hue = SOFT
        if e.low is not None and e.high is not None:
            hue = SOFT if e.low <= mark.none <= e.high else INK
            low, high = at.x.at(e.low), at.x.at(e.high)
            parts.append(path(f"M{to(low, y)}H{to(high)}M{to(low, y - 4)}v8M{to(high, y - 4)}v8", hue, 1.6))
        parts.append(_form(x, y, hue, 1))
        parts.append(words(f"{name}, n={e.n}", at.x.begin + 6, y - 10, 11, fill=INK, **_HALO))
    return "".join(parts)


def _heat(mark: Heat, at: Places) -> list[str]:
    most = max(mark.shares.values(), default=1.0)
    parts = []
    for (column, row), share in sorted(mark.shares.items()):
        a, b = at.x.at(column / mark.side), at.x.at((column + 1) / mark.side)
        low, high = at.y.at(row / mark.side), at.y.at((row + 1) / mark.side)
        part = (share / most) ** 0.5
        hue = "#" + "".join(f"{round(p + (q - p) * part):02x}" for p, q in zip(_COLD, _HOT, strict=True))
        parts.append(rect(a, high, b - a, low - high, hue))
    told = f"darkest cell: {most * 100:.0f} %"
    return [*parts, words(told, at.x.end - 4, at.top + 12, 11, text_anchor="end", **_HALO)]


def _oval(mark: Oval, at: Places, hue: str) -> str:
    d = "M" + "L".join(to(at.x.at(x), at.y.at(y)) for x, y in mark.of.outline()) + "Z"
    x, y = at.x.at(mark.middle[0]), at.y.at(mark.middle[1])
    star = f"M{to(x - 5, y)}h10M{to(x - 2.5, y - 4.3)}l5 8.6M{to(x + 2.5, y - 4.3)}l-5 8.6"
    return path(d, hue, 1.6, fill=hue, fill_opacity=0.12) + path(star, hue, 1.8)
