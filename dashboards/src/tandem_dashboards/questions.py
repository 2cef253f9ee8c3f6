"""Every query of a board, out of the JSON that Grafana loads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Of = Literal["variable", "panel", "annotation", "alert"]


@dataclass(frozen=True)
class Question:
    """``name``: the panel's title, the variable's or the annotation's name. ``panel``: its number. ``columns``: of Grafana's grid, from
    which a panel has its points. ``least``: the narrowest window. ``time_from``: the panel's own range."""

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
    """A variable as the board has it."""

    name: str
    query: str
    multi: bool
    everything: str | None
    sort: int


def panels_of(board: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Every panel, those in collapsed rows too, without the rows."""
    for panel in board["panels"]:
        if panel["type"] == "row":
            yield from panel.get("panels", [])
        else:
            yield panel


def choices_of(board: Mapping[str, Any]) -> list[Choice]:
    """The board's variables in their order."""
    found = []
    for variable in board.get("templating", {}).get("list", []):
        everything = (variable.get("allValue") or "") if variable.get("includeAll") else None
        found.append(
            Choice(
                variable["name"],
                variable["query"],
                bool(variable.get("multi")),
                everything,
                int(variable.get("sort", 0)),
            )
        )
    return found


def questions_of(board: Mapping[str, Any]) -> list[Question]:
    """Queries of panels and annotations. Variables are asked first, one after another (``choices_of``)."""
    uid: str = board["uid"]
    found: list[Question] = []
    for panel in panels_of(board):
        for target in panel.get("targets", []):
            one = Question(
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
            found.append(one)
    asked = [one for one in board.get("annotations", {}).get("list", []) if "query" in one.get("target", {})]
    return found + [Question(uid, "annotation", one["name"], "", one["target"]["query"]) for one in asked]
