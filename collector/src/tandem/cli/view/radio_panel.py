"""One modem: who it is, its cell, its levels now and over the last minute."""

from __future__ import annotations

from typing import Any

from rich.console import Group
from rich.panel import Panel
from rich.text import Text

from tandem.cli.view import colours
from tandem.cli.view.charts import history
from tandem.cli.view.figures import cell, number, radio_words

LOW_DBM, HIGH_DBM = -125.0, -70.0
_STALE_S = 3.0
_AXIS = 5


def radio_panel(path: str, modem: dict[str, Any], colour: str, width: int, chart_rows: int) -> Panel:
    """``width`` of the whole panel, ``chart_rows`` of its chart; two lines of text above it."""
    inner = width - 4
    state = modem.get("state")
    first = Text(radio_words(modem), colours.state(state))
    place = cell(modem) + (f" PCI {modem['pci']}" if modem.get("pci") is not None and inner >= 40 else "")
    first.append(place.rjust(max(1, inner - len(first))), "bold" if modem.get("enb_id") is not None else colours.QUIET)
    level, sinr = modem.get("rsrp_dbm"), modem.get("sinr_db")
    second = Text("RSRP ", colours.QUIET)
    second.append(number(level, 0, " dBm"), f"bold {colours.rsrp(level)}")
    second.append("  SINR ", colours.QUIET)
    second.append(number(sinr, 0, " dB"), colours.sinr(sinr))
    if inner >= 44:
        second.append("  RSRQ ", colours.QUIET)
        second.append(number(modem.get("rsrq_db"), 0, " dB"))
    age = modem.get("age_s")
    if isinstance(age, int | float) and age > _STALE_S:
        second.append(f"  {age:.0f} s old", "bold red")
    for line in (first, second):
        line.no_wrap = True
        line.truncate(inner, overflow="ellipsis")
    values = modem.get("history_rsrp_dbm") or []
    axis = _AXIS if chart_rows >= 3 else 0
    plot = history(_stretched(values, inner - axis), inner - axis, chart_rows, LOW_DBM, HIGH_DBM, colours.rsrp)
    chart = [_scale(row, number, chart_rows) if axis else row for number, row in enumerate(plot)]
    title = Text.assemble((f"{path} ", f"bold {colour}"), (f"{modem.get('operator') or ''}", "bold"))
    model = modem.get("model") or modem.get("driver")
    if model:
        title.append(f" · {model}", colours.QUIET)
    title.truncate(max(4, width - 6), overflow="ellipsis")
    return Panel(Group(first, second, *chart), title=title, title_align="left", border_style=colour, padding=(0, 1))


def _scale(row: Text, number: int, rows: int) -> Text:
    """The row with its level in dBm before it, on the highest and the lowest."""
    level = f"{HIGH_DBM:.0f}" if number == 0 else f"{LOW_DBM:.0f}" if number == rows - 1 else ""
    return Text(level.rjust(_AXIS - 1) + " ", colours.QUIET).append_text(row)


def _stretched(values: list[Any], width: int) -> list[Any]:
    """Each value on as many whole columns as fit for a minute of polls: a wide panel shows no narrow chart."""
    each = max(1, width // 60)
    return [value for value in values for _ in range(each)]
