"""The status object as a full screen, from 80×24 up. Pure: the same status and size, the same picture."""

from __future__ import annotations

from typing import Any

from rich.layout import Layout
from rich.table import Table
from rich.text import Text

from tandem.cli.view import colours
from tandem.cli.view.events_panel import events_panel, finished_panel
from tandem.cli.view.figures import clock, duration, size
from tandem.cli.view.radio_panel import radio_panel
from tandem.cli.view.run_panel import lines_of_run, run_panel

NARROWEST, LOWEST = 60, 16


def screen(status: dict[str, Any], width: int, height: int) -> Layout:
    """The picture of ``status`` for a terminal of ``width`` columns and ``height`` rows."""
    modems = status.get("modems") or {}
    paths = colours.of_paths(sorted({*modems, *_paths_of_runs(status)}))
    run_rows = max(lines_of_run(status), 5 if height >= 22 else 1) + 2
    # The lower panels get what they can fill; the charts what is left.
    chart_rows = min(9, max(1, height - 2 - run_rows - 4 - (14 if height >= 32 else 9)))
    parts = [Layout(_header(status), size=1)]
    if modems:
        radio = Layout(size=chart_rows + 4)
        radio.split_row(
            *(
                Layout(radio_panel(path, modem, paths[path], width // len(modems), chart_rows))
                for path, modem in sorted(modems.items())
            )
        )
        parts.append(radio)
    parts.append(Layout(run_panel(status, paths, width), size=run_rows))
    lower_rows = height - 2 - run_rows - (chart_rows + 4 if modems else 0)
    if lower_rows >= 3:
        lower = Layout(minimum_size=3)
        half = width // 2 if width >= 100 else width * 3 // 5
        lower.split_row(
            Layout(events_panel(status, paths, half, lower_rows - 2), size=half),
            Layout(finished_panel(status, paths, width - half, lower_rows - 2)),
        )
        parts.append(lower)
    parts.append(Layout(_footer(status, width), size=1))
    whole = Layout()
    whole.split_column(*parts)
    return whole


def _paths_of_runs(status: dict[str, Any]) -> set[str]:
    found = {str(run.get("path")) for run in status.get("finished") or []}
    for run in (status.get("run") or {}).get("runs", []):
        found |= {str(s.get("path")) for s in run.get("subflows", []) if s.get("path")} | {str(run.get("path"))}
    return found


def _header(status: dict[str, Any]) -> Table:
    row = Table.grid(expand=True)
    row.add_column()
    row.add_column(justify="center")
    row.add_column(justify="right")
    left = Text.assemble((" Tandem ", "bold reverse"), " ", (str(status.get("probe")), "bold"))
    if status.get("mobile"):
        fast = f" ({status['speed_class']} speed)" if status.get("speed_class") else ""
        middle = Text(f"▶▶ MOVING for {duration(status.get('mobile_since_s'))}{fast}", "bold yellow")
    else:
        middle = Text("■ STANDING STILL", "bold green")
    right = Text(f"{clock(status.get('utc_ns'))}  up {duration(status.get('uptime_s'))} ", colours.QUIET)
    row.add_row(left, middle, right)
    return row


def _footer(status: dict[str, Any], width: int) -> Text:
    polls, spool = status.get("polls") or {}, status.get("spool") or {}
    if status.get("trouble"):
        text = Text(f" ! {status['trouble']}", "bold red")
        text.truncate(width, overflow="ellipsis")
        return text
    late, waiting, rejected = polls.get("late", 0), spool.get("pending", 0), spool.get("rejected", 0)
    text = Text(" polls ", colours.QUIET)
    text.append(str(polls.get("made", 0)))
    text.append(f" ({late} late)", "yellow" if late else colours.QUIET)
    text.append("  records " if width >= 100 else "  ", colours.QUIET)
    text.append(f"{spool.get('made', 0)}")
    text.append(" → ", colours.QUIET)
    text.append(f"{spool.get('sent', 0)} sent", "green")
    text.append(f", {waiting} waiting", "yellow" if waiting > 1000 else colours.QUIET)
    if rejected:
        text.append(f", {rejected} rejected", "bold red")
    if spool.get("path") and width >= 100:
        text.append(f" over {spool['path']}", colours.QUIET)
    text.append("  captures " if width >= 100 else "  pcap ", colours.QUIET)
    text.append(size(status.get("captures_bytes")))
    text.truncate(width, overflow="ellipsis")
    return text
