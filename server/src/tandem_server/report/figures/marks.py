"""What is drawn in a panel. A mark knows its numbers: they are what is placed in the picture and what goes into the CSV."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from tandem_server.analysis.estimates import Box, Ellipse, Estimate

Number = float | int | str | None
Row = Mapping[str, Number]


class Mark(Protocol):
    """``series``: what it belongs to, and its colour; "" of what has no colour of its own."""

    @property
    def series(self) -> str: ...

    def rows(self) -> Iterator[Row]:
        """Its numbers, a row each."""
        ...

    def reach(self) -> Iterator[tuple[float, float]]:
        """Places that must lie in the panel."""
        ...


@dataclass(frozen=True, slots=True)
class Line:
    """Through points in their order. ``step``: a distribution function. ``bound``: no measurement, drawn dashed. ``n`` values behind it."""

    series: str
    points: Sequence[tuple[float, float]]
    n: int | None = None
    step: bool = False
    bound: bool = False
    dashed: bool = False

    def rows(self) -> Iterator[Row]:
        for x, y in self.points:
            yield {"x": x, "y": y, "n": self.n}

    def reach(self) -> Iterator[tuple[float, float]]:
        yield from self.points


def _estimates(points: Sequence[tuple[float, Estimate]]) -> Iterator[Row]:
    for x, e in points:
        yield {"x": x, "y": e.value, "low": e.low, "high": e.high, "n": e.n}


def _intervals(points: Sequence[tuple[float, Estimate]]) -> Iterator[tuple[float, float]]:
    for x, e in points:
        yield from ((x, y) for y in (e.value, e.low, e.high) if y is not None)


@dataclass(frozen=True, slots=True)
class Curve:
    """Estimates over a quantity, joined, with their intervals."""

    series: str
    points: Sequence[tuple[float, Estimate]]
    dashed: bool = False

    def rows(self) -> Iterator[Row]:
        yield from _estimates(self.points)

    def reach(self) -> Iterator[tuple[float, float]]:
        yield from _intervals(self.points)


@dataclass(frozen=True, slots=True)
class Bars:
    """Estimates at named places, from 0 on."""

    series: str
    points: Sequence[tuple[float, Estimate]]

    def rows(self) -> Iterator[Row]:
        yield from _estimates(self.points)

    def reach(self) -> Iterator[tuple[float, float]]:
        yield from ((x, 0.0) for x, _ in self.points)
        yield from _intervals(self.points)


@dataclass(frozen=True, slots=True)
class Forest:
    """Named estimates along the horizontal axis, one below the other, with their intervals; ``none``: the value of no effect."""

    points: Sequence[tuple[str, Estimate]]
    none: float
    series: str = ""

    def rows(self) -> Iterator[Row]:
        for name, e in self.points:
            yield {"name": name, "x": e.value, "low": e.low, "high": e.high, "n": e.n}

    def reach(self) -> Iterator[tuple[float, float]]:
        yield self.none, 0.0
        yield from ((x, 0.0) for _, e in self.points for x in (e.value, e.low, e.high) if x is not None)


@dataclass(frozen=True, slots=True)
class Boxes:
    """Boxes and whiskers with their medians' intervals (``estimates``)."""

    series: str
    points: Sequence[tuple[float, Box]]
    estimates: Sequence[Estimate | None] = ()

    def rows(self) -> Iterator[Row]:
        for n, (x, b) in enumerate(self.points):
            e = self.estimates[n] if n < len(self.estimates) else None
            ends = {"low": None if e is None else e.low, "high": None if e is None else e.high}
            yield {"x": x, "y": b.p50, **ends, "p10": b.p10, "p25": b.p25, "p75": b.p75, "p90": b.p90, "n": b.n}

    def reach(self) -> Iterator[tuple[float, float]]:
        for x, b in self.points:
            yield from ((x, b.p10), (x, b.p90))


@dataclass(frozen=True, slots=True)
class Dots:
    """Single values."""

    series: str
    points: Sequence[tuple[float, float]]
    faint: bool = False

    def rows(self) -> Iterator[Row]:
        for x, y in self.points:
            yield {"x": x, "y": y}

    def reach(self) -> Iterator[tuple[float, float]]:
        yield from self.points


@dataclass(frozen=True, slots=True)
class Heat:
    """A square grid of ``side`` cells a side over 0 to 1; ``shares`` of the values by (column, row)."""

    shares: Mapping[tuple[int, int], float]
    side: int
    n: int
    series: str = ""

    def rows(self) -> Iterator[Row]:
        for (column, row), share in sorted(self.shares.items()):
            yield {"x": (column + 0.5) / self.side, "y": (row + 0.5) / self.side, "share": share, "n": self.n}

    def reach(self) -> Iterator[tuple[float, float]]:
        yield from ((0.0, 0.0), (1.0, 1.0))


@dataclass(frozen=True, slots=True)
class Oval:
    """A 1-σ ellipse; ``middle``: the medians, an asterisk."""

    series: str
    of: Ellipse
    middle: tuple[float, float]

    def rows(self) -> Iterator[Row]:
        e = self.of
        told = {"mean_x": e.x, "mean_y": e.y, "sd_x": e.sd_x, "sd_y": e.sd_y, "correlation": e.correlation, "n": e.n}
        yield {"x": self.middle[0], "y": self.middle[1], **told}

    def reach(self) -> Iterator[tuple[float, float]]:
        yield from self.of.outline()
        yield self.middle


@dataclass(frozen=True, slots=True)
class Shade:
    """A part of the panel from ``low`` to ``high`` of the horizontal axis, with its name."""

    name: str
    low: float
    high: float
    series: str = ""

    def rows(self) -> Iterator[Row]:
        yield {"x": self.low, "x_to": self.high, "name": self.name}

    def reach(self) -> Iterator[tuple[float, float]]:
        yield from ()


@dataclass(frozen=True, slots=True)
class Level:
    """A height that means something, across the panel, with its name."""

    name: str
    y: float
    series: str = ""

    def rows(self) -> Iterator[Row]:
        yield {"y": self.y, "name": self.name}

    def reach(self) -> Iterator[tuple[float, float]]:
        yield from ()


@dataclass(frozen=True, slots=True)
class Cells:
    """A table: its heads and its rows of texts; ``numbers``: what they were made of, a row each."""

    heads: Sequence[str]
    texts: Sequence[Sequence[str]]
    numbers: Sequence[Row]
    series: str = ""

    def rows(self) -> Iterator[Row]:
        yield from self.numbers

    def reach(self) -> Iterator[tuple[float, float]]:
        yield from ()
