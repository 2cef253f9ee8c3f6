"""A played scenario as a table for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

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


def rendered(played: Played) -> str:
    """Phases by operator, then each operator's whole, then every handover. No line break at the end."""
    summary = played.summary()
    head = (
        f"{played.name}: {played.duration_s:g} s, seed {played.seed}, {summary['distance_m']:.0f} m, "
        f"moving {summary['moving_s']:g} s"
    )
    rows = [_HEAD, *_rows(summary)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(_HEAD))]
    table = [_line(row, widths) for row in rows]
    handovers = [
        f"  {e['t_s']:7.1f} s  {e['operator']}  {_cell(e['from_eci'])} → {_cell(e['to_eci'])}  {e['handover_kind']:6}  "
        f"{e['interruption_ms']:7.1f} ms, queue {e['queue']}, {e['cause']}"
        for e in played.of_type("handover")
    ]
    parts = [head, "", *table, "", f"handovers: {len(handovers)}", *handovers]
    return "\n".join(parts)


def _cell(eci: int) -> str:
    return f"{eci >> 8}/{eci & 255}"


def _line(row: tuple[str, ...], widths: list[int]) -> str:
    texts = (0, 1, 5)
    cells = (c.ljust(w) if i in texts else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True)))
    return "  ".join(cells).rstrip()


def _rows(summary: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    for phase in summary["phases"]:
        where = (
            phase["name"],
            phase["activity"],
            f"{phase['t_s']:g}",
            f"{phase['until_s']:g}",
            f"{phase['speed_m_s']:g}",
        )
        for operator, values in phase["operators"].items():
            yield (*where, operator, *_values(values))
            where = ("", "", "", "", "")
    whole = ("whole", "", "0", f"{summary['duration_s']:g}", "")
    for operator, values in summary["operators"].items():
        yield (*whole, operator, *_values(values))
        whole = ("", "", "", "", "")


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
