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
    "axes.spines.top": False,
    "axes.spines.right": False,
}
COLOURS = {"idle": "#9ecae1", "measuring": "#4292c6", "peak": "#08306b"}


def draw(budgets: Sequence[Budget], hours_on: float, form: str) -> bytes:
    """As ``svg`` (text stays text) or ``png``. The same budgets, the same bytes."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8.0, 3.4), facecolor="white")
        currents, hours = figure.subplots(1, 2, gridspec_kw={"width_ratios": (1.25, 1)})
        figure.subplots_adjust(left=0.08, right=0.985, top=0.9, bottom=0.15, wspace=0.24)
        _currents(currents, budgets)
        _hours(hours, [one for one in budgets if one.battery_wh is not None], hours_on)
        out = io.BytesIO()
        figure.savefig(out, format=form, dpi=150, metadata={"Date": None, "Creator": None} if form == "svg" else None)
    return re.sub(rb"[ \t]+\n", b"\n", out.getvalue()) if form == "svg" else out.getvalue()


def _currents(axes: Axes, budgets: Sequence[Budget]) -> None:
    for offset, state in enumerate(STATES):
        places = [index + (offset - 1) * 0.25 for index in range(len(budgets))]
        axes.bar(places, [one.amps(state) for one in budgets], 0.25, color=COLOURS[state], label=state)
    lines: dict[str, Any] = {"supply": "-", "battery": ":"}
    for kind, line in lines.items():
        given = [(i, limit.limit_a) for i, one in enumerate(budgets) for limit in one.limits if limit.kind == kind]
        if given:
            at, amps = zip(*given, strict=True)
            axes.hlines(
                amps,
                [i - 0.42 for i in at],
                [i + 0.42 for i in at],
                colors="#d94801",
                linestyles=line,
                label=f"{kind} gives",
                linewidth=1.6,
            )
    axes.set_xticks(range(len(budgets)), [one.build.name for one in budgets])
    axes.set_ylabel("A at 5 V")
    axes.set_title("Current", loc="left", fontsize=10)
    axes.set_ylim(0, max(limit.limit_a for one in budgets for limit in one.limits if limit.kind != "standard") * 1.42)
    axes.legend(loc="upper left", ncols=2, frameon=False, fontsize=8)


def _hours(axes: Axes, budgets: Sequence[Budget], hours_on: float) -> None:
    shares, highest = [step / 50 for step in range(51)], 0.0
    for one, line in zip(budgets, ("-", "--", "-.", ":"), strict=False):
        hours = [(one.battery_wh or 0) / (s * one.watts["measuring"] + (1 - s) * one.watts["idle"]) for s in shares]
        highest = max(highest, *hours)
        (drawn,) = axes.plot([s * 100 for s in shares], hours, line, label=f"{one.build.name}, {one.battery}")
        axes.plot([one.share * 100], [one.battery_hours or 0.0], "o", color=drawn.get_color(), markersize=5)
    axes.axhline(hours_on, color="#777777", linewidth=0.8)
    axes.text(1, hours_on + highest * 0.015, f"a day on: {hours_on:g} h", color="#555555", fontsize=8)
    axes.set(xlim=(0, 100), ylim=(0, highest * 1.3 or 1), xlabel="time on that is measured, % (dot: the campaign)")
    axes.set_title("Hours per battery", loc="left", fontsize=10)
    if budgets:
        axes.legend(loc="upper right", frameon=False, fontsize=8)
