"""A board's queries, out of the JSON that Grafana loads, sent as Grafana sends them: its variables in their order, then every panel and
annotation; and those of alarms."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from tandem_dashboards.alarms import alarms
from tandem_dashboards.grafana.frames import listed, rows_of
from tandem_dashboards.grafana.macros import Chosen, Range, duration_ms, expanded, interval_ms
from tandem_dashboards.influx import AwayError, InfluxError

SCREEN_PIXELS = 1600
"""How wide a board is drawn: a panel has as many points as it has pixels."""
_VARIABLE_POINTS = 1000
_RULE_INTERVAL_MS = 1000
"""Of an alarm's query."""

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


def panels_of(board: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Every panel, without the rows."""
    return (panel for panel in board["panels"] if panel["type"] != "row")


def queries_of(board: Mapping[str, Any]) -> list[BoardQuery]:
    """Queries of panels and annotations. Those of variables go first, one after another (``run_board``)."""
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


class Database(Protocol):
    """What queries are sent to."""

    def query(self, influxql: str) -> list[dict[str, Any]]:
        """The series of one statement; InfluxError."""


@dataclass
class Answer:
    """``text``: the query as it went to the database. ``rows``: rows with anything in them. ``error``: None when there was an answer."""

    query: BoardQuery
    text: str
    rows: int
    seconds: float
    error: str | None
    series: list[dict[str, Any]] = field(default_factory=list, repr=False)

    def to_json(self) -> dict[str, object]:
        """Without the answer itself."""
        return {
            "board": self.query.board,
            "of": self.query.of,
            "name": self.query.name,
            "ref": self.query.ref,
            "query": self.text,
            "rows": self.rows,
            "seconds": round(self.seconds, 4),
            "error": self.error,
        }


def run_board(
    board: Mapping[str, Any],
    database: Database,
    span: Range,
    wanted: Mapping[str, Sequence[str]] | None = None,
    *,
    now_ms: int | None = None,
) -> tuple[dict[str, Chosen], list[Answer]]:
    """Every query of ``board`` (its JSON); ``wanted``: values of variables by name. ``now_ms``: InfluxQL's ``now()`` in them, ms since
    1970, for a look at the past; None: the database's own clock, as in Grafana. What was chosen, and the answers. AwayError: without a
    database nothing else can be said either."""
    chosen: dict[str, Chosen] = {}
    answers = []
    for variable in board.get("templating", {}).get("list", []):
        query = BoardQuery(board["uid"], "variable", variable["name"], "", variable["query"])
        text = expanded(query.text, chosen, span, interval_ms(span, _VARIABLE_POINTS))
        answer = _run(database, query, text, now_ms)
        answers.append(answer)
        chosen[query.name] = _chosen(variable, listed(answer.series), (wanted or {}).get(query.name))
    for query in queries_of(board):
        its = range_for(query, span)
        points = query.points or max(1, SCREEN_PIXELS * query.columns // 24)
        text = expanded(query.text, chosen, its, interval_ms(its, points, query.least))
        answers.append(_run(database, query, text, now_ms))
    return chosen, answers


def run_alarms(database: Database, at_ms: int) -> list[Answer]:
    """Every query of every alarm, as evaluated at ``at_ms`` (UTC). AwayError."""
    answers = []
    for alarm in alarms():
        for ref, one in alarm.queries.items():
            query = BoardQuery("alarms", "alert", alarm.title, ref, one.select.text, time_from=f"{one.from_s}s")
            text = expanded(query.text, {}, range_for(query, Range(at_ms, at_ms)), _RULE_INTERVAL_MS)
            answers.append(_run(database, query, text, None))
    return answers


def range_for(query: BoardQuery, span: Range) -> Range:
    """The query's own range, when it has one: the last while before the board's end."""
    if not query.time_from:
        return span
    return Range(span.to_ms - duration_ms(query.time_from.removeprefix("now-")), span.to_ms)


def _run(database: Database, query: BoardQuery, text: str, now_ms: int | None) -> Answer:
    if now_ms is not None:
        text = text.replace("now()", f"{now_ms}ms")
    began = time.perf_counter()
    try:
        series = database.query(text)
    except AwayError:
        raise
    except InfluxError as error:
        return Answer(query, text, 0, time.perf_counter() - began, str(error))
    return Answer(query, text, rows_of(series), time.perf_counter() - began, None, series)


def _chosen(variable: Mapping[str, Any], options: list[str], wanted: Sequence[str] | None) -> Chosen:
    """As ``wanted``, else All, else the first listed."""
    if wanted:
        return Chosen(tuple(wanted))
    if variable.get("sort"):  # of Grafana's ways boards here use the natural one, or none
        options = sorted(options, key=_naturally)
    if variable.get("includeAll"):
        return Chosen(tuple(options), variable.get("allValue") or None)
    return Chosen(tuple(options[:1]))


def _naturally(text: str) -> list[tuple[int, int, str]]:
    parts = re.split(r"(\d+)", text.lower())
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts if part]
