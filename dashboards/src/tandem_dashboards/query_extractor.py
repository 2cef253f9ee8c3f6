"""Every query of a board, out of the JSON that Grafana loads, and of the alarms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tandem_dashboards.alarms import alarms

Of = Literal["variable", "panel", "annotation", "alert"]


@dataclass(frozen=True)
class BoardQuery:
    """``name``: the panel's title, the variable's or the annotation's name, the alarm's title. ``text``: with Grafana's macros. ``panel``:
    its number. ``columns``: of Grafana's grid, from which a panel has its points. ``least``: the narrowest window. ``time_from``: the
    panel's own range; of an alarm's query how far back it looks."""

    board: str
    of: Of
    name: str
    ref: str
    text: str
    shape: str = "time_series"
    alias: str = ""
    panel: int = 0
    columns: int = 24
    points: int | None = None
    least: str | None = None
    time_from: str | None = None


@dataclass(frozen=True)
class Choice:
    """A variable as the board has it. ``all_value``: what All becomes in a query; None where there is no All."""

    name: str
    query: str
    multi: bool
    all_value: str | None
    sort: int


def panels_of(board: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Every panel, without the rows."""
    return (panel for panel in board["panels"] if panel["type"] != "row")


def choices_of(board: Mapping[str, Any]) -> list[Choice]:
    """The board's variables in their order."""
    return [
        Choice(
            variable["name"],
            variable["query"],
            bool(variable.get("multi")),
            (variable.get("allValue") or "") if variable.get("includeAll") else None,
            int(variable.get("sort", 0)),
        )
        for variable in board.get("templating", {}).get("list", [])
    ]


def queries_of(board: Mapping[str, Any]) -> list[BoardQuery]:
    """Queries of panels and annotations. Those of variables go first, one after another (``choices_of``)."""
    uid: str = board["uid"]
    found = [
        BoardQuery(
            uid,
            "panel",
            panel["title"],
            target["refId"],
            target["query"],
            target["resultFormat"],
            target.get("alias", ""),
            panel["id"],
            panel["gridPos"]["w"],
            panel.get("maxDataPoints"),
            panel.get("interval"),
            panel.get("timeFrom"),
        )
        for panel in panels_of(board)
        for target in panel.get("targets", [])
    ]
    marks = [one for one in board.get("annotations", {}).get("list", []) if "query" in one.get("target", {})]
    return found + [BoardQuery(uid, "annotation", one["name"], "", one["target"]["query"]) for one in marks]


def alarm_queries() -> list[BoardQuery]:
    """Every query of every alarm."""
    return [
        BoardQuery("alarms", "alert", alarm.title, ref, query.select.text, time_from=f"{query.from_s}s")
        for alarm in alarms()
        for ref, query in alarm.queries.items()
    ]
