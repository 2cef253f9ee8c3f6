"""A board's queries sent as Grafana sends them: its variables in their order, then every panel and annotation; and those of alarms."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from tandem_dashboards.grafana.frames import listed, rows_of
from tandem_dashboards.grafana.macros import Chosen, Range, duration_ms, expanded, interval_ms
from tandem_dashboards.influx import AwayError, InfluxError
from tandem_dashboards.query_extractor import BoardQuery, Choice, alarm_queries, choices_of, queries_of

SCREEN_PIXELS = 1600
"""How wide a board is drawn: a panel has as many points as it has pixels."""
_VARIABLE_POINTS = 1000
_RULE_INTERVAL_MS = 1000
"""Of an alarm's query."""


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
    for choice in choices_of(board):
        query = BoardQuery(board["uid"], "variable", choice.name, "", choice.query)
        text = expanded(choice.query, chosen, span, interval_ms(span, _VARIABLE_POINTS))
        answer = _run(database, query, text, now_ms)
        answers.append(answer)
        chosen[choice.name] = _chosen(choice, _sorted(choice, listed(answer.series)), (wanted or {}).get(choice.name))
    for query in queries_of(board):
        its = range_for(query, span)
        points = query.points or max(1, SCREEN_PIXELS * query.columns // 24)
        text = expanded(query.text, chosen, its, interval_ms(its, points, query.least))
        answers.append(_run(database, query, text, now_ms))
    return chosen, answers


def run_alarms(database: Database, at_ms: int) -> list[Answer]:
    """Every query of every alarm, as evaluated at ``at_ms`` (UTC). AwayError."""
    span = Range(at_ms, at_ms)
    return [
        _run(database, query, expanded(query.text, {}, range_for(query, span), _RULE_INTERVAL_MS), None)
        for query in alarm_queries()
    ]


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


def _chosen(choice: Choice, options: list[str], wanted: Sequence[str] | None) -> Chosen:
    """As ``wanted``, else All, else the first listed."""
    if wanted:
        return Chosen(tuple(wanted), choice.multi)
    if choice.all_value is not None:
        return Chosen(tuple(options), choice.multi, choice.all_value or None)
    return Chosen(tuple(options[:1]), choice.multi)


_NATURAL = 7


def _sorted(choice: Choice, options: list[str]) -> list[str]:
    """As the variable says; of Grafana's ways those that boards here use."""
    if choice.sort == 0:
        return options
    key: Callable[[str], object] = _naturally if choice.sort == _NATURAL else str
    return sorted(options, key=key)  # type: ignore[arg-type]  # the key of one kind compares with itself


def _naturally(text: str) -> list[tuple[int, int, str]]:
    parts = re.split(r"(\d+)", text.lower())
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts if part]
