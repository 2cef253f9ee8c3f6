"""The status object as a full screen, from 60×16 up, and as a few lines below. Pure: the same status and size, the same picture."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.layout import Layout
from rich.text import Text

from tandem.cli.view import colours, ends
from tandem.cli.view.events_panel import event_text, events_panel, finished_panel
from tandem.cli.view.radio_panel import levels, path_text, radio_panel, state_text
from tandem.cli.view.run_panel import campaign_lines, full_bar, lines_of_run, run_lines, run_panel

NARROWEST, LOWEST = 60, 16
_PANEL = 3
"""Rows of the lowest panel that shows anything."""


def screen(status: dict[str, Any], width: int, height: int, silent_s: float | None = None) -> RenderableType:
    """The picture of ``status`` for a terminal of ``width`` columns and ``height`` rows. ``silent_s``: for how long the collector has
    said nothing, where that is too long."""
    modems = status.get("modems") or {}
    paths = colours.of_paths(sorted({*modems, *_paths_of_runs(status)}))
    if width < NARROWEST or height < LOWEST:
        return Group(*_few_lines(status, paths, width, height, silent_s))
    wrong = ends.wrong(status, width, 2 if height < 32 else 5)
    run_rows = max(lines_of_run(status), 5 if height >= 22 else 1) + 2
    # The lower panels get what they can fill; the charts what is left.
    outside = 2 + bool(status.get("health")) + len(wrong)
    most, lower = (9, 14) if height >= 32 else (3, 5)
    chart_rows = min(most, max(1, height - outside - run_rows - 4 - lower))
    parts = [Layout(ends.header(status, silent_s), size=1)]
    if modems:
        ways, each = status.get("paths") or {}, width // len(modems)
        radio = Layout(size=chart_rows + 4)
        radio.split_row(
            *(
                Layout(radio_panel(path, modem, ways.get(path), paths[path], each, chart_rows))
                for path, modem in sorted(modems.items())
            )
        )
        parts.append(radio)
    parts.append(Layout(run_panel(status, paths, width), size=run_rows))
    lower_rows = height - outside - run_rows - (chart_rows + 4 if modems else 0)
    if lower_rows >= _PANEL:
        last = Layout(minimum_size=_PANEL)
        half = width // 2 if width >= 100 else width * 3 // 5
        last.split_row(
            Layout(events_panel(status, paths, half, lower_rows - 2), size=half),
            Layout(finished_panel(status, paths, width - half, lower_rows - 2)),
        )
        parts.append(last)
    parts += [Layout(line, size=1) for line in wrong]
    if status.get("health"):
        parts.append(Layout(ends.health(status, width), size=1))
    parts.append(Layout(ends.footer(status, width), size=1))
    whole = Layout()
    whole.split_column(*parts)
    return whole


def _paths_of_runs(status: dict[str, Any]) -> set[str]:
    found = {str(run.get("path")) for run in status.get("finished") or []}
    for run in (status.get("run") or {}).get("runs", []):
        found |= {str(s.get("path")) for s in run.get("subflows", []) if s.get("path")} | {str(run.get("path"))}
    return found


def _few_lines(
    status: dict[str, Any], paths: dict[str, str], width: int, height: int, silent_s: float | None
) -> list[Text]:
    """No panels, what matters most first, as many lines as there are rows."""
    first = ends.movement(status).append(f"  {status.get('probe')}", "bold")
    lines = [Text("NO WORD FROM THE COLLECTOR", colours.ALARM) if silent_s is not None else first]
    lines += ends.wrong(status, width, 2)
    for path, modem in sorted((status.get("modems") or {}).items()):
        line = Text(f"{path} ", f"bold {paths[path]}").append_text(state_text(modem)).append(" ")
        away = path_text((status.get("paths") or {}).get(path))
        line.append_text(away if away is not None else levels(modem, width - line.cell_len))
        lines.append(line)
    run = status.get("run")
    lines += run_lines(run, paths, width, full_bar(run)) if run else campaign_lines(status)
    lines += [event_text(event, paths, width) for event in reversed(status.get("events") or [])]
    for line in lines:
        line.no_wrap = True
        line.truncate(width, overflow="ellipsis")
    return lines[:height]
