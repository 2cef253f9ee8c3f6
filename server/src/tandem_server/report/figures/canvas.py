"""A sheet as one SVG that stands alone: light ground, fixed colours, its own letters' sizes. Numbers and escaped texts only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tandem_server.report.figures import shapes, table_shape
from tandem_server.report.figures.elements import element, path, rect, to, words
from tandem_server.report.figures.hues import GRID, INK, SOFT, Hues
from tandem_server.report.figures.layout import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TITLED,
    WIDE,
    WIDTHS,
    above,
    columns,
    legend,
    wide,
)
from tandem_server.report.figures.marks import Bars, Boxes, Cells, Mark
from tandem_server.report.figures.scale import Scale
from tandem_server.report.figures.sheet import Panel, Sheet

FONT = "system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans','DejaVu Sans',sans-serif"


def svg(sheet: Sheet, title: str) -> str:
    """The whole picture; ``title`` is what it is called for those who do not see it."""
    across = columns(sheet)
    tables = [mark for panel in sheet.panels for mark in panel.marks if isinstance(mark, Cells)]
    each = max([WIDE if sheet.wide else WIDTHS[across], *map(table_shape.width, tables)])
    head = above(sheet)
    high = max(table_shape.height(t) + head for t in tables) if tables else HEIGHT - TITLED + head
    width = each * across
    entries, top = legend(sheet, width)
    height = top + -(-len(sheet.panels) // across) * high
    hues = Hues(sheet)
    parts = [rect(0, 0, width, height, "#fff"), *(shapes.key(entry, hues) for entry in entries)]
    for n, panel in enumerate(sheet.panels):
        place = f"translate({to(n % across * each, top + n // across * high)})"
        parts.append(
            element("g", "".join(_panel(panel, _alike(panel, sheet), hues, each, high, head)), transform=place)
        )
    return element(
        "svg",
        "".join(parts),
        xmlns="http://www.w3.org/2000/svg",
        class_="paper",
        viewBox=f"0 0 {to(width, height)}",
        width=width,
        height=height,
        role="img",
        aria_label=title,
        font_family=FONT,
        font_size=12,
        fill=INK,
    )


def _panel(panel: Panel, scaled: Sequence[Panel], hues: Hues, width: float, height: float, top: float) -> Iterator[str]:
    tables = [mark for mark in panel.marks if isinstance(mark, Cells)]
    if panel.heading:
        left = table_shape.MARGIN if tables else LEFT
        yield words(_cut(panel.heading, width - left), left, 17, font_weight="600")
    for table in tables:
        yield _group(table, table_shape.drawn(table, top))
    if tables:
        return
    reach = [place for one in scaled for mark in one.marks for place in mark.reach()]
    x = panel.x.fitted([a for a, _ in reach], LEFT + 2, width - RIGHT)
    # Sample sizes stand above their bars.
    head = 0.16 if any(isinstance(m, Bars | Boxes) for m in panel.marks) else 0.06
    y = panel.y.fitted([b for _, b in reach], height - BOTTOM, top, head)
    yield from _frame(panel, x, y, width, height, top)
    places = shapes.Places(x, y, top, height - BOTTOM)
    order = list(dict.fromkeys(m.series for m in panel.marks if isinstance(m, Bars | Boxes)))
    gap = shapes.nearest(x, panel.marks)
    for mark in panel.marks:
        nth = order.index(mark.series) if mark.series in order else 0
        yield _group(mark, shapes.shape(mark, places, hues, nth, max(1, len(order)), gap))


def _alike(panel: Panel, sheet: Sheet) -> list[Panel]:
    """Whose values its scales hold: the same panel of every part, so that parts can be compared by eye; else its own."""
    return [
        p for p in sheet.panels if p is panel or (panel.part and (p.title, p.x, p.y) == (panel.title, panel.x, panel.y))
    ]


def _cut(heading: str, room: float) -> str:
    """One that a part's name makes too long; the CSV has all of it."""
    while len(heading) > 1 and wide(heading, 14) > room:  # it is bold
        heading = f"{heading[:-2]}…"
    return heading


def _group(mark: Mark, drawn: str) -> str:
    """What a mark is: a program finds its numbers' count again in the picture."""
    count = sum(1 for _ in mark.rows())
    return element("g", drawn, data_mark=type(mark).__name__.lower(), data_series=mark.series, data_rows=count)


def _frame(panel: Panel, x: Scale, y: Scale, width: float, height: float, top: float) -> Iterator[str]:
    floor = height - BOTTOM
    for at, word in y.ticks():
        yield path(f"M{to(LEFT, at)}H{to(width - RIGHT)}", GRID)
        yield words(word, LEFT - 6, at + 4, 11, text_anchor="end", fill=SOFT)
    yield path(f"M{to(LEFT, top)}V{to(floor)}H{to(width - RIGHT)}", SOFT)
    yield from _names(x.ticks(), floor, width)
    yield words(panel.x.name, (LEFT + width - RIGHT) / 2, height - 7, text_anchor="middle")
    turned = f"translate({to(13, (top + floor) / 2)}) rotate(-90)"
    yield words(panel.y.name, 0, 0, transform=turned, text_anchor="middle")


def _names(found: Sequence[tuple[float, str]], floor: float, width: float) -> Iterator[str]:
    """Words under the axis: in two lines, or each second one only, where they would touch each other."""
    room = (width - LEFT - RIGHT) / max(1, len(found))
    broken = [_broken(word, room) for _, word in found]
    every = 1 + any(wide(part, 11) > room for parts in broken for part in parts) * (len(found) > 3)
    for n, ((at, _), parts) in enumerate(zip(found, broken, strict=True)):
        yield path(f"M{to(at, floor)}v4", SOFT)
        if n % every == 0:
            for line, part in enumerate(parts):
                yield words(part, at, floor + 16 + line * 12, 11, text_anchor="middle", fill=SOFT)


def _broken(word: str, room: float) -> list[str]:
    if wide(word, 11) <= room or " " not in word:
        return [word]
    parts = word.split(" ")
    at = min(range(1, len(parts)), key=lambda n: max(wide(" ".join(parts[:n])), wide(" ".join(parts[n:]))))
    return [" ".join(parts[:at]), " ".join(parts[at:])]
