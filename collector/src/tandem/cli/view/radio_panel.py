"""One modem: who it is, its cell, its levels now and over the last minute."""

from __future__ import annotations

from typing import Any

from rich.console import Group
from rich.panel import Panel
from rich.text import Text

from tandem.cli.view import colours
from tandem.cli.view.charts import history
from tandem.cli.view.figures import cell, number, radio_words
from tandem.schema.grades import meaning, title, tone_of, usual

_LEVELS = (("rsrp_dbm", "dBm"), ("rsrq_db", "dB"), ("sinr_db", "dB"))
_USUAL = usual("radio", "rsrp_dbm")
LOW_DBM, HIGH_DBM = _USUAL.low or -125.0, _USUAL.high or -70.0
_STALE_S = 3.0
_AXIS = 5
_FOR_UNITS, _FOR_RSRQ = 44, 34
"""Columns."""


def radio_panel(
    path: str, modem: dict[str, Any], way: dict[str, Any] | None, colour: str, width: int, chart_rows: int
) -> Panel:
    """``way``: the path's own state; ``width`` of the whole panel, ``chart_rows`` of its chart; two lines of text above it."""
    inner = width - 4
    first = state_text(modem)
    place = cell(modem) + (f" PCI {modem['pci']}" if modem.get("pci") is not None and inner >= 40 else "")
    first.append(place.rjust(max(1, inner - len(first))), "bold" if modem.get("enb_id") is not None else colours.QUIET)
    second = levels(modem, inner)
    for line in (first, second):
        line.no_wrap = True
        line.truncate(inner, overflow="ellipsis")
    values = modem.get("history_rsrp_dbm") or []
    axis = _AXIS if chart_rows >= 3 else 0
    plot = history(_stretched(values, inner - axis), inner - axis, chart_rows, LOW_DBM, HIGH_DBM, _colour)
    chart = [_scale(row, number, chart_rows) if axis else row for number, row in enumerate(plot)]
    title_ = Text.assemble((f"{path} ", f"bold {colour}"), (f"{modem.get('operator') or ''}", "bold"))
    model = modem.get("model") or modem.get("driver")
    if model:
        title_.append(f" · {model}", colours.QUIET)
    title_.truncate(max(4, width - 6), overflow="ellipsis")
    return Panel(
        Group(first, second, *chart), title=title_, title_align="left", subtitle=path_text(way), subtitle_align="right",
        border_style=colour, padding=(0, 1),
    )  # fmt: skip


def state_text(modem: dict[str, Any]) -> Text:
    """The modem's state in words, coloured."""
    return colours.toned(radio_words(modem), meaning("radio", "state", modem.get("state")).tone)


def path_text(way: dict[str, Any] | None) -> Text | None:
    """What is the matter with the path beside its modem; None when nothing is."""
    state = (way or {}).get("state")
    if state in (None, "up"):
        return None
    told = meaning("event", "state", state)
    return colours.toned(f"path {told.words}", told.tone, bold=True)


def levels(modem: dict[str, Any], width: int) -> Text:
    """RSRP, RSRQ and SINR with their grades, for ``width`` columns: units and then RSRQ are left out where these are few."""
    age = modem.get("age_s")
    line = Text()
    if isinstance(age, int | float) and age > _STALE_S:
        line.append(f"{age:.0f} s old", colours.ALARM)
    for name, unit in _LEVELS:
        value = modem.get(name)
        if name == "rsrq_db" and width < _FOR_RSRQ:
            continue
        line.append(
            f"{'  ' if line and width >= _FOR_UNITS else ' ' if line else ''}{title('radio', name)} ", colours.QUIET
        )
        shown = number(value, 0, f" {unit}" if width >= _FOR_UNITS or name == "rsrp_dbm" else "")
        line.append_text(colours.toned(shown, tone_of("radio", name, value), bold=name == "rsrp_dbm"))
    return line


def _colour(level: Any) -> str:  # noqa: ANN401 a JSON value
    return colours.of("radio", "rsrp_dbm", level)


def _scale(row: Text, number: int, rows: int) -> Text:
    """The row with its level in dBm before it, on the highest and the lowest."""
    level = f"{HIGH_DBM:.0f}" if number == 0 else f"{LOW_DBM:.0f}" if number == rows - 1 else ""
    return Text(level.rjust(_AXIS - 1) + " ", colours.QUIET).append_text(row)


def _stretched(values: list[Any], width: int) -> list[Any]:
    """Each value on as many whole columns as fit for a minute of polls: a wide panel shows no narrow chart."""
    each = max(1, width // 60)
    return [value for value in values for _ in range(each)]
