"""A played scenario as a picture: levels, capacities and speed over time, with handovers, drops and phases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tandem_bench.scenario.model import TICK_S
from tandem_bench.scenario.played import Played

_COLOURS = ("#0072b2", "#d55e00")
_MOST_POINTS = 600


class PlotError(RuntimeError):
    """matplotlib is missing, or the file's ending is none that it writes."""


def save(played: Played, path: str | Path) -> None:
    """Write the picture; the ending chooses the format (svg, png, pdf). PlotError or OSError when it cannot be done."""
    try:
        import matplotlib  # here: heavy, and needed for pictures only
        from matplotlib.figure import Figure
    except ImportError as error:
        raise PlotError(
            f"no picture without matplotlib ({error}); hint: pip install -r requirements/runtime.txt, or apt install python3-matplotlib"
        ) from None
    path = Path(path)
    if path.suffix.lower() not in (".svg", ".png", ".pdf"):
        raise PlotError(f"{path}: unknown kind of picture; end the name in .svg, .png or .pdf")
    # Text stays text and ids follow from the content: the picture is small, and the same twice.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "tandem", "font.size": 9}):
        figure = Figure(figsize=(9, 6.2), layout="constrained")
        _draw(played, figure)
        figure.savefig(path, metadata={"Date": None} if path.suffix.lower() == ".svg" else None)


def _draw(played: Played, figure: Any) -> None:  # noqa: ANN401 - matplotlib is imported late, its types are not at hand
    level, down, up, speed = figure.subplots(4, 1, sharex=True, height_ratios=(3, 2.2, 1.6, 1))
    first = next(iter(played.operators.values()))
    step = max(1, len(first) // _MOST_POINTS)
    t = [i * TICK_S for i in range(0, len(first), step)]
    for (operator, timeline), colour in zip(played.operators.items(), _COLOURS, strict=False):
        columns = timeline.columns
        rsrp = [float("nan") if v is None else v for v in columns["rsrp_dbm"]]
        level.plot(t, rsrp[::step], color=colour, lw=0.9, label=operator)
        for axis, name in ((down, "down_bit_per_s"), (up, "up_bit_per_s")):
            axis.plot(t, [v / 1e6 for v in columns[name][::step]], color=colour, lw=0.9)
        handovers = played.of_type("handover", operator)
        where = [min(len(rsrp) - 1, round(e["t_s"] / TICK_S)) for e in handovers]
        level.plot([e["t_s"] for e in handovers], [rsrp[i] for i in where], "o", color=colour, ms=4, mfc="white")
        drops = played.of_type("signal_drop", operator)
        level.plot([e["t_s"] for e in drops], [e["to_dbm"] for e in drops], "v", color=colour, ms=3, alpha=0.6, lw=0)
    speed.plot(t, [v * 3.6 for v in first.columns["speed_m_s"][::step]], color="#444444", lw=0.9)
    for number, phase in enumerate(played.phases):
        for axis in (level, down, up, speed):
            axis.axvspan(phase["t_s"], phase["until_s"], color="#000000", alpha=0.05 if number % 2 else 0.0, lw=0)
        if len(played.phases) <= 12:
            middle = (phase["t_s"] + phase["until_s"]) / 2
            level.text(middle, 1.02, phase["name"], transform=level.get_xaxis_transform(), ha="center", va="bottom")
    for axis, text in ((level, "RSRP, dBm"), (down, "down, Mbit/s"), (up, "up, Mbit/s"), (speed, "km/h")):
        axis.set_ylabel(text)
        axis.margins(x=0)
        axis.grid(visible=True, lw=0.3)
    for axis in (down, up, speed):
        axis.set_ylim(bottom=0)
    level.legend(loc="lower left", title="operator (○ handover, ▼ drop)", ncols=2, fontsize=8, title_fontsize=8)
    speed.set_xlabel("s")
    figure.suptitle(f"{played.name}, {played.duration_s:g} s, seed {played.seed}")
