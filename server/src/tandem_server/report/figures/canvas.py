"""A sheet drawn by matplotlib: where its panels, axes and legend go. ``shapes.py`` draws the marks, ``svg.py`` makes the SVG fit.

matplotlib keeps its settings and fonts in one place of the process: one picture is drawn at a time, under a lock, with the settings of
``print.mplstyle`` and no others, which are put back. Lengths are px of the page, 96 an inch."""

from __future__ import annotations

import io
import math
import threading
import warnings
from collections.abc import Sequence
from importlib.resources import files
from typing import NamedTuple, TypeVar

from matplotlib import style
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text
from matplotlib.ticker import NullLocator

from tandem_server.report.figures import marks, shapes, svg
from tandem_server.report.figures.marks import Mark
from tandem_server.report.figures.shapes import Ends, wide
from tandem_server.report.figures.sheet import Axis, Hues, Panel, Picture, Sheet, named
from tandem_server.report.words import plain, visible

T = TypeVar("T")

HEIGHT, LEFT, RIGHT, BOTTOM = 262, 58, 14, 54
TITLED, UNTITLED = 28, 12
"""What is above a panel's frame."""
WIDTHS = {1: 470, 2: 400, 3: 316}
WIDE, PAGE = 900, 1072
LIVE_LEFT, LIVE_HEIGHT, LIVE_TITLED, LIVE_BOTTOM = 78, 150, 24, 40
ROW, LINE, MARGIN = 17, 20, 8
"""Of the legend, and of a table; beside a table's words."""
MOST = 80
"""Letters of a name in the legend."""
_DRAWING = threading.Lock()
_STYLE = files("tandem_server.report.figures").joinpath("print.mplstyle")


class _Frame(NamedTuple):
    left: float
    top: float
    width: float
    height: float


def picture(sheet: Sheet, title: str, *, pdf: bool) -> Picture:
    """``sheet.picture`` says what it is."""
    with _DRAWING, warnings.catch_warnings(), style.context(["default", str(_STYLE)]):
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # a name in letters that DejaVu has not
        figure, live = _figure(sheet)
        drawn, printed = io.StringIO(), io.BytesIO()
        figure.savefig(drawn, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
        if pdf:
            figure.savefig(printed, format="pdf", metadata={"CreationDate": None, "Title": visible(title)})
    named = {_tag(p, m): mark for p, panel in enumerate(sheet.panels) for m, mark in enumerate(panel.marks)}
    return Picture(svg.cleaned(drawn.getvalue(), visible(title), named, live), printed.getvalue())


def _tag(panel: int, mark: int) -> str:
    return f"mark-{panel}-{mark}"


def _figure(sheet: Sheet) -> tuple[Figure, list[svg.Window]]:
    """And of a live sheet what the script needs to know of each panel."""
    entries = _entries(sheet)
    frames, size, ncols = _frames(sheet, [wide(text) + 46 for _, text in entries])
    figure, hues = Figure(figsize=(size[0] / 96, size[1] / 96)), Hues(sheet)
    live = []
    for p, (panel, frame) in enumerate(zip(sheet.panels, frames, strict=True)):
        place = frame.left / size[0], 1 - (frame.top + frame.height) / size[1]
        ax = figure.add_axes((*place, frame.width / size[0], frame.height / size[1]), gid=f"panel-{p}")
        limits = _axes(ax, panel, sheet, frame, last=p == len(sheet.panels) - 1)
        _marks(ax, p, panel, hues, frame, limits)
        if sheet.live:
            unit = panel.y.name.rpartition(", ")[2]
            live.append(svg.Window(tuple(n * 0.75 for n in frame), *limits, panel.y.log, unit))
    if entries:
        entries = [entry for column in _columns(entries, ncols) for entry in column]
        signs = [_sign(mark, hues) for mark, _ in entries]
        place = (4 / size[0], 1 - 2 / size[1])
        legend = figure.legend(signs, ["-"] * len(signs), loc="upper left", bbox_to_anchor=place, ncols=ncols)
        for word, (_, text) in zip(legend.get_texts(), entries, strict=True):
            word.set_text(text)  # a label that begins with "_" would be left out
    for one in figure.findobj():
        if isinstance(one, Text):
            one.set_text("\n".join(visible(line) for line in one.get_text().split("\n")))
    return figure, live


def _frames(sheet: Sheet, words: Sequence[float]) -> tuple[list[_Frame], tuple[float, float], int]:
    """Each panel's frame, the whole, and the columns of the legend, whose entries are ``words`` wide."""
    count = len(sheet.panels)
    across = 1 if sheet.live else count if count <= 3 else 2 if count == 4 else 3
    tables = [mark for panel in sheet.panels for mark in panel.marks if isinstance(mark, marks.Cells)]
    tables_wide = (sum(shapes.table_widths(table)) + 2 * MARGIN for table in tables)
    stacks = [mark for panel in sheet.panels for mark in panel.marks if isinstance(mark, marks.Stacks)]
    each = PAGE if sheet.live else PAGE / 2 if stacks else max(WIDE if sheet.wide else WIDTHS[across], *tables_wide, 0)
    ncols = next((n for n in range(len(words), 1, -1) if sum(map(max, _columns(words, n))) <= each * across - 8), 1)
    top = -(-len(words) // ncols) * ROW + 8.0 if words else 4.0
    left, right = (0, 0) if tables else shapes.STACKS if stacks else (LIVE_LEFT, 6) if sheet.live else (LEFT, RIGHT)
    head = TITLED if any(panel.heading for panel in sheet.panels) else UNTITLED
    frames = []
    for row in range(0, count, across):
        panels = sheet.panels[row : row + across]
        if tables:
            high = LINE * (max(len(m.texts) for p in panels for m in p.marks if isinstance(m, marks.Cells)) + 1) + 6
            below = 8
        elif sheet.live:
            head = LIVE_TITLED if panels[0].heading else 6
            high, below = panels[0].height or LIVE_HEIGHT, LIVE_BOTTOM if row + across >= count else 4
        else:
            high = max(p.height for p in panels) or HEIGHT - TITLED - BOTTOM
            below = BOTTOM if any(p.x.name for p in panels) else BOTTOM - 12
        frames += [_Frame(n * each + left, top + head, each - left - right, high) for n in range(len(panels))]
        top += head + high + below
    return frames, (each * across, top), ncols


def _columns(entries: Sequence[T], count: int) -> list[Sequence[T]]:
    """For a legend that reads along its rows: matplotlib fills it down its columns, of which the first have one more."""
    return [entries[n::count] for n in range(count)]


# --- axes


def _axes(ax: Axes, panel: Panel, sheet: Sheet, frame: _Frame, *, last: bool) -> tuple[Ends, Ends]:
    """Scales, ticks and names; the ends of both axes."""
    if any(isinstance(mark, marks.Cells) for mark in panel.marks):
        ax.set(xlim=(0, frame.width), ylim=(frame.height, 0))
        ax.set_axis_off()
        if panel.heading:
            ax.text(MARGIN, -10, _cut(panel.heading, frame.width - 2 * MARGIN), size="large")
        return (0, frame.width), (0, frame.height)
    # The same panel of every part has the same scales, so that parts can be compared by eye.
    alike = [p for p in sheet.panels if panel.part and (p.title, p.x, p.y) == (panel.title, panel.x, panel.y)]
    reach = [place for p in alike or [panel] for mark in p.marks for place in mark.reach()]
    # Sample sizes stand above their bars.
    head = 0.16 if any(isinstance(m, marks.Bars | marks.Boxes) for m in panel.marks) else 0.06
    across = _with_room_beside(panel, panel.x.ends([x for x, _ in reach]), frame.width)
    limits = across, panel.y.ends([y for _, y in reach], head)
    ax.set(xscale="log" if panel.x.log else "linear", yscale="log" if panel.y.log else "linear")
    for axis, (low, high), of, name in ((ax.xaxis, limits[0], panel.x, "x"), (ax.yaxis, limits[1], panel.y, "y")):
        ends = (high, low) if of.flipped else (low, high)
        ax.set_xlim(*ends) if name == "x" else ax.set_ylim(*ends)
        ticks = of.ticks(low, high)
        told = [visible(word) for _, word in ticks]
        axis.set_ticks([at for at, _ in ticks], _fitting(told, frame.width, of) if name == "x" else told)
        axis.set_minor_locator(NullLocator())
    ax.set_title(_cut(panel.heading, frame.width + RIGHT))
    two = any("\n" in word.get_text() for word in ax.get_xticklabels())
    ax.xaxis.set_label_coords(0.5, -(36 if two else 24) / frame.height)
    ax.xaxis.label.set(text=panel.x.name, va="top")
    ax.yaxis.set_label_coords((13 - (LIVE_LEFT if sheet.live else LEFT)) / frame.width, 0.5)
    ax.yaxis.label.set(text="" if panel.y.names else panel.y.name, va="center")
    if sheet.live:
        ax.xaxis.set_gid("time-axis")
        ax.tick_params(axis="x", length=0, labelbottom=last)
        ax.xaxis.label.set(visible=last)
        ax.yaxis.set_label_coords((16 - LIVE_LEFT) / frame.width, 0.5)
    if panel.y.names:
        ax.grid(visible=False)
        ax.spines["left"].set_visible(not any(isinstance(mark, marks.Bands | marks.Stacks) for mark in panel.marks))
    return limits


def _with_room_beside(panel: Panel, ends: Ends, width: float) -> Ends:
    """An axis of numbers reaches so far that what stands beside its first and last place is within the panel, with its sample size."""
    places = [x for x in shapes.places_beside(panel.marks) if x > 0 or not panel.x.log]
    if panel.x.names or not places:
        return ends
    low, high, first, last = (math.log10(v) if panel.x.log else v for v in (*ends, places[0], places[-1]))
    scale = width / (high - low)
    px = [((math.log10(x) if panel.x.log else x) - low) * scale for x in places]
    series = len(_beside(panel))
    group = shapes.slot_of(px, width, series) * series
    share = min(0.25, (group / 2 + wide("n=1", shapes.SMALL) / 2) / width)
    room = share * (high - low) / (1 - 2 * share)
    low, high = min(low, first - room), max(high, last + room)
    return (10.0**low, 10.0**high) if panel.x.log else (low, high)


def _beside(panel: Panel) -> list[str]:
    """Series of bars or boxes, in order."""
    return list(dict.fromkeys(m.series for m in panel.marks if isinstance(m, marks.Bars | marks.Boxes)))


def _fitting(words: Sequence[str], width: float, of: Axis) -> list[str]:
    """Names in two lines, or each second one only, where they would touch each other."""
    room = width / max(1, len(words))
    broken = [_broken(word, room) if of.names else word for word in words]
    tight = len(words) > 3 and any(wide(line, 8.25) > room for word in broken for line in word.split("\n"))
    return ["" if tight and n % 2 else word for n, word in enumerate(broken)]


def _broken(word: str, room: float) -> str:
    if wide(word, 8.25) <= room or " " not in word:
        return word
    parts = word.split(" ")
    at = min(range(1, len(parts)), key=lambda n: max(wide(" ".join(parts[:n])), wide(" ".join(parts[n:]))))
    return f"{' '.join(parts[:at])}\n{' '.join(parts[at:])}"


def _cut(heading: str, room: float) -> str:
    """One that a part's name makes too long; the CSV has all of it."""
    heading = visible(heading)
    while len(heading) > 1 and wide(heading, 9.5) > room:
        heading = f"{heading[:-2]}…"
    return heading


# --- marks and their legend


def _marks(ax: Axes, p: int, panel: Panel, hues: Hues, frame: _Frame, limits: tuple[Ends, Ends]) -> None:
    at = shapes.At(
        ax, hues, panel.x, panel.y, limits[0], limits[1], frame.width, frame.height, _beside(panel), panel.marks
    )
    for m, mark in enumerate(panel.marks):
        before = set(ax.get_children())
        shapes.shape(mark, at)
        for artist in ax.get_children():
            if artist not in before:
                artist.set(gid=_tag(p, m), zorder=2 + m / 1000)  # what belongs together is drawn together


def _entries(sheet: Sheet) -> list[tuple[Mark, str]]:
    """The first mark of each series, with its words and sample sizes: the range over all panels where these are not at the marks."""
    found: dict[str, list[Mark]] = {}
    for mark in (mark for panel in sheet.panels for mark in panel.marks if named(mark)):
        found.setdefault(mark.series, []).append(mark)
    told = []
    for series, own in found.items():
        counts = [n for mark in own for n in _counts(mark)]
        span = f"{min(counts)}" if len(set(counts)) == 1 else f"{min(counts)}–{max(counts)}" if counts else ""
        told.append((own[0], f"{plain(series, MOST)} (n={span})" if span else plain(series, MOST)))
    return told


def _counts(mark: Mark) -> list[int]:
    if isinstance(mark, marks.Line):
        return [] if mark.n is None else [mark.n]
    if isinstance(mark, marks.Curve):
        return [e.n for _, e in mark.points]
    return [mark.of.n] if isinstance(mark, marks.Oval) else []


def _sign(mark: Mark, hues: Hues) -> Artist:
    hue = hues.of(mark.series)
    match mark:
        case marks.Area():
            return Patch(facecolor=hue, alpha=0.4 if mark.faint else 1.0)
        case marks.Moments():
            return Line2D([], [], color=hue, linewidth=0, marker="|", markersize=9, markeredgewidth=1.2)
        case marks.Dots():
            return Line2D([], [], color=hue, linewidth=0, marker="o")
        case marks.Trace():
            return Line2D([], [], color=hue, alpha=0.55 if mark.faint else 1.0)
        case marks.Line() | marks.Curve():
            dashed = mark.dashed or (isinstance(mark, marks.Line) and mark.bound)
            marker = hues.form(mark.series) if isinstance(mark, marks.Curve) else ""
            return Line2D([], [], color=hue, linestyle="--" if dashed else "-", linewidth=2, marker=marker)
        case _:
            return Line2D([], [], color=hue, linewidth=2, marker="s", markersize=6)
