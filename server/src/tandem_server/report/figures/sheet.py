"""A figure as drawn: panels with axes and marks, and what they say as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tandem_server.report.figures.marks import Mark, Number
from tandem_server.report.figures.scale import Axis

FIXED = ("panel", "mark", "series")
NONE = Axis("")


@dataclass(frozen=True, slots=True)
class Panel:
    """``title`` may be empty in a figure of one panel. ``part``: of a parted figure, whose panel it is. ``height``: px; 0: as usual."""

    title: str
    marks: Sequence[Mark]
    x: Axis = NONE
    y: Axis = NONE
    part: str = ""
    height: int = 0

    @property
    def heading(self) -> str:
        """What stands above it; of a part that is one kit, whose name the title has already, the title."""
        own = self.title.startswith(f"{self.part}: ")
        return self.title if own else ": ".join(word for word in (self.part, self.title) if word)


@dataclass(frozen=True, slots=True)
class Sheet:
    """``hues``: colours that some series have in every figure. ``note``: how to read it and what it is made of. ``wide``: its one panel has
    many marks beside each other. ``live``: over one time axis, one below the other, as wide as the page, where one can look closer."""

    panels: Sequence[Panel]
    note: str = ""
    hues: Mapping[str, str] = field(default_factory=dict)
    wide: bool = False
    live: bool = False


class Picture(NamedTuple):
    """For the page and the file, and for a printer; the same sheet gives the same bytes. ``svg``: numbers and escaped texts only."""

    svg: str
    pdf: bytes


def picture(sheet: Sheet, title: str, *, pdf: bool = True) -> Picture:
    """Drawn; ``title`` is what it is called for those who do not see it. Without ``pdf``: none, which is half the time."""
    from tandem_server.report.figures import canvas  # here: matplotlib is loaded by what draws only

    return canvas.picture(sheet, title, pdf=pdf)


def rows(sheet: Sheet) -> list[dict[str, Number]]:
    """Every number drawn, in the order of drawing."""
    return [
        {
            **({"part": panel.part} if panel.part else {}),
            "panel": panel.title,
            "mark": type(mark).__name__.lower(),
            "series": mark.series,
            **row,
        }
        for panel in sheet.panels
        for mark in panel.marks
        for row in mark.rows()
    ]


def as_csv(sheet: Sheet) -> str:
    """As ``csv_text``; columns that no row fills are left out."""
    found = rows(sheet)
    fixed = [*(["part"] if any(panel.part for panel in sheet.panels) else []), *FIXED]
    keys = [
        *fixed,
        *dict.fromkeys(key for row in found for key, value in row.items() if key not in fixed and value is not None),
    ]
    return csv_text(keys, ([row.get(key) for key in keys] for row in found))


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Number]]) -> str:
    """A point in numbers, an absent value empty; a text that a spreadsheet would take for a formula is made plain."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    for row in rows:
        formulas = (isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@", "\t", "\r") for cell in row)
        writer.writerow([f"'{cell}" if formula else cell for cell, formula in zip(row, formulas, strict=True)])
    return out.getvalue()
