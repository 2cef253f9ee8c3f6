"""A drive and its replay in one picture: levels, events, goodputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tandem_bench.replayed.heard import Heard
from tandem_bench.scenario.plot import PlotError

_COLOURS = {"A": "#0072b2", "B": "#d55e00", "": "#444444"}
_EVENTS = {"signal_drop": "v", "handover": "o", "service_lost": "x", "mobility_start": ">", "mobility_stop": "s"}


def save(drive: Heard, replay: Heard, path: Path) -> None:
    """Write ``path`` (SVG). PlotError without matplotlib; OSError."""
    try:
        import matplotlib  # here: heavy, and needed for pictures only
        from matplotlib.figure import Figure
    except ImportError as error:
        raise PlotError(f"no picture without matplotlib ({error}); hint: pip install matplotlib") from None
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "tandem", "font.size": 9}):
        figure = Figure(figsize=(9, 7), layout="constrained")
        _draw(drive, replay, figure)
        figure.savefig(path, metadata={"Date": None})


def _draw(drive: Heard, replay: Heard, figure: Any) -> None:  # noqa: ANN401  matplotlib is imported late
    levels = figure.subplots(4, 1, sharex=True, height_ratios=(2, 2, 1.4, 2))
    for axis, operator in zip(levels[:2], ("A", "B"), strict=True):
        for heard, name, style in ((drive, "drive", "-"), (replay, "replay", "--")):
            of = sorted(heard.rsrp_dbm.get(operator, {}).items())
            axis.plot([t for t, _ in of], [v for _, v in of], style, lw=1, label=name, color=_COLOURS[operator],
                      alpha=1 if name == "drive" else 0.6)  # fmt: skip
        axis.set_ylabel(f"{operator}: RSRP, dBm")
        axis.legend(loc="lower left", fontsize=7)
    events, got = levels[2:]
    for height, heard in ((1, drive), (0, replay)):
        for (kind, operator), times in sorted(heard.events.items()):
            up = height + {"A": 0.15, "B": -0.15}.get(operator, 0.0)
            events.plot(times, [up] * len(times), _EVENTS[kind], ms=4, mfc="none", color=_COLOURS[operator],
                        label=kind.replace("_", " ") if height and operator != "B" else None)  # fmt: skip
    events.set_yticks([0, 1], ["replay", "drive"])
    events.set_ylim(-0.5, 2.2)  # the legend stands above
    if drive.events:
        events.legend(loc="upper right", fontsize=7, ncols=5)
    ways = {way: n for n, way in enumerate(dict.fromkeys(one.way for one in (*drive.downloads, *replay.downloads)))}
    for heard, style in ((drive, "-"), (replay, "--")):
        for one in heard.downloads:
            if one.goodput_bit_per_s is not None:
                rate = one.goodput_bit_per_s / 1e6
                got.plot([one.t_s, one.end_s], [rate, rate], style, lw=2, color=f"C{ways[one.way]}")
    for way, n in ways.items():
        got.plot([], [], color=f"C{n}", label=way)
    if ways:
        got.legend(loc="upper right", fontsize=7, ncols=3)
    got.set_ylabel("goodput, Mbit/s")
    got.set_ylim(bottom=0)
    got.set_xlabel("s since the drive’s beginning; drive solid, replay dashed")
