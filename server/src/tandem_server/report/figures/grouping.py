"""What the papers' figures share: values by series and place as estimates and boxes, and tables. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from tandem_server.analysis import estimates
from tandem_server.analysis.estimates import Estimate, box, cdf
from tandem_server.analysis.mobility_classes import CLASSES
from tandem_server.report import words
from tandem_server.report.figures.figure import LackingError
from tandem_server.report.figures.marks import Bars, Boxes, Cells, Curve, Line, Row
from tandem_server.report.figures.sheet import Panel, Sheet

Triple = tuple[str, float, float | None]
"""A series, a place, a value."""
CONTROLLERS = {
    "cubic": "CUBIC",
    "lia": "LIA",
    "olia": "OLIA",
    "balia": "BALIA",
    "reno": "Reno",
    "bbr": "BBR",
    "coupled": "coupled",
}
MOST_DOTS = 800
"""Single values drawn in one panel; evenly taken of more."""


def controller(name: str) -> str:
    """As the papers write it."""
    return CONTROLLERS.get(name.lower(), name) or "default controller"


def grouped(values: Iterable[Triple]) -> dict[str, dict[float, list[float]]]:
    """In order of appearance of the series, of size of the places; absent values are left out."""
    found: dict[str, dict[float, list[float]]] = {}
    for series, place, value in values:
        if value is not None and math.isfinite(value):
            found.setdefault(series, {}).setdefault(place, []).append(value)
    return {series: dict(sorted(places.items())) for series, places in found.items()}


def curves(values: Iterable[Triple], dashed: Sequence[str] = ()) -> list[Curve]:
    """Medians with their intervals, a curve a series."""
    return [Curve(s, _medians(places), s in dashed) for s, places in grouped(values).items()]


def bars(values: Iterable[Triple]) -> list[Bars]:
    """Medians with their intervals, side by side at each place."""
    return [Bars(s, _medians(places)) for s, places in grouped(values).items()]


def boxes(values: Iterable[Triple]) -> list[Boxes]:
    """Boxes and whiskers with the medians' intervals."""
    made = []
    for series, places in grouped(values).items():
        points = [(x, b) for x, v in places.items() if (b := box(v)) is not None]
        made.append(Boxes(series, points, [estimates.median(v) for v in places.values()]))
    return made


def distributions(values: Iterable[tuple[str, float | None]], dashed: Sequence[str] = ()) -> list[Line]:
    """A distribution function a series."""
    found = grouped((s, 0.0, v) for s, v in values)
    return [
        Line(s, cdf(v), n=len(v), step=True, dashed=s in dashed) for s, places in found.items() for v in places.values()
    ]


def thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """At most ``MOST_DOTS`` of them."""
    every = max(1, math.ceil(len(points) / MOST_DOTS))
    return list(points[::every])


def classes(present: Iterable[str | None]) -> list[str]:
    """Mobility classes that there are, in order of speed."""
    known = set(present)
    return [name for name in CLASSES if name in known]


def _medians(places: dict[float, list[float]]) -> list[tuple[float, Estimate]]:
    return [(x, e) for x, v in places.items() if (e := estimates.median(v)) is not None]


def table(
    heads: Sequence[str],
    texts: Sequence[Sequence[str]],
    numbers: Sequence[Row],
    note: str,
    lacking: str = "",
    *,
    wide: bool = False,
) -> Sheet:
    """A figure that is a table. LackingError without rows, where ``lacking`` says of what."""
    if lacking and not numbers:
        raise LackingError(lacking)
    return Sheet([Panel("", [Cells(heads, texts, numbers)])], note, wide=wide)


def sheet(panels: Iterable[Panel], lacking: str, note: str, hues: Mapping[str, str] | None = None) -> Sheet:
    """Of those panels in which something is drawn. LackingError without one, where ``lacking`` says of what."""
    drawn = [panel for panel in panels if panel.marks]
    if not drawn:
        raise LackingError(lacking)
    return Sheet(drawn, note, hues or {})


def written(
    e: Estimate | None,
    digits: int,
    form: Callable[[float | None, int], str] = words.fixed,
    *,
    with_n: bool = False,
) -> str:
    """An estimate as a cell of a table: with its interval, where it has one."""
    if e is None:
        return words.ABSENT
    span = "" if e.low is None else f" ({form(e.low, digits)}–{form(e.high, digits)})"
    return f"{form(e.value, digits)}{span}{f', n={e.n}' if with_n else ''}"
