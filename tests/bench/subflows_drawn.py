"""Download times by size and arm, as box plots on a logarithmic axis: the form of the paper's Figure 4."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("svg")  # no screen

from matplotlib import pyplot as plt

_COLOURS = ("#9aa5b1", "#c9ced6", "#4c8fd6", "#e07b39")


def size_text(count: int) -> str:
    """1024 bytes are a KB, as in the paper."""
    return f"{count >> 20} MB" if count >= 1 << 20 else f"{count >> 10} KB"


def drawn(rows: Sequence[dict[str, Any]], sizes: Sequence[int], arms: Sequence[str], file: Path) -> None:
    """Boxes: quartiles and median; whiskers: 10 and 90 %; dots: what lies outside."""
    mpl.rcParams["svg.hashsalt"] = "tandem"  # the same figures, the same file
    figure, axes = plt.subplots(figsize=(9, 4.5), layout="constrained")
    width = 0.8 / len(arms)
    for index, (arm, colour) in enumerate(zip(arms, _COLOURS, strict=True)):
        places, groups = [], []
        for place, size in enumerate(sizes):
            times = [
                r["measured"]["download_s"] for r in rows if (r["bytes"], r["arm"]) == (size, arm) and r["measured"]
            ]
            if times:
                places.append(place + (index - (len(arms) - 1) / 2) * width)
                groups.append(times)
        boxes = axes.boxplot(
            groups, positions=places, widths=width * 0.85, whis=(10, 90), patch_artist=True, manage_ticks=False,
            medianprops={"color": "black"}, flierprops={"marker": ".", "markersize": 3},
        )  # fmt: skip
        for box in boxes["boxes"]:
            box.set_facecolor(colour)
        axes.plot([], [], "s", color=colour, label=arm)
    axes.set_yscale("log")
    axes.set_xticks(range(len(sizes)), [size_text(size) for size in sizes])
    axes.set_ylabel("download time in s")
    axes.legend(ncols=len(arms), frameon=False, loc="upper left")
    axes.grid(axis="y", which="both", alpha=0.25)
    figure.savefig(file, format="svg", metadata={"Date": None})
    plt.close(figure)
