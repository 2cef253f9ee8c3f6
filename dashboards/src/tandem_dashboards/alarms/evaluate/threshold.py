"""Threshold: 1 where the condition holds, else 0. After ``pkg/expr/threshold.go`` and ``hysteresis.go`` of Grafana 11.

With a second condition (``until``) a label set that fired at the evaluation before fires until that one holds: a recovery threshold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

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

Kind = Literal[
    "gt", "lt", "eq", "ne", "gte", "lte",
    "within_range", "outside_range", "within_range_included", "outside_range_included",
]  # fmt: skip


@dataclass(frozen=True)
class Condition:
    """``kind`` is one of ``KINDS``; ranges take two ``limits``."""

    kind: Kind
    limits: tuple[float, ...]

    def holds(self, value: float) -> bool:
        """ExpressionError for an unknown kind or a limit too few."""
        if self.kind not in KINDS:
            raise ExpressionError(f"threshold knows no {self.kind!r}; it knows {', '.join(KINDS)}")
        needed, test = KINDS[self.kind]
        if len(self.limits) < needed:
            raise ExpressionError(f"threshold {self.kind!r} needs {needed} limits, and has {len(self.limits)}")
        return test(value, self.limits)


_Test = Callable[[float, tuple[float, ...]], bool]
KINDS: dict[Kind, tuple[int, _Test]] = {
    "gt": (1, lambda v, p: v > p[0]),
    "lt": (1, lambda v, p: v < p[0]),
    "eq": (1, lambda v, p: v == p[0]),
    "ne": (1, lambda v, p: v != p[0]),
    "gte": (1, lambda v, p: v >= p[0]),
    "lte": (1, lambda v, p: v <= p[0]),
    "within_range": (2, lambda v, p: p[0] < v < p[1]),
    "outside_range": (2, lambda v, p: v < p[0] or v > p[1]),
    "within_range_included": (2, lambda v, p: p[0] <= v <= p[1]),
    "outside_range_included": (2, lambda v, p: v <= p[0] or v >= p[1]),
}


@dataclass(frozen=True)
class Threshold:
    """``firing``: label sets that fired at the evaluation before; only with ``until`` they matter."""

    of: str
    condition: Condition
    until: Condition | None = None
    firing: frozenset[Labels] = field(default=frozenset())

    @property
    def needs(self) -> tuple[str, ...]:
        """References that must be known before."""
        return (self.of,)

    def told(self, firing: frozenset[Labels]) -> Threshold:
        """The same, after an evaluation that ended with these."""
        return replace(self, firing=firing)

    def execute(self, known: dict[str, Values]) -> Values:
        """A null stays null, NaN fulfils no comparison but ``ne``."""
        return tuple(self._one(value) for value in known[self.of])

    def _one(self, value: Value) -> Value:
        if isinstance(value, NoData):
            return value
        loaded = self.until is not None and value.labels in self.firing

        def judged(cell: float | None) -> float | None:
            if cell is None:
                return None
            if loaded and self.until is not None:
                return float(not self.until.holds(cell))
            return float(self.condition.holds(cell))

        if isinstance(value, Series):
            return Series(value.labels, tuple((at, judged(cell)) for at, cell in value.points))
        if isinstance(value, Number):
            return Number(value.labels, judged(value.value))
        return Scalar(judged(value.value))
