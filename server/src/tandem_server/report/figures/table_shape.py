"""A table as a piece of SVG: heads, a rule, rows; the first column to the left, the others to the right."""

from __future__ import annotations

from tandem_server.report.figures.elements import path, rect, to, words
from tandem_server.report.figures.hues import PALE, SOFT
from tandem_server.report.figures.layout import wide
from tandem_server.report.figures.marks import Cells

LINE = 20
MARGIN = 8.0


def _widths(mark: Cells) -> list[float]:
    rows = [mark.heads, *mark.texts]
    return [max(wide(row[n], 12.5) for row in rows) + 22 for n in range(len(mark.heads))]


def width(mark: Cells) -> float:
    """With its margins."""
    return sum(_widths(mark)) + 2 * MARGIN


def height(mark: Cells) -> float:
    """With a margin under it."""
    return LINE * (len(mark.texts) + 1) + 14


def drawn(mark: Cells, top: float) -> str:
    """From ``top`` on."""
    ends, at = [], MARGIN
    for one in _widths(mark):
        at += one
        ends.append(at)
    parts = []
    for n, row in enumerate([mark.heads, *mark.texts]):
        y = top + n * LINE + 12
        if n and n % 2 == 0:
            parts.append(rect(4, y - 14, ends[-1], LINE, PALE))
        head: dict[str, str | float | None] = {"font_weight": "600", "fill": SOFT} if n == 0 else {}
        for k, text in enumerate(row):
            x, anchor = (MARGIN, "start") if k == 0 else (ends[k] - MARGIN, "end")
            parts.append(words(text, x, y, 12, text_anchor=anchor, **head))
    parts.append(path(f"M{to(4, top + 19)}H{to(ends[-1] + 4)}", SOFT))
    return "".join(parts)
