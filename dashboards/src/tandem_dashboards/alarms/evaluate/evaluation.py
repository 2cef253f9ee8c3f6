"""One evaluation of a rule: its queries and expressions in order, then a state for each label set.

After ``pkg/expr/graph.go`` and ``pkg/services/ngalert/eval/eval.go`` of Grafana 11: a value of 0 is normal, any other (NaN too) alerts, a
null is no data for its labels, no value at all is no data for the whole; an error anywhere is an error of the whole; two values with the
same labels are an error, since nobody could tell them apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from tandem_dashboards.alarms.evaluate.frames import read
from tandem_dashboards.alarms.evaluate.values import (
    ExpressionError,
    Labels,
    NoData,
    Number,
    Scalar,
    Series,
    Value,
    Values,
)

Outcome = Literal["Normal", "Alerting", "NoData", "Error"]
Ask = Callable[[str], Any]
"""InfluxQL in, the parsed JSON answer (``epoch=ms``) out; ExpressionError when the database gives none."""


class Command(Protocol):
    """An expression: reduce, math or threshold."""

    @property
    def needs(self) -> tuple[str, ...]:
        """References that must be known before."""
        ...

    def execute(self, known: dict[str, Values]) -> Values:
        """Its values; ExpressionError."""
        ...


@dataclass(frozen=True)
class Query:
    """InfluxQL with Grafana's macros, over ``from_s`` to ``to_s`` seconds before the evaluation."""

    text: str
    from_s: int
    to_s: int = 0

    def expanded(self, at_ms: int) -> str:
        """As Grafana sends it when it evaluates at ``at_ms``. The interval is that of a rule: 1 s."""
        whole = f"time >= {at_ms - self.from_s * 1000}ms and time <= {at_ms - self.to_s * 1000}ms"
        text = self.text.replace("$timeFilter", whole)
        for macro, value in (("$__interval_ms", "1000"), ("$__interval", "1s"), ("$interval", "1s")):
            text = text.replace(macro, value)
        return text


@dataclass(frozen=True)
class Result:
    """``values``: what each reference came to for these labels, for messages."""

    labels: Labels
    outcome: Outcome
    values: Mapping[str, float | None] = field(default_factory=dict)
    error: str = ""


def evaluate(nodes: Mapping[str, Query | Command], condition: str, ask: Ask, at_ms: int) -> list[Result]:
    """Never raises for what the database or the expressions do: that is a result, an error."""
    try:
        known = _known(nodes, ask, at_ms)
        if condition not in known:
            raise ExpressionError(f"the condition {condition} is none of {', '.join(nodes)}")
        return _results(known, condition)
    except ExpressionError as error:
        return [Result((), "Error", {}, str(error))]


def _known(nodes: Mapping[str, Query | Command], ask: Ask, at_ms: int) -> dict[str, Values]:
    known: dict[str, Values] = {}
    waiting = dict(nodes)
    while waiting:
        ready = [n for n, node in waiting.items() if isinstance(node, Query) or all(r in known for r in node.needs)]
        if not ready:
            raise ExpressionError(f"{', '.join(waiting)}: refer to each other, or to what there is not")
        for name in ready:
            node = waiting.pop(name)
            known[name] = read(ask(node.expanded(at_ms))) if isinstance(node, Query) else node.execute(known)
    return known


def _results(known: dict[str, Values], condition: str) -> list[Result]:
    found = known[condition]
    if not found:
        return [Result((), "NoData")]
    results = [_result(value, known) for value in found]
    seen: set[Labels] = set()
    for result in results:
        if result.labels in seen:
            raise ExpressionError(f"two results with the labels {dict(result.labels)}")
        seen.add(result.labels)
    return results


def _result(value: Value, known: dict[str, Values]) -> Result:
    if isinstance(value, NoData):
        return Result((), "NoData")
    if isinstance(value, Series):
        raise ExpressionError("the condition is a series; hint: reduce it")
    captured = {name: cell for name, values in known.items() for cell in _captured(values, value.labels)}
    if value.value is None:
        return Result(value.labels, "NoData", captured)
    return Result(value.labels, "Normal" if value.value == 0 else "Alerting", captured)


def _captured(values: Values, labels: Labels) -> list[float | None]:
    """What a reference came to for these labels: the very same, else those that hold them or are held by them."""
    numbers = [value for value in values if isinstance(value, Number | Scalar)]
    same = [number.value for number in numbers if number.labels == labels]
    wanted = set(labels)
    return same or [n.value for n in numbers if set(n.labels) <= wanted or wanted <= set(n.labels)]
