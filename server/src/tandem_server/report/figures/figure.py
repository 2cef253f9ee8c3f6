"""A figure of a paper: what it needs, how it is drawn, or what it lacks."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from tandem_server.analysis.material import Material
from tandem_server.report.figures import papers
from tandem_server.report.figures.hues import of_operators
from tandem_server.report.figures.sheet import Sheet


class LackingError(Exception):
    """The campaign has what the figure needs, and yet not enough of it to draw: what is lacking, in a few words."""


@dataclass(frozen=True, slots=True)
class Need:
    """``what`` is lacking where ``there`` is not."""

    what: str
    there: Callable[[Material], object]


DOWNLOADS = Need("runs of the experiment download", lambda m: m.downloads)
BANDWIDTH = Need("rounds of the experiment bandwidth", lambda m: m.bandwidth)
DELAY = Need("rounds of the experiment delay", lambda m: m.delay)
PLAYS = Need("plays of the experiment dash", lambda m: m.plays)
LOADS = Need("loads of the experiment pageload", lambda m: m.loads)
SURVEYS = Need("a survey of the experiment reachability", lambda m: m.surveys)
RADIO = Need("polls of the modems", lambda m: m.radio)
EVENTS = Need("signal drops or handovers", lambda m: m.events)
SPANS = Need("times of a known mobility class", lambda m: m.spans)
FLOWS = Need("the sender’s records of subflows", lambda m: [run for run, end in m.flows if end == "server"])
ROUND_TRIPS = Need(
    "the sender’s records of subflows, or their captures (tandem-server analyse)",
    lambda m: m.packets or [run for run, end in m.flows if end == "server"],
)
BINS = Need("bins of the packet captures (tandem-server analyse)", lambda m: m.bins)


@dataclass(frozen=True, slots=True)
class Figure:
    """``name``: of its files, ``PAPER-LABEL``. ``label``: as the paper numbers it. ``draw``: LackingError where it cannot."""

    name: str
    paper: str
    label: str
    title: str
    needs: Sequence[Need]
    draw: Callable[[Material], Sheet]


@dataclass(frozen=True, slots=True)
class Made:
    """Either ``sheet`` or ``lacks``."""

    figure: Figure
    sheet: Sheet | None
    lacks: str


def every() -> list[Figure]:
    """All figures, in the order of the papers' files."""
    found: list[Figure] = []
    for module in sorted(pkgutil.iter_modules(papers.__path__), key=lambda m: m.name):
        found += importlib.import_module(f"{papers.__name__}.{module.name}").FIGURES
    return found


def make(figure: Figure, m: Material) -> Made:
    """Drawn, or named as lacking what it lacks."""
    lacks = [need.what for need in figure.needs if not need.there(m)]
    if lacks:
        return Made(figure, None, "; ".join(lacks))
    try:
        return Made(figure, figure.draw(m), "")
    except LackingError as lacking:
        return Made(figure, None, str(lacking))


def make_parts(figure: Figure, m: Material, parts: Mapping[str, Material]) -> Made:
    """Each part's panels beside each other, in the colours that the operators have in the whole ``m``."""
    made = {part: make(figure, of) for part, of in parts.items()}
    sheets = {part: one.sheet for part, one in made.items() if one.sheet is not None}
    if not sheets:
        return Made(figure, None, next((one.lacks for one in made.values()), "parts"))
    panels = [replace(panel, part=part) for part, sheet in sheets.items() for panel in sheet.panels]
    hues = {series: hue for sheet in sheets.values() for series, hue in sheet.hues.items()}
    hues |= {series: hue for series, hue in of_operators(m.named()).items() if series in hues}
    note = " ".join(f"{part}: {sheet.note}" for part, sheet in sheets.items())
    if len({sheet.note for sheet in sheets.values()}) == 1 and (whole := make(figure, m).sheet) is not None:
        note = whole.note  # its counts are of all parts
    lacking = "".join(f" {part} lacks {one.lacks}." for part, one in made.items() if part not in sheets)
    return Made(figure, Sheet(panels, note + lacking, hues, wide=any(s.wide for s in sheets.values())), "")


def probes(figure: Figure, m: Material) -> list[str]:
    """Of a pool: those that have what the figure needs."""
    return [kit.probe for kit in m.kits if all(need.there(kit) for need in figure.needs)]
