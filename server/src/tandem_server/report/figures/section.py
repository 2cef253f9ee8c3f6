"""All figures of one campaign, as the page shows them and as files: ``NAME.svg``, ``NAME.pdf``, ``NAME.csv``, and ``figures.json``, which
says of each whether it is drawn and what it lacks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tandem_server.analysis.evaluate import Evaluation
from tandem_server.analysis.material import Bins, Material, material
from tandem_server.analysis.mobility_classes import RunClasses
from tandem_server.analysis.recorded import SubflowSeries
from tandem_server.report.figures.figure import Figure, every, make, make_parts, probes
from tandem_server.report.figures.sheet import as_csv, picture

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


def figures(
    e: Evaluation,
    bins: list[Bins] | None = None,
    packets: Mapping[str, Sequence[SubflowSeries]] | None = None,
    classes: RunClasses | None = None,
    *,
    pdf: bool = False,
) -> list[Drawn]:
    """Every figure, drawn or named as lacking. ``bins``, ``packets``: of the campaign's captures, where they were analysed."""
    return draw(material(e, bins, packets, classes), pdf=pdf)


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
