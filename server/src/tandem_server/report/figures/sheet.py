"""A figure as drawn: panels with axes and marks, their colours, and what they say as CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tandem_server.report.figures.marks import Bands, Cells, Forest, Heat, Level, Mark, Number, Shade, Stacks

_FURTHEST = 300.0
"""Powers of ten that a logarithmic axis reaches to."""


@dataclass(frozen=True, slots=True)
class Axis:
    """``name`` ends in the unit. ``names``: places with a name each, 0, 1, …. ``low``, ``high``: fixed ends; else those of the values, with
    ``zero`` among them. ``flipped``: great values at the beginning."""

    name: str
    log: bool = False
    names: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    zero: bool = False
    flipped: bool = False
    bytes: bool = False

    def ends(self, values: Iterable[float], head: float = 0.05) -> tuple[float, float]:
        """So that every value lies between them; values that a logarithm has not are left out. ``head``: room above the greatest."""
        if self.names:
            return -0.5, len(self.names) - 0.5
        if self.log:
            known = [min(math.log10(v), _FURTHEST) for v in values if v > 0]
            low = min(known, default=0.0) if self.low is None else math.log10(self.low)
            high = max(known, default=1.0) if self.high is None else math.log10(self.high)
            if high - low < 0.3:
                low, high = low - 0.3, high + 0.3
            long = high - low
            low, high = low - (0.04 * long if self.low is None else 0), high + (head * long if self.high is None else 0)
            return 10.0**low, 10.0**high
        known = [*values, *([0.0] if self.zero else [])]
        low = min(known, default=0.0) if self.low is None else self.low
        high = max(known, default=1.0) if self.high is None else self.high
        if high <= low:
            low, high = (low - 0.5 if self.low is None else low), low + max(0.5, abs(low) * 1e-9)
        long = high - low
        low -= 0.06 * long if self.low is None and low != 0 else 0
        return low, high + (head * long if self.high is None and high != 0 else 0)

    def ticks(self, low: float, high: float) -> list[tuple[float, str]]:
        """Values between the ends, and their words."""
        if self.names:
            return [(float(n), name) for n, name in enumerate(self.names)]
        if not self.log:
            return [(v, short(v)) for v in rounds(low, high)]
        span = math.log10(high / low) if high / low < math.inf else 2 * _FURTHEST
        wanted = (1,) if span > 2.2 else (1, 3) if span > 1.2 else (1, 2, 5)
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        values = [v for p in powers for m in wanted if low * 0.999 <= (v := m * 10.0**p) <= high * 1.001]
        written = size if self.bytes else short
        return [(v, written(v)) for v in values[:: math.ceil(len(values) / 7)]] if values else []


def rounds(low: float, high: float, most: float = 5.5) -> list[float]:
    """Three to six round numbers between ``low`` and ``high``."""
    step = 10.0 ** math.floor(math.log10((high - low) / 4))
    step *= next(m for m in (1, 2, 5, 10, 20) if (high - low) / (step * m) <= most)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [n * step for n in range(first, last + 1)]


def short(value: float) -> str:
    """Three figures, with k, M or G for large ones."""
    for factor, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= factor:
            return f"{value / factor:.3g}{letter}".replace("-", "−")
    return f"{value:.3g}".replace("-", "−")


def size(count: float) -> str:
    """Bytes in decimal units, without a space between."""
    for factor, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= factor:
            return f"{count / factor:.4g} {unit}"
    return f"{count:.4g} B"


def binary_size(count: float) -> str:
    """Bytes as the papers with sizes of powers of two write them: 8 KB are 8192."""
    for factor, unit in ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")):
        if count >= factor and count % (factor >> 2) == 0:
            return f"{count / factor:.4g} {unit}"
    return size(count)


def round_top(values: Sequence[float]) -> float:
    """A round end of an axis, a little above the greatest, which counts as 1 where it is less."""
    top = max([1.0, *values])
    step = 10.0 ** math.floor(math.log10(top)) / 2
    return math.ceil(top * 1.04 / step) * step


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


INK, SOFT, GRID, PALE, PAPER, GREY = "#1b1f24", "#5c6570", "#e3e6ea", "#eef1f4", "#ffffff", "#c9d0d8"
BAD = "#b3261e"
OPERATORS = ("#0072b2", "#d55e00", "#cc79a7", "#56b4e9")
MPTCP = "#009e73"
OTHERS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#7f6a00")
FORMS = ("o", "s", "^", "D")


class Hues:
    """By name of series: those that the sheet fixes, the others in order of appearance."""

    def __init__(self, sheet: Sheet) -> None:
        names = list(dict.fromkeys(m.series for panel in sheet.panels for m in panel.marks if named(m)))
        fixed = dict(sheet.hues)
        free = [hue for hue in OTHERS if hue not in fixed.values()] or list(OTHERS)
        others = [name for name in names if name not in fixed]
        self._of = {**fixed, **{name: free[n % len(free)] for n, name in enumerate(others)}}
        self._form = {name: FORMS[n % len(FORMS)] for n, name in enumerate(names)}

    def of(self, series: str) -> str:
        """A colour."""
        return self._of.get(series, INK)

    def form(self, series: str) -> str:
        """One of ``FORMS``."""
        return self._form.get(series, FORMS[0])


def named(mark: Mark) -> bool:
    """Whether it stands in the legend."""
    return mark.series != "" and not isinstance(mark, Forest | Heat | Shade | Level | Cells | Bands | Stacks)


def operator_hues(names: list[str]) -> dict[str, str]:
    """Each operator's colour, also of what goes over it by TCP; a fifth shares the fourth's."""
    found = {"MPTCP": MPTCP}
    for n, name in enumerate(names):
        found[name] = found[f"TCP {name}"] = OPERATORS[min(n, len(OPERATORS) - 1)]
    return found
