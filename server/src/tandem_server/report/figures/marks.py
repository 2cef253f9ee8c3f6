"""What is drawn in a panel. A mark knows its numbers: they are what is placed in the picture and what goes into the CSV."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tandem_server.analysis.estimates import Box, Ellipse, Estimate

Number = float | int | str | None
Row = Mapping[str, Number]
Array = NDArray[np.float64]
Place = tuple[float, float]
GAP_S = 1.6
"""A line over time is broken where two neighbouring samples lie further apart: nothing was measured between them."""


def numbers_of(e: Estimate) -> dict[str, Number]:
    """As rows have them."""
    return {"y": e.value, "low": e.low, "high": e.high, "n": e.n}


class Mark:
    """``series``: what it belongs to, and its colour; "" of what has no colour of its own."""

    __slots__ = ()
    series: str

    def rows(self) -> Iterator[Row]:
        """Its numbers, a row each; none of the page's own pictures, whose numbers are in tables."""
        yield from ()

    def reach(self) -> Iterator[Place]:
        """Places that must lie in the panel."""
        yield from ()


@dataclass(frozen=True, slots=True)
class Line(Mark):
    """Through points in their order. ``step``: a distribution function. ``bound``: no measurement, drawn dashed. ``n`` values behind it.
    ``spots``: each point is marked."""

    series: str
    points: Sequence[Place]
    n: int | None = None
    step: bool = False
    bound: bool = False
    dashed: bool = False
    spots: bool = False

    def rows(self) -> Iterator[Row]:
        yield from ({"x": x, "y": y, "n": self.n} for x, y in self.points)

    def reach(self) -> Iterator[Place]:
        yield from self.points


@dataclass(frozen=True, slots=True)
class _Estimates(Mark):
    series: str
    points: Sequence[tuple[float, Estimate]]

    def rows(self) -> Iterator[Row]:
        yield from ({"x": x, **numbers_of(e)} for x, e in self.points)

    def reach(self) -> Iterator[Place]:
        yield from ((x, y) for x, e in self.points for y in (e.value, e.low, e.high) if y is not None)


@dataclass(frozen=True, slots=True)
class Curve(_Estimates):
    """Estimates over a quantity, joined, with their intervals."""

    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Bars(_Estimates):
    """Estimates at named places, from 0 on."""

    def reach(self) -> Iterator[Place]:
        yield from ((x, 0.0) for x, _ in self.points)
        yield from _Estimates.reach(self)


@dataclass(frozen=True, slots=True)
class Forest(Mark):
    """Named estimates along the horizontal axis, one below the other, with their intervals; ``none``: the value of no effect."""

    points: Sequence[tuple[str, Estimate]]
    none: float
    series: str = ""

    def rows(self) -> Iterator[Row]:
        for name, e in self.points:
            yield {"name": name, "x": e.value, "low": e.low, "high": e.high, "n": e.n}

    def reach(self) -> Iterator[Place]:
        yield self.none, 0.0
        yield from ((x, 0.0) for _, e in self.points for x in (e.value, e.low, e.high) if x is not None)


@dataclass(frozen=True, slots=True)
class Boxes(Mark):
    """Boxes and whiskers with their medians' intervals (``estimates``)."""

    series: str
    points: Sequence[tuple[float, Box]]
    estimates: Sequence[Estimate | None] = ()

    def rows(self) -> Iterator[Row]:
        for n, (x, b) in enumerate(self.points):
            e = self.estimates[n] if n < len(self.estimates) else None
            ends = {"low": None if e is None else e.low, "high": None if e is None else e.high}
            yield {"x": x, "y": b.p50, **ends, "p10": b.p10, "p25": b.p25, "p75": b.p75, "p90": b.p90, "n": b.n}

    def reach(self) -> Iterator[Place]:
        yield from ((x, y) for x, b in self.points for y in (b.p10, b.p90))


@dataclass(frozen=True, slots=True)
class Dots(Mark):
    """Single values."""

    series: str
    points: Sequence[Place]
    faint: bool = False

    def rows(self) -> Iterator[Row]:
        yield from ({"x": x, "y": y} for x, y in self.points)

    def reach(self) -> Iterator[Place]:
        yield from self.points


@dataclass(frozen=True, slots=True)
class Heat(Mark):
    """A square grid of ``side`` cells a side over 0 to 1; ``shares`` of the values by (column, row)."""

    shares: Mapping[tuple[int, int], float]
    side: int
    n: int
    series: str = ""

    def rows(self) -> Iterator[Row]:
        for (column, row), share in sorted(self.shares.items()):
            yield {"x": (column + 0.5) / self.side, "y": (row + 0.5) / self.side, "share": share, "n": self.n}

    def reach(self) -> Iterator[Place]:
        yield from ((0.0, 0.0), (1.0, 1.0))


@dataclass(frozen=True, slots=True)
class Oval(Mark):
    """A 1-σ ellipse; ``middle``: the medians, an asterisk."""

    series: str
    of: Ellipse
    middle: Place

    def rows(self) -> Iterator[Row]:
        e = self.of
        told = {"mean_x": e.x, "mean_y": e.y, "sd_x": e.sd_x, "sd_y": e.sd_y, "correlation": e.correlation, "n": e.n}
        yield {"x": self.middle[0], "y": self.middle[1], **told}

    def reach(self) -> Iterator[Place]:
        yield from (*self.of.outline(), self.middle)


@dataclass(frozen=True, slots=True)
class Shade(Mark):
    """A part of the panel from ``low`` to ``high`` of the horizontal axis, with its name."""

    name: str
    low: float
    high: float
    series: str = ""

    def rows(self) -> Iterator[Row]:
        yield {"x": self.low, "x_to": self.high, "name": self.name}


@dataclass(frozen=True, slots=True)
class Level(Mark):
    """A height that means something, across the panel, with its name."""

    name: str
    y: float
    series: str = ""

    def rows(self) -> Iterator[Row]:
        yield {"y": self.y, "name": self.name}


@dataclass(frozen=True, slots=True)
class Cells(Mark):
    """A table: its heads and its rows of texts; ``numbers``: what they were made of, a row each."""

    heads: Sequence[str]
    texts: Sequence[Sequence[str]]
    numbers: Sequence[Row]
    series: str = ""

    def rows(self) -> Iterator[Row]:
        yield from self.numbers


# --- of the page's own pictures


@dataclass(frozen=True, slots=True)
class Trace(Mark):
    """Samples over time, broken at gaps and at NaN. ``faint``: of what is beside the point."""

    series: str
    t: Array
    v: Array
    gap_s: float = GAP_S
    faint: bool = False

    def reach(self) -> Iterator[Place]:
        known = self.v[np.isfinite(self.v)]
        if len(known):
            yield from ((float(self.t[0]), float(end)) for end in (known.min(), known.max()))


@dataclass(frozen=True, slots=True)
class Area(Mark):
    """Between two curves on one grid without gaps."""

    series: str
    t: Array
    low: Array
    high: Array
    faint: bool = False


@dataclass(frozen=True, slots=True)
class Moments(Mark):
    """Lines from top to bottom."""

    series: str
    times: Sequence[float]


class Span(NamedTuple):
    """``hue`` of which ``part`` (0 to 1) covers the ground; ``title`` is shown on pointing at it."""

    start: float
    end: float
    text: str
    hue: str
    part: float
    title: str


@dataclass(frozen=True, slots=True)
class Bands(Mark):
    """Coloured bands along time; ``row``: place on the vertical axis of names."""

    row: int
    spans: Sequence[Span]
    series: str = ""


class Bar(NamedTuple):
    """A row: with ``head`` a line of text (``soft``: in grey), else a label, its parts (a hue, how much of it covers the ground, a length),
    what was offered (None: not known), and what is said behind it."""

    head: str = ""
    soft: bool = False
    label: str = ""
    parts: Sequence[tuple[str, float, float]] = ()
    offered: float | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Stacks(Mark):
    """Bars along the horizontal axis, one below the other."""

    bars: Sequence[Bar]
    series: str = ""
