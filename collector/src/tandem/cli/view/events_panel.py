"""What happened, and the runs that are done."""

from __future__ import annotations

from typing import Any

from rich.console import Group
from rich.panel import Panel
from rich.text import Text

from tandem.cli.view import colours
from tandem.cli.view.figures import clock, duration, event_detail, kind_words, number, rate, size
from tandem.schema.grades import event_meaning


def events_panel(status: dict[str, Any], paths: dict[str, str], width: int, rows: int) -> Panel:
    """The newest events, newest first, as many as fit into ``rows``."""
    lines = [event_text(event, paths, width - 4) for event in reversed(status.get("events") or [])][:rows]
    return _panel("events", lines or [Text("none yet", colours.QUIET)])


def event_text(event: dict[str, Any], paths: dict[str, str], inner: int) -> Text:
    """One event in ``inner`` columns."""
    line = Text(clock(event.get("utc_ns")) + " ", colours.QUIET, no_wrap=True)
    if event.get("path"):
        line.append(f"{event['path']} ", f"bold {paths.get(str(event['path']), 'white')}")
    told = event_meaning(event.get("kind"), event.get("state"))
    line.append_text(colours.toned(told.words, told.tone))
    if detail := event_detail(event):
        line.append(f" {detail}", colours.QUIET)
    line.truncate(inner, overflow="ellipsis")
    return line


def finished_panel(status: dict[str, Any], paths: dict[str, str], width: int, rows: int) -> Panel:
    """The newest finished runs, newest first."""
    lines = [_finished(run, paths, width - 4) for run in reversed(status.get("finished") or [])][:rows]
    return _panel("finished runs", lines or [Text("none yet", colours.QUIET)])


def _finished(run: dict[str, Any], paths: dict[str, str], inner: int) -> Text:
    wide = inner >= 50
    ok, kind = bool(run.get("ok")), str(run.get("kind"))
    line = Text("✓ " if ok else "✗ ", colours.style("good") if ok else f"bold {colours.style('poor')}", no_wrap=True)
    line.append(f"{kind_words(run) if kind == 'any' else kind.upper()} ".ljust(6), "bold")
    line.append(f"{run.get('path')} ".ljust(3), f"bold {paths.get(str(run.get('path')), 'white')}")
    if not ok and not run.get("bytes"):
        line.append(str(run.get("failure") or "failed"), colours.style("poor"))
    else:
        line.append(rate(run.get("goodput_bit_per_s")).rjust(11), "bold")
        line.append(f"{size(run.get('bytes'))} ".rjust(10) if wide else " ", colours.QUIET)
        if wide:
            line.append(number(run.get("duration_s"), 1, " s") + " ", colours.QUIET)
        elif not run.get("fallback"):
            line.append(duration(run.get("duration_s")), colours.QUIET)
        if run.get("fallback"):  # its figures are TCP's
            line.append("fell back" if wide else "→ TCP", colours.style("fair"))
        if not ok:
            line.append(f" {run.get('failure') or 'failed'}", colours.style("poor"))
        elif wide:
            how = "at once" if run.get("pairing") == "simultaneous" else run.get("pairing")
            line.append(f" {how}" if run.get("fallback") else str(how), colours.QUIET)
    line.truncate(inner, overflow="ellipsis")
    return line


def _panel(title: str, lines: list[Text]) -> Panel:
    return Panel(Group(*lines), title=title, title_align="left", border_style=colours.QUIET, padding=(0, 1))
