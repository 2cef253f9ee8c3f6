"""Colours and forms of series: Okabe and Ito's colours, which colour-blind readers tell apart; each form comes again after four.
The page's ``style.css`` has a light one at night for each."""

from __future__ import annotations

from tandem_server.report.figures.marks import Bands, Cells, Forest, Heat, Level, Mark, Shade, Stacks
from tandem_server.report.figures.sheet import Sheet

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


def of_operators(names: list[str]) -> dict[str, str]:
    """Each operator's colour, also of what goes over it by TCP; a fifth shares the fourth's."""
    found = {"MPTCP": MPTCP}
    for n, name in enumerate(names):
        found[name] = found[f"TCP {name}"] = OPERATORS[min(n, len(OPERATORS) - 1)]
    return found
