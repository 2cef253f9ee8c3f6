"""A played scenario for people: a table of its phases and handovers, and a picture."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tandem_bench import BenchError
from tandem_bench.scenario.model import TICK_S
from tandem_bench.scenario.played import Played

_HEAD = (
    "",
    "",
    "from s",
    "to s",
    "m/s",
    "",
    "RSRP dBm",
    "handovers",
    "drops (>8 dB)",
    "out s",
    "down Mbit/s",
    "up",
    "RTT ms",
)
_TEXTS = (0, 1, 5)
_COLOURS = ("#0072b2", "#d55e00")
_MOST_POINTS = 600


class PictureError(BenchError):
    """matplotlib is missing, or the file's ending is none that it writes."""


def aligned(rows: Sequence[Sequence[str]], texts: Sequence[int]) -> list[str]:
    """Lines with their cells under each other; the columns ``texts`` to the left, the others to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(
            c.ljust(w) if i in texts else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def table(played: Played) -> str:
    """Phases by operator, then each operator's whole, then every handover. No line break at the end."""
    summary = played.summary()
    head = (
        f"{played.name}: {played.duration_s:g} s, seed {played.seed}, {summary['distance_m']:.0f} m, "
        f"moving {summary['moving_s']:g} s"
    )
    handovers = [
        f"  {e['t_s']:7.1f} s  {e['operator']}  {_cell(e['from_eci'])} → {_cell(e['to_eci'])}  {e['handover_kind']:6}  "
        f"{e['interruption_ms']:7.1f} ms, queue {e['queue']}, {e['cause']}"
        for e in played.of_type("handover")
    ]
    rows = aligned([_HEAD, *_rows(summary)], _TEXTS)
    return "\n".join([head, "", *rows, "", f"handovers: {len(handovers)}", *handovers])


def _cell(eci: int) -> str:
    return f"{eci >> 8}/{eci & 255}"


def _rows(summary: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    whole = {
        "name": "whole",
        "activity": "",
        "t_s": 0.0,
        "until_s": summary["duration_s"],
        "operators": summary["operators"],
    }
    for phase in [*summary["phases"], whole]:
        speed = f"{phase['speed_m_s']:g}" if "speed_m_s" in phase else ""
        where = (phase["name"], phase["activity"], f"{phase['t_s']:g}", f"{phase['until_s']:g}", speed)
        for operator, values in phase["operators"].items():
            yield (*where, operator, *_values(values))
            where = ("", "", "", "", "")


def _values(values: dict[str, Any]) -> tuple[str, ...]:
    level = values["rsrp_dbm"]
    return (
        "-" if level is None else f"{level['min']:.0f}…{level['max']:.0f}",
        f"{values['handovers']}",
        f"{values['signal_drops']} ({values['signal_drops_above_8_db']})",
        f"{values['outage_s']:.1f}",
        f"{values['down_bit_per_s'] / 1e6:.1f}",
        f"{values['up_bit_per_s'] / 1e6:.1f}",
        f"{values['rtt_ms']:.1f}",
    )


def picture(path: Path, size: tuple[float, float], draw: Callable[[Any], None]) -> None:
    """Write what ``draw`` puts on a matplotlib figure of ``size`` inches; the ending chooses the format (svg, png, pdf). PictureError or
    OSError when it cannot be done."""
    try:
        import matplotlib  # here: heavy, and needed for pictures only
        from matplotlib.figure import Figure
    except ImportError as error:
        raise PictureError(
            f"no picture without matplotlib ({error}); hint: pip install -r requirements/lock.txt, or apt install python3-matplotlib"
        ) from None
    if path.suffix.lower() not in (".svg", ".png", ".pdf"):
        raise PictureError(f"{path}: unknown kind of picture; end the name in .svg, .png or .pdf")
    # Text stays text and ids follow from the content: the picture is small, and the same twice.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "tandem", "font.size": 9}):
        figure = Figure(figsize=size, layout="constrained")
        draw(figure)
        figure.savefig(path, metadata={"Date": None} if path.suffix.lower() == ".svg" else None)


def draw(played: Played, path: Path) -> None:
    """Levels, capacities and speed over time, with handovers, drops and phases; as ``picture``."""
    picture(path, (9, 6.2), lambda figure: _draw(played, figure))


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
