"""A figure of a paper: what it needs, how it is drawn, or what it lacks. And all of one campaign, as the page shows them and as files:
``NAME.svg``, ``NAME.pdf``, ``NAME.csv``, and ``figures.json``, which says of each whether it is drawn and what it lacks."""

from __future__ import annotations

import importlib
import json
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tandem_server.analysis.material import Material
from tandem_server.report.figures import papers
from tandem_server.report.figures.sheet import Sheet, as_csv, operator_hues, picture


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


def figures(
    paper: str, *rows: tuple[str, str, str, Callable[[Material], Sheet], *tuple[Need, ...]]
) -> tuple[Figure, ...]:
    """Of one paper: of each its name, label and title, how it is drawn, and what it needs."""
    return tuple(Figure(name, paper, label, title, needs, draw) for name, label, title, draw, *needs in rows)


@dataclass(frozen=True, slots=True)
class Made:
    """Either ``sheet`` or ``lacks``."""

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
        return Made(None, "; ".join(lacks))
    try:
        return Made(figure.draw(m), "")
    except LackingError as lacking:
        return Made(None, str(lacking))


def make_parts(figure: Figure, m: Material, parts: Mapping[str, Material]) -> Made:
    """Each part's panels beside each other, in the colours that the operators have in the whole ``m``."""
    made = {part: make(figure, of) for part, of in parts.items()}
    sheets = {part: one.sheet for part, one in made.items() if one.sheet is not None}
    if not sheets:
        return Made(None, next((one.lacks for one in made.values()), "parts"))
    panels = [replace(panel, part=part) for part, sheet in sheets.items() for panel in sheet.panels]
    hues = {series: hue for sheet in sheets.values() for series, hue in sheet.hues.items()}
    hues |= {series: hue for series, hue in operator_hues(m.named()).items() if series in hues}
    note = " ".join(f"{part}: {sheet.note}" for part, sheet in sheets.items())
    if len({sheet.note for sheet in sheets.values()}) == 1 and (whole := make(figure, m).sheet) is not None:
        note = whole.note  # its counts are of all parts
    lacking = "".join(f" {part} lacks {one.lacks}." for part, one in made.items() if part not in sheets)
    return Made(Sheet(panels, note + lacking, hues, wide=any(s.wide for s in sheets.values())), "")


def probes(figure: Figure, m: Material) -> list[str]:
    """Of a pool: those that have what the figure needs."""
    return [kit.probe for kit in m.kits if all(need.there(kit) for need in figure.needs)]


KINDS = ("svg", "pdf", "csv")


@dataclass(frozen=True, slots=True)
class Drawn:
    """``svg``: numbers and escaped texts only; "" of a figure that lacks something, which ``lacks`` says. ``pdf``: where it was asked for.
    ``probes``: of a pool, whose measurements it is made of."""

    figure: Figure
    svg: str
    pdf: bytes
    csv: str
    note: str
    lacks: str
    probes: tuple[str, ...] = ()


def draw(
    m: Material, by: str = "", parts: Mapping[str, Material] | None = None, marks: int = 0, *, pdf: bool = True
) -> list[Drawn]:
    """Every figure of one kit or of a pool. ``parts``: by what ``by`` says, drawn beside each other. ``marks``: how many the pool has."""
    out = []
    for figure in every():
        made = make_parts(figure, m, parts) if parts else make(figure, m)
        if made.sheet is None:
            out.append(Drawn(figure, "", b"", "", "", made.lacks))
            continue
        title = f"{figure.paper}, {figure.label}: {figure.title}"
        own = tuple(probes(figure, m))
        told = "" if not m.kits else f"{'Probe' if len(own) == 1 else f'{len(own)} probes'}: {', '.join(own)}"
        note = " ".join(
            part
            for part in (
                made.sheet.note,
                f"{f'Parted by {by}' if parts else 'Pooled'}. {told}." if told else "",
                f"Marks above: {marks}." if marks else "",
            )
            if part
        )
        title += f" ({told})" if told else ""
        out.append(Drawn(figure, *picture(made.sheet, title, pdf=pdf), as_csv(made.sheet), note, "", own))
    return out


def by_paper(drawn: Sequence[Drawn]) -> dict[str, list[Drawn]]:
    """What is drawn of each paper."""
    found: dict[str, list[Drawn]] = {}
    for one in drawn:
        if one.svg:
            found.setdefault(one.figure.paper, []).append(one)
    return found


def index(drawn: Sequence[Drawn]) -> str:
    """Of every figure of the papers: ``name``, ``paper``, ``label``, ``title``, ``drawn``, ``lacks`` ("" of a drawn one); of a pool
    ``probes``."""
    rows = [
        {
            **{key: getattr(one.figure, key) for key in ("name", "paper", "label", "title")},
            "drawn": bool(one.svg),
            "lacks": one.lacks,
            **({"probes": list(one.probes)} if one.probes else {}),
        }
        for one in drawn
    ]
    return json.dumps(rows, indent=1, ensure_ascii=False) + "\n"


def write_figures(folder: Path, drawn: Sequence[Drawn]) -> None:
    """Into ``folder``, which is made; OSError. What an earlier report drew and this one cannot is taken away."""
    folder.mkdir(parents=True, exist_ok=True)
    found = {"figures.json": index(drawn).encode()}
    for one in drawn:
        own = contents(one.figure.name, one.svg, one.pdf, one.csv)
        found |= own
        for kind in KINDS:
            if f"{one.figure.name}.{kind}" not in own:
                (folder / f"{one.figure.name}.{kind}").unlink(missing_ok=True)
    for name, content in found.items():
        partial = folder / f"{name}.tmp"
        partial.write_bytes(content)
        partial.replace(folder / name)


def contents(name: str, svg: str, pdf: bytes, csv: str) -> dict[str, bytes]:
    """A figure's files; none of one that is not drawn."""
    made = dict(zip(KINDS, (f"{svg}\n".encode(), pdf, csv.encode()), strict=True))
    return {f"{name}.{kind}": content for kind, content in made.items() if svg and content}
