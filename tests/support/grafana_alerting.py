"""Grafana's alerting, as far as the alarms use it: a rule is read from its file, evaluated, and its states followed.

After ``pkg/expr`` and ``pkg/services/ngalert`` of Grafana 11. What a rule of another kind would need is an ExpressionError here.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from tandem_dashboards.alarms.alarm import Last, Math, Threshold
from tandem_dashboards.influx import AwayError, InfluxError
from tandem_dashboards.query_runner import Database

Labels = tuple[tuple[str, str], ...]
"""Sorted pairs: labels as an identity."""
Numbers = list[tuple[Labels, float | None]] | None
"""What an expression comes to for each label set; None as a value is a null, None as a whole: a query answered without any series."""
Series = list[tuple[Labels, list[float | None]]] | None
"""The cells of each series of a query; None: no series."""
Ask = Callable[[str], Any]
"""InfluxQL in, the parsed JSON answer (``epoch=ms``) out."""
Outcome = Literal["Normal", "Alerting", "NoData", "Error"]
T = TypeVar("T")
_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


class ExpressionError(ValueError):
    """Grafana would put the rule into its error state, or this module lacks what the rule uses: the message says what."""


# --- rules, read back from their file


@dataclass(frozen=True)
class Query:
    """InfluxQL with Grafana's macros, over the last ``from_s`` seconds before the evaluation."""

    text: str
    from_s: int

    def expanded(self, at_ms: int) -> str:
        return self.text.replace("$timeFilter", f"time >= {at_ms - self.from_s * 1000}ms and time <= {at_ms}ms")


Node = Query | Last | Math | Threshold


@dataclass(frozen=True)
class Rule:
    """``nodes`` by reference, in the order of the file, in which each rests on those before it."""

    uid: str
    title: str
    condition: str
    nodes: Mapping[str, Node]
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    for_s: int
    interval_s: int
    no_data: str
    on_error: str

    @property
    def queries(self) -> dict[str, Query]:
        return {name: node for name, node in self.nodes.items() if isinstance(node, Query)}

    def watch(self) -> Watch:
        return Watch(self)


def rules(document: Mapping[str, Any]) -> list[Rule]:
    found = []
    for group in document["groups"]:
        for rule in group["rules"]:
            nodes = {part["refId"]: _node(part) for part in rule["data"]}
            texts = (rule["uid"], rule["title"], rule["condition"], nodes, rule["labels"], rule["annotations"])
            times = seconds(rule["for"]), seconds(group["interval"])
            found.append(Rule(*texts, *times, rule["noDataState"], rule["execErrState"]))
    return found


def seconds(duration: str) -> int:
    """``60s``, ``1h30m``, ``0``; ExpressionError for anything else."""
    parts = re.findall(r"(\d+)([smhdw])", duration)
    if duration != "0" and (not parts or "".join(number + unit for number, unit in parts) != duration):
        raise ExpressionError(f"no duration: {duration!r}")
    return sum(int(number) * _UNITS_S[unit] for number, unit in parts)


def _node(part: Mapping[str, Any]) -> Node:
    model, times = part["model"], part["relativeTimeRange"]
    if part["datasourceUid"] != "__expr__":
        return Query(model["query"], times["from"] - times["to"])
    if model["type"] == "math":
        return Math(model["expression"])
    if model["type"] == "reduce" and (model["reducer"], model["settings"]) == ("last", {"mode": "dropNN"}):
        return Last(model["expression"])
    if model["type"] == "threshold" and "unloadEvaluator" not in model["conditions"][0]:
        evaluator = model["conditions"][0]["evaluator"]
        (limit,) = evaluator["params"]
        return Threshold(model["expression"], evaluator["type"], limit)
    raise ExpressionError(f"expression {part['refId']}: {model} is not known here")


# --- one evaluation


@dataclass(frozen=True)
class Result:
    """``values``: what each reference came to for these labels, for messages."""

    labels: Labels
    outcome: Outcome
    values: Mapping[str, float | None] = field(default_factory=dict)
    error: str = ""


def evaluate(nodes: Mapping[str, Node], condition: str, ask: Ask, at_ms: int) -> list[Result]:
    """A value of 0 is normal, any other (NaN too) alerts, a null is no data for its labels, no value at all is no data for the whole; an
    error anywhere is an error of the whole, and so are two values with the same labels: nobody could tell them apart."""
    known: dict[str, Numbers] = {}
    answers: dict[str, Series] = {}
    try:
        for name, node in nodes.items():
            if isinstance(node, Query):
                answers[name] = read(ask(node.expanded(at_ms)))
            elif isinstance(node, Last):
                known[name] = last(_reference(answers, node.of))
            elif isinstance(node, Math):
                known[name] = calculated(node.text, known)
            else:
                known[name] = compared(node, _reference(known, node.of))
        found = _reference(known, condition)
        if not found:
            return [Result((), "NoData")]
        if len({labels for labels, _ in found}) < len(found):
            raise ExpressionError(f"two results with the same labels: {found}")
    except ExpressionError as error:
        return [Result((), "Error", {}, str(error))]
    return [_result(labels, value, known) for labels, value in found]


def _reference(known: Mapping[str, T], name: str) -> T:
    if name not in known:
        raise ExpressionError(f"{name} is none of {', '.join(known)}")
    return known[name]


def _result(labels: Labels, value: float | None, known: Mapping[str, Numbers]) -> Result:
    captured = {name: cell for name, numbers in known.items() for cell in _captured(numbers or [], labels)}
    return Result(labels, "NoData" if value is None else "Normal" if value == 0 else "Alerting", captured)


def _captured(numbers: list[tuple[Labels, float | None]], labels: Labels) -> list[float | None]:
    """What a reference came to for these labels: the very same, else those that hold them or are held by them."""
    same = [value for its, value in numbers if its == labels]
    wanted = set(labels)
    return same or [value for its, value in numbers if set(its) <= wanted or wanted <= set(its)]


def read(answer: Any) -> Series:
    """Of the parsed JSON answer of ``/query``, which has one column beside the time.

    A column of texts or of yes and no is no series: Grafana leaves it out with a warning in its log, so an alarm queries numbers only.
    """
    found = []
    if "error" in answer or "error" in answer["results"][0]:
        raise ExpressionError(f"the database says: {answer}")
    for one in answer["results"][0].get("series") or []:
        if len(one["columns"]) != 2:
            raise ExpressionError(f"a query has one column beside the time, and here is {one['columns']}")
        cells = [cell for _, cell in one.get("values") or []]
        if _is_number(next((cell for cell in cells if cell is not None), 0.0)):
            labels = tuple(sorted((one.get("tags") or {}).items()))
            found.append((labels, [float(cell) if _is_number(cell) else None for cell in cells]))
    return found or None


def _is_number(cell: object) -> bool:
    return isinstance(cell, int | float) and not isinstance(cell, bool)


def last(series: Series) -> Numbers:
    """The newest value of each, nulls left out; a series of nulls has a null."""
    if series is None:
        return None
    return [(its, next((cell for cell in reversed(cells) if cell is not None), None)) for its, cells in series]


def compared(threshold: Threshold, numbers: Numbers) -> Numbers:
    """1 where it holds, else 0; a null stays null, and NaN fulfils nothing."""
    holds = {"gt": float.__gt__, "gte": float.__ge__, "lt": float.__lt__, "eq": float.__eq__}[threshold.kind]
    if numbers is None:
        return None
    limit = float(threshold.limit)
    return [(its, None if value is None else float(holds(value, limit))) for its, value in numbers]


_OPERATORS: dict[type, Callable[[float, float], float]] = {
    ast.Add: float.__add__,
    ast.Sub: float.__sub__,
    ast.Mult: float.__mul__,
    ast.Div: lambda a, b: a / b if b else math.nan if a == 0 else math.copysign(math.inf, a) * math.copysign(1, b),
    ast.Eq: lambda a, b: float(a == b),
    ast.Gt: lambda a, b: float(a > b),
    ast.GtE: lambda a, b: float(a >= b),
    ast.Lt: lambda a, b: float(a < b),
    ast.LtE: lambda a, b: float(a <= b),
}


def calculated(text: str, known: Mapping[str, Numbers]) -> Numbers:
    """A math expression: ``+ - * /``, comparisons, brackets and references, whose order is Python's as well."""
    try:
        return _walk(ast.parse(re.sub(r"\$([A-Za-z]+)", r"\1", text).strip(), mode="eval").body, known)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ExpressionError(f"math expression {text!r}: {error}") from error


def _walk(node: ast.expr, known: Mapping[str, Numbers]) -> Numbers:
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return [((), float(value))]
        case ast.Name(id=name):
            return _reference(known, name)
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _OPERATORS:
            return _joined(_OPERATORS[type(operator)], _walk(left, known), _walk(right, known))
        case ast.Compare(left=left, ops=[operator], comparators=[right]) if type(operator) in _OPERATORS:
            return _joined(_OPERATORS[type(operator)], _walk(left, known), _walk(right, known))
    raise ExpressionError(f"{ast.unparse(node)} is not known here")


def _joined(operator: Callable[[float, float], float], left: Numbers, right: Numbers) -> Numbers:
    """Of two sets of numbers only those pairs remain whose labels are equal, or where one's labels hold all of the other's (or it has
    none); the rest is dropped without a word. When either side has no data, so has the whole. One value on each side whose labels do not
    fit are put together all the same, and the labels are lost."""
    if left is None or right is None:
        return None
    pairs = [(its, a, b) for mine, a in left for other, b in right if (its := _fitting(mine, other)) is not None]
    if not pairs and len(left) == len(right) == 1:
        pairs = [((), left[0][1], right[0][1])]
    return [(its, None if a is None or b is None else _both(operator, a, b)) for its, a, b in pairs]


def _both(operator: Callable[[float, float], float], a: float, b: float) -> float:
    return math.nan if math.isnan(a) or math.isnan(b) else operator(a, b)


def _fitting(a: Labels, b: Labels) -> Labels | None:
    more, fewer = (a, b) if len(a) >= len(b) else (b, a)
    return more if set(fewer) <= set(more) else None


# --- states, from evaluation to evaluation


@dataclass
class State:
    """Of one label set. ``since_ms``: in this state; ``reason``: why, where it is not the figures; ``values``: of the newest result."""

    labels: Labels
    name: Literal["Normal", "Pending", "Alerting"]
    since_ms: int
    evaluated_ms: int
    reason: str = ""
    values: Mapping[str, float | None] = field(default_factory=dict)

    def turn(self, name: Literal["Normal", "Pending", "Alerting"], at_ms: int) -> None:
        """Into that state now; nothing when it is in it."""
        if self.name != name:
            self.name, self.since_ms = name, at_ms


@dataclass(frozen=True)
class Change:
    labels: Labels
    before: str
    after: str
    reason: str

    @property
    def resolved(self) -> bool:
        """People get a message that it is over."""
        return (self.before, self.after) == ("Alerting", "Normal")


_MISSING = 2
"""So many evaluations without a label set, while others are there, and it is dropped and thereby *resolved*: the trap for silent series."""


class Watch:
    """A rule that is evaluated again and again. A label set that alerts is Pending until it has done so for the rule's ``for``, then
    Alerting. No data and errors are what the rule says they are; when there is nothing else, every label set that there is gets that."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.states: dict[Labels, State] = {}

    @property
    def firing(self) -> frozenset[Labels]:
        return frozenset(labels for labels, state in self.states.items() if state.name == "Alerting")

    def results(self, ask: Ask, at_ms: int) -> list[Result]:
        """What an evaluation gives now, before the rule's ``for``."""
        return evaluate(self.rule.nodes, self.rule.condition, ask, at_ms)

    def tick(self, ask: Ask, at_ms: int) -> list[Change]:
        """One evaluation at that time, UTC ms; what changed."""
        return self.take(self.results(ask, at_ms), at_ms)

    def take(self, results: Sequence[Result], at_ms: int) -> list[Change]:
        """One evaluation's results; what changed by them."""
        before = {labels: state.name for labels, state in self.states.items()}
        if self.states and {result.outcome for result in results} in ({"NoData"}, {"Error"}):
            results = [Result(labels, results[0].outcome) for labels in self.states]
        for result in results:
            new = State(result.labels, "Normal", at_ms, at_ms)
            self._take(self.states.setdefault(result.labels, new), result, at_ms)
        gone = self._missing(at_ms)
        named = [(state, before.get(state.labels, "Normal")) for state in (*self.states.values(), *gone)]
        return [Change(state.labels, was, state.name, state.reason) for state, was in named if was != state.name]

    def _take(self, state: State, result: Result, at_ms: int) -> None:
        state.evaluated_ms, state.values, state.reason = at_ms, result.values or state.values, ""
        word: str = result.outcome
        if word in ("NoData", "Error"):
            word = self.rule.no_data if word == "NoData" else self.rule.on_error
            if word not in ("KeepLast", "OK", "Alerting"):
                raise ExpressionError(f"{word} for {result.outcome} is not known here")
            state.reason = f"{result.outcome}, KeepLast" if word == "KeepLast" else result.outcome
        if word in ("Normal", "OK"):
            state.turn("Normal", at_ms)
        elif state.name == "Pending":
            if at_ms - state.since_ms >= self.rule.for_s * 1000:
                state.turn("Alerting", at_ms)
        elif word == "Alerting" and state.name == "Normal":
            state.turn("Alerting" if self.rule.for_s <= 0 else "Pending", at_ms)

    def _missing(self, at_ms: int) -> list[State]:
        gone = [s for s in self.states.values() if at_ms - s.evaluated_ms >= _MISSING * self.rule.interval_s * 1000]
        for state in gone:
            state.turn("Normal", at_ms)
            state.reason = "MissingSeries"
            del self.states[state.labels]
        return gone


def asker(database: Database) -> Ask:
    """An error of the database is an answer, as Grafana takes it. AwayError goes on: nothing can be said then."""

    def ask(influxql: str) -> object:
        try:
            return {"results": [{"series": database.query(influxql)}]}
        except AwayError:
            raise
        except InfluxError as error:
            return {"error": str(error)}

    return ask
