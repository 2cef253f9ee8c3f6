"""The rows above and below the panels: who and when, what is not well, records on their way."""

from __future__ import annotations

from typing import Any

from rich.table import Table
from rich.text import Text

from tandem.cli.view import colours
from tandem.cli.view.figures import clock, duration, size
from tandem.cli.view.health_text import Part, machine_parts, probe_parts
from tandem.schema.grades import meaning

_MORE = 5
"""Columns kept for how many more parts are not well."""


def header(status: dict[str, Any], silent_s: float | None = None) -> Table:
    """Who, movement, when. ``silent_s``: how long the collector has said nothing, where that is too long."""
    row = Table.grid(expand=True)
    row.add_column(no_wrap=True)
    row.add_column(justify="center", no_wrap=True)
    row.add_column(justify="right", no_wrap=True)
    left = Text.assemble((" Tandem ", "bold reverse"), " ", (str(status.get("probe")), "bold"))
    right = Text(f"{clock(status.get('utc_ns'))}  up {duration(status.get('uptime_s'))} ", colours.QUIET)
    if silent_s is not None:
        right = Text(f" NO WORD FOR {duration(silent_s)} ", colours.ALARM)
    row.add_row(left, movement(status), right)
    return row


def movement(status: dict[str, Any]) -> Text:
    """The mobility state."""
    told = meaning("health", "mobile", bool(status.get("mobile")))
    style = f"bold {colours.style(told.tone)}"
    if not status.get("mobile"):
        return Text(f"■ {told.words.upper()}", style)
    speed = status.get("speed_class")
    how = f" ({meaning('health', 'speed_class', speed).words})" if speed else ""
    return Text(f"▶▶ {told.words.upper()} for {duration(status.get('mobile_since_s'))}{how}", style)


def health(status: dict[str, Any], width: int) -> Text:
    """The parts of the probe's health in one row: first what is not well, reversed, then the rest as far as it fits."""
    machine = machine_parts(status)
    parts = [*machine[:2], *probe_parts(status), *machine[2:]]
    row, left = Text(" ", no_wrap=True), 0
    for part in sorted(parts, key=lambda p: {"poor": 0, "fair": 1}.get(p.tone, 2)):
        shown = _part(part)
        if (left and not part.unwell) or row.cell_len + shown.cell_len + 2 + (_MORE if part.unwell else 0) > width:
            left += part.unwell
            continue
        row.append("" if row.cell_len == 1 else "  ").append_text(shown)
    return row.append(f"  +{left}", colours.ALARM) if left else row


def _part(part: Part) -> Text:
    if part.tone == "poor":
        return Text(f" {part.words} ", colours.ALARM)
    if part.tone == "fair":
        return colours.toned(part.words, "fair", bold=True)
    return Text(part.words, colours.QUIET)


def wrong(status: dict[str, Any], width: int, rows: int) -> list[Text]:
    """What is wrong, one row each, the gravest first; the last row says how many more there are."""
    found = [str(text) for text in status.get("wrong") or []]
    if status.get("trouble") and status["trouble"] not in found:
        found.insert(0, str(status["trouble"]))
    lines = []
    for number, text in enumerate(found[:rows]):
        left = len(found) - rows
        more = f"  (+{left}: tandem status)" if left > 0 and number == rows - 1 else ""
        line = Text(f" ! {text}", f"bold {colours.style('poor')}", no_wrap=True)
        line.truncate(width - len(more), overflow="ellipsis")
        lines.append(line.append(more, colours.QUIET))
    return lines


def footer(status: dict[str, Any], width: int) -> Text:
    """Polls, records and captures; the marks' meaning where there is room."""
    polls, spool = status.get("polls") or {}, status.get("spool") or {}
    late, waiting, rejected = polls.get("late", 0), spool.get("pending", 0), spool.get("rejected", 0)
    text = Text(" polls ", colours.QUIET, no_wrap=True)
    text.append(str(polls.get("made", 0)))
    text.append(f" ({late} late)", colours.style("fair") if late else colours.QUIET)
    text.append("  records " if width >= 100 else "  ", colours.QUIET)
    text.append(f"{spool.get('made', 0)}")
    text.append(" → ", colours.QUIET)
    text.append(f"{spool.get('sent', 0)} sent", colours.style("good"))
    text.append(f", {waiting} waiting", colours.style("fair") if waiting > 1000 else colours.QUIET)
    if rejected:
        text.append(f", {rejected} rejected", f"bold {colours.style('poor')}")
    if spool.get("path") and width >= 100:
        text.append(f" over {spool['path']}", colours.QUIET)
    text.append("  captures " if width >= 100 else "  pcap ", colours.QUIET)
    text.append(size(status.get("captures_bytes")))
    if width - text.cell_len > len(colours.LEGEND) + 4:
        text.append(colours.LEGEND.rjust(width - text.cell_len - 1), colours.QUIET)
    text.truncate(width, overflow="ellipsis")
    return text
