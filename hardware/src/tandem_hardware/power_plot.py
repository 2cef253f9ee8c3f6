"""The power budget drawn: current on the 5 V rail, and hours per battery over the share of the time that is measured. Needs matplotlib."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tandem_hardware.power import STATES, Budget

STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "tandem",
    "font.size": 9.0,
    "font.family": "sans-serif",
    "axes.spines.top": False,
    "axes.spines.right": False,
}
COLOURS = {"idle": "#9ecae1", "measuring": "#4292c6", "peak": "#08306b"}
LINES = ("-", "--", "-.", ":")
NEAR = 0.75
"""Points by which a drawn number may differ between machines whose fonts do."""


def draw(budgets: Sequence[Budget], hours_on: float, form: str) -> bytes:
    """As ``svg`` (text stays text) or ``png``. The same budgets, the same bytes."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8.0, 3.4), facecolor="white")
        currents, hours = figure.subplots(1, 2, gridspec_kw={"width_ratios": (1.25, 1)})
        figure.subplots_adjust(left=0.08, right=0.985, top=0.9, bottom=0.15, wspace=0.24)
        _currents(currents, budgets)
        _hours(hours, [one for one in budgets if one.battery_wh is not None], hours_on)
        out = io.BytesIO()
        metadata = {"Date": None, "Creator": None} if form == "svg" else {"Software": None}
        figure.savefig(out, format=form, dpi=150, metadata=metadata)
    drawn = out.getvalue()
    return re.sub(rb"[ \t]+\n", b"\n", drawn) if form == "svg" else drawn


def _currents(axes: Axes, budgets: Sequence[Budget]) -> None:
    width = 0.25
    for offset, state in enumerate(STATES):
        places = [index + (offset - 1) * width for index in range(len(budgets))]
        axes.bar(places, [one.amps(state) for one in budgets], width, color=COLOURS[state], label=state)
    for index, one in enumerate(budgets):
        for limit in one.limits:
            if limit.kind in ("supply", "battery"):
                solid = limit.kind == "supply"
                axes.plot(
                    [index - 0.42, index + 0.42], [limit.limit_a] * 2, color="#d94801", linewidth=1.6,
                    linestyle="-" if solid else ":",
                    label=("supply gives" if solid else "battery gives") if _first(budgets, one, limit.kind) else None,
                )  # fmt: skip
    axes.set_xticks(range(len(budgets)), [one.build.name for one in budgets])
    axes.set_ylabel("A at 5 V")
    axes.set_title("Current", loc="left", fontsize=10)
    axes.set_ylim(0, max(limit.limit_a for one in budgets for limit in one.limits if limit.kind != "standard") * 1.42)
    axes.legend(loc="upper left", ncols=2, frameon=False, fontsize=8)


def _first(budgets: Sequence[Budget], one: Budget, kind: str) -> bool:
    return next(b for b in budgets if any(limit.kind == kind for limit in b.limits)) is one


def _hours(axes: Axes, budgets: Sequence[Budget], hours_on: float) -> None:
    shares = [step / 50 for step in range(51)]
    highest = 0.0
    for one, line in zip(budgets, LINES, strict=False):
        held = one.battery_wh or 0.0
        hours = [held / (s * one.watts["measuring"] + (1 - s) * one.watts["idle"]) for s in shares]
        highest = max(highest, *hours)
        (drawn,) = axes.plot([s * 100 for s in shares], hours, line, label=f"{one.build.name}, {one.battery}")
        axes.plot([one.share * 100], [one.battery_hours or 0.0], "o", color=drawn.get_color(), markersize=5)
    axes.axhline(hours_on, color="#777777", linewidth=0.8)
    axes.text(1, hours_on + highest * 0.015, f"a day on: {hours_on:g} h", color="#555555", fontsize=8)
    axes.set_xlim(0, 100)
    axes.set_ylim(0, highest * 1.3 or 1)
    axes.set_xlabel("time on that is measured, % (dot: the campaign)")
    axes.set_title("Hours per battery", loc="left", fontsize=10)
    if budgets:
        axes.legend(loc="upper right", frameon=False, fontsize=8)


_WORDS = re.compile(rb">([^<]*)<")
_NUMBER = re.compile(rb"(?<![#\w])-?\d+(?:\.\d+)?")


def same_drawing(kept: bytes, fresh: bytes) -> str | None:
    """Whether two SVG files of ours show the same: words exactly, all else but numbers exactly, numbers within ``NEAR`` points."""
    if kept == fresh:
        return None
    if _WORDS.findall(kept) != _WORDS.findall(fresh):
        return "other words"
    if _NUMBER.sub(b"0", kept) != _NUMBER.sub(b"0", fresh):
        return "other shapes"
    was, now = _NUMBER.findall(kept), _NUMBER.findall(fresh)
    most = max((abs(float(a) - float(b)) for a, b in zip(was, now, strict=True)), default=0.0)
    return None if most <= NEAR else f"drawn {most:.1f} points elsewhere"
