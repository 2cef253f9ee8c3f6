"""All figures of one campaign, as the page shows them and as files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tandem_server.analysis.evaluate import Evaluation
from tandem_server.analysis.material import Bins, Material, material
from tandem_server.analysis.mobility_classes import RunClasses
from tandem_server.analysis.recorded import SubflowSeries
from tandem_server.report.figures.canvas import svg
from tandem_server.report.figures.figure import Figure, every, make, make_parts, probes
from tandem_server.report.figures.sheet import as_csv


@dataclass(frozen=True, slots=True)
class Drawn:
    """``svg``: numbers and escaped texts only; "" of a figure that lacks something, which ``lacks`` says. ``probes``: of a pool, whose
    measurements it is made of."""

    figure: Figure
    svg: str
    csv: str
    note: str
    lacks: str
    probes: tuple[str, ...] = ()


def figures(
    e: Evaluation,
    bins: list[Bins] | None = None,
    packets: Mapping[str, Sequence[SubflowSeries]] | None = None,
    classes: RunClasses | None = None,
) -> list[Drawn]:
    """Every figure, drawn or named as lacking. ``bins``, ``packets``: of the campaign's captures, where they were analysed."""
    return draw(material(e, bins, packets, classes))


def draw(m: Material, by: str = "", parts: Mapping[str, Material] | None = None, marks: int = 0) -> list[Drawn]:
    """Every figure of one kit or of a pool. ``parts``: by what ``by`` says, drawn beside each other. ``marks``: how many the pool has."""
    out = []
    for figure in every():
        made = make_parts(figure, m, parts) if parts else make(figure, m)
        if made.sheet is None:
            out.append(Drawn(figure, "", "", "", made.lacks))
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
        out.append(Drawn(figure, svg(made.sheet, title), as_csv(made.sheet), note, "", own))
    return out


def by_paper(drawn: Sequence[Drawn]) -> list[tuple[str, list[Drawn], list[Drawn]]]:
    """Each paper with what is drawn of it and what is lacking."""
    papers = dict.fromkeys(one.figure.paper for one in drawn)
    return [
        (
            paper,
            [one for one in drawn if one.figure.paper == paper and one.svg],
            [one for one in drawn if one.figure.paper == paper and not one.svg],
        )
        for paper in papers
    ]
