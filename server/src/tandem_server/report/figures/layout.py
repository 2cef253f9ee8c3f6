"""Where a figure's panels and its legend go. Pure; lengths in px of the SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tandem_server.report.figures.marks import Bars, Boxes, Cells, Curve, Forest, Heat, Level, Line, Mark, Oval, Shade
from tandem_server.report.figures.sheet import Panel, Sheet

HEIGHT, LEFT, RIGHT, BOTTOM = 262, 58, 14, 54
TITLED, UNTITLED = 28, 12
"""What is above a panel's frame."""
WIDTHS = {1: 470, 2: 400, 3: 316}
WIDE = 900
ROW = 17
"""Of the legend."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One word of the legend at its place."""

    text: str
    series: str
    dashed: bool
    x: float
    y: float


def wide(text: str, size: float = 12) -> float:
    """About how long a text is; too much rather than too little."""
    return sum(0.32 if c in "iljtfI.,:;|' ()" else 0.9 if c in "mwMW%–×" else 0.6 for c in text) * size


def columns(sheet: Sheet) -> int:
    """Panels in a row."""
    n = len(sheet.panels)
    return n if n <= 3 else 2 if n == 4 else 3


def above(sheet: Sheet) -> int:
    """What is above each panel's frame."""
    return TITLED if any(panel.heading for panel in sheet.panels) else UNTITLED


def counted(panel: Panel, series: str) -> str:
    """How many values are behind a series in a panel, where that is not written at its marks; a text for its legend."""
    numbers: list[int] = []
    for mark in panel.marks:
        if mark.series != series:
            continue
        if isinstance(mark, Line) and mark.n is not None:
            numbers.append(mark.n)
        elif isinstance(mark, Curve):
            numbers += [e.n for _, e in mark.points]
        elif isinstance(mark, Oval):
            numbers.append(mark.of.n)
    if not numbers:
        return ""
    return f"n={min(numbers)}" if min(numbers) == max(numbers) else f"n={min(numbers)}–{max(numbers)}"


def named(mark: Mark) -> bool:
    """Whether it stands in the legend."""
    return mark.series != "" and not isinstance(mark, Forest | Heat | Shade | Level | Cells)


def at_its_marks(mark: Mark) -> bool:
    """Whether the panel writes its sample sizes beside it."""
    return isinstance(mark, Bars | Boxes | Forest)


def legend(sheet: Sheet, width: float) -> tuple[list[Entry], float]:
    """Words with their sample sizes, in lines; and how high it is. A series in several panels has the range over them."""
    names: dict[str, bool] = {}
    for panel in sheet.panels:
        for mark in panel.marks:
            if named(mark):
                names.setdefault(mark.series, bool(getattr(mark, "dashed", False) or getattr(mark, "bound", False)))
    out: list[Entry] = []
    x, y = 8.0, 14.0
    for name, dashed in names.items():
        text = f"{name} ({told})" if (told := _over(sheet.panels, name)) else name
        length = 30 + wide(text) + 14
        if x > 8 and x + length > width:
            x, y = 8.0, y + ROW
        out.append(Entry(text, name, dashed, x, y))
        x += length
    return out, y + 8 if out else 4.0


def _over(panels: Sequence[Panel], series: str) -> str:
    told = [text for panel in panels if (text := counted(panel, series))]
    ends = [int(part) for text in told for part in text.removeprefix("n=").split("–")]
    if not ends:
        return ""
    return f"n={min(ends)}" if min(ends) == max(ends) else f"n={min(ends)}–{max(ends)}"
