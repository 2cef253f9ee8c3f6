"""A board asked as Grafana asks it: its variables in their order, then every panel and annotation."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from tandem_dashboards.grafana.frames import listed, rows_of
from tandem_dashboards.grafana.macros import Chosen, expanded
from tandem_dashboards.grafana.times import Range, duration_ms, interval_ms
from tandem_dashboards.influx import AskError, AwayError
from tandem_dashboards.questions import Choice, Question, choices_of, questions_of

SCREEN_PIXELS = 1600
"""How wide a board is drawn: a panel has as many points as it has pixels."""
_VARIABLE_POINTS = 1000


class Database(Protocol):
    """What can be asked."""

    def ask(self, influxql: str) -> list[dict[str, Any]]:
        """The series of one statement; AskError."""


@dataclass
class Answer:
    """``text``: the query as it went to the database. ``rows``: rows with anything in them. ``error``: None when there was an answer."""

    question: Question
    text: str
    rows: int
    seconds: float
    error: str | None
    series: list[dict[str, Any]] = field(default_factory=list, repr=False)

    def to_json(self) -> dict[str, object]:
        """Without the answer itself."""
        asked = self.question
        return {
            "board": asked.board,
            "of": asked.of,
            "name": asked.name,
            "ref": asked.ref,
            "query": self.text,
            "rows": self.rows,
            "seconds": round(self.seconds, 4),
            "error": self.error,
        }


def put(database: Database, question: Question, text: str) -> Answer:
    """One query. AwayError goes on: without a database nothing else can be said either."""
    began = time.perf_counter()
    try:
        series = database.ask(text)
    except AwayError:
        raise
    except AskError as error:
        return Answer(question, text, 0, time.perf_counter() - began, str(error))
    return Answer(question, text, rows_of(series), time.perf_counter() - began, None, series)


def window_ms(question: Question, span: Range) -> int:
    """How wide this query's windows are."""
    points = question.points or max(1, SCREEN_PIXELS * question.columns // 24)
    return interval_ms(span, points, question.least)


def range_for(question: Question, span: Range) -> Range:
    """The panel's own range, when it has one: the last while before the board's end."""
    if not question.time_from:
        return span
    return replace(span, from_ms=span.to_ms - duration_ms(question.time_from.removeprefix("now-")))


def choose(
    board: Mapping[str, Any], database: Database, span: Range, wanted: Mapping[str, Sequence[str]]
) -> tuple[dict[str, Chosen], list[Answer]]:
    """What is chosen in each variable: as ``wanted``, else All, else the first listed; and how their queries went."""
    chosen: dict[str, Chosen] = {}
    answers = []
    for choice in choices_of(board):
        question = Question(board["uid"], "variable", choice.name, "", choice.query)
        text = expanded(choice.query, chosen, span, interval_ms(span, _VARIABLE_POINTS))
        answer = put(database, question, text)
        answers.append(answer)
        chosen[choice.name] = _chosen(choice, sorted_as(choice, listed(answer.series)), wanted.get(choice.name))
    return chosen, answers


def _chosen(choice: Choice, options: list[str], wanted: Sequence[str] | None) -> Chosen:
    if wanted:
        return Chosen(tuple(wanted), choice.multi)
    if choice.everything is not None:
        return Chosen(tuple(options), choice.multi, choice.everything or None)
    return Chosen(tuple(options[:1]), choice.multi)


_NATURAL = 7


def sorted_as(choice: Choice, options: list[str]) -> list[str]:
    """As the variable says; of Grafana's ways those that boards here use."""
    if choice.sort == 0:
        return options
    key: Callable[[str], object] = _naturally if choice.sort == _NATURAL else str
    return sorted(options, key=key)  # type: ignore[arg-type]  # the key of one kind compares with itself


def _naturally(text: str) -> list[tuple[int, int, str]]:
    parts = re.split(r"(\d+)", text.lower())
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts if part]


def ask_board(
    board: Mapping[str, Any],
    database: Database,
    span: Range,
    wanted: Mapping[str, Sequence[str]] | None = None,
) -> tuple[dict[str, Chosen], list[Answer]]:
    """Every query of ``board`` (its JSON); ``wanted``: values of variables by name. What was chosen, and the answers."""
    chosen, answers = choose(board, database, span, wanted or {})
    for question in questions_of(board):
        its = range_for(question, span)
        answers.append(put(database, question, expanded(question.text, chosen, its, window_ms(question, its))))
    return chosen, answers
