"""The pictures of the reproductions: a figure of small panels, medians with their quartiles, axes with units."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from trends import Spread

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
"""Told apart by everybody (Okabe and Ito)."""


@contextmanager
def picture(path: Path, title: str, foot: str, rows: int, columns: int) -> Iterator[list[Axes]]:
    """Panels to draw in; written to ``path`` when all is drawn. ``foot``: what it was measured with, in the title."""
    # Text stays text and ids follow from the content: the picture is small, and the same twice.
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "tandem", "font.size": 9}):
        figure = Figure(figsize=(4.4 * columns + 0.4, 3.1 * rows + 0.9), layout="constrained")
        panels = list(np.ravel(figure.subplots(rows, columns, squeeze=False)))
        for axis in panels:
            axis.grid(visible=True, lw=0.3)
        yield panels
        figure.suptitle(f"{title}\n{foot}", fontsize=9)
        figure.savefig(path, dpi=110, metadata={"Date": None} if path.suffix == ".svg" else None)


def with_quartiles(
    axis: Axes,
    x: Sequence[float],
    values: Sequence[Spread],
    name: str,
    colour: str,
    style: str = "-",
    aside: float = 0.0,
) -> None:
    """A line through the medians, from quartile to quartile at each point. ``aside``: moves it by so much of the axis, so that lines
    which coincide are all seen."""
    there = [(a + aside, s) for a, s in zip(x, values, strict=True) if s.n]
    if not there:
        return
    at = [a for a, _ in there]
    middle = [s.median for _, s in there]
    low = [s.median - s.q1 for _, s in there]
    high = [s.q3 - s.median for _, s in there]
    axis.errorbar(
        at, middle, yerr=[low, high], label=name, color=colour, ls=style, marker="o", ms=3.5, lw=1.2, elinewidth=0.8, capsize=2
    )  # fmt: skip


def points(axis: Axes, x: float, values: Sequence[float], colour: str, width: float) -> None:
    """Every value as a faint dot around ``x``, spread evenly over ``width``, so that none hides another."""
    if not values:
        return
    places = np.linspace(x - width / 2, x + width / 2, len(values)) if len(values) > 1 else [x]
    axis.plot(places, values, "o", color=colour, ms=3.5, alpha=0.6, mew=0)


def zero(axis: Axes) -> None:
    """The line that parts gain from loss."""
    axis.axhline(0, color="#000000", lw=0.8)


def one_legend(axis: Axes) -> None:
    """Below all panels, of what is drawn in ``axis``."""
    assert isinstance(axis.figure, Figure)
    handles, names = axis.get_legend_handles_labels()
    axis.figure.legend(handles, names, loc="outside lower center", ncols=min(6, len(names)), fontsize=8)


def labelled(axis: Axes, title: str, x: str, y: str, legend: str | None = "best") -> None:
    """Title and axes with their units; the legend's place, None for none."""
    axis.set_title(title, fontsize=9)
    axis.set_xlabel(x)
    axis.set_ylabel(y)
    if legend is not None:
        axis.legend(loc=legend, fontsize=7)
