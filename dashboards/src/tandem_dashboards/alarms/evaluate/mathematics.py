"""Math: operands put together by their labels. After ``pkg/expr/mathexp/exp.go`` and ``funcs.go`` of Grafana 11.

What to know of it when writing a rule: of two sets of numbers only those pairs remain whose labels are equal, or where one's labels hold
all of the other's (or it has none); the rest is dropped without a word. When either side is one and has no data, so has the whole. One
value on each side whose labels do not fit are put together all the same, and the labels are lost.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from tandem_dashboards.alarms.evaluate.grammar import Call, Constant, Reference, Tree, Unary, parse, references
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


@dataclass(frozen=True)
class Math:
    """``expression`` as Grafana has it: ``$A / $B > 0.8``."""

    expression: str

    @property
    def needs(self) -> tuple[str, ...]:
        """References that must be known before. ExpressionError when it cannot be read."""
        return references(parse(self.expression))

    def execute(self, known: dict[str, Values]) -> Values:
        """ExpressionError for an unknown reference, function or operator."""
        return _walk(parse(self.expression), known)


def _walk(tree: Tree, known: dict[str, Values]) -> Values:
    if isinstance(tree, Constant):
        return (Scalar(tree.value),)
    if isinstance(tree, Reference):
        if tree.name not in known:
            raise ExpressionError(f"math refers to ${tree.name}, which there is not")
        return known[tree.name]
    if isinstance(tree, Unary):
        operand = _walk(tree.operand, known)
        return tuple(_each(value, lambda cell: _alone(tree.operator, cell)) for value in operand)
    if isinstance(tree, Call):
        return _called(tree, known)
    left, right = _walk(tree.left, known), _walk(tree.right, known)
    return tuple(_joined(tree.operator, where, a, b) for where, a, b in _pairs(left, right))


def _pairs(left: Values, right: Values) -> list[tuple[Labels, Value, Value]]:
    if not left or not right:
        return []
    if (len(left) == 1 or len(right) == 1) and (isinstance(left[0], NoData) or isinstance(right[0], NoData)):
        return [((), left[0], right[0])]
    pairs = []
    for a in left:
        for b in right:
            fitting = _fitting(a.labels, b.labels)
            if fitting is not None:
                pairs.append((fitting, a, b))
    if not pairs and len(left) == 1 and len(right) == 1:
        return [((), left[0], right[0])]
    return pairs


def _fitting(a: Labels, b: Labels) -> Labels | None:
    """The labels of the two together, None when they do not fit."""
    if not a or not b or a == b:
        return a or b
    if len(a) == len(b):
        return None
    more, fewer = (a, b) if len(a) > len(b) else (b, a)
    return more if set(fewer) <= set(more) else None


def _joined(operator: str, where: Labels, a: Value, b: Value) -> Value:
    if isinstance(a, NoData) or isinstance(b, NoData):
        return NoData()
    if isinstance(a, Series):
        if isinstance(b, Series):
            others = dict(b.points)
            points = tuple((at, _both(operator, cell, others[at])) for at, cell in a.points if at in others)
            return Series(where, points)
        fixed = b.value
        return Series(where, tuple((at, _both(operator, cell, fixed)) for at, cell in a.points))
    if isinstance(b, Series):
        first = a.value
        return Series(where, tuple((at, _both(operator, first, cell)) for at, cell in b.points))
    value = _both(operator, a.value, b.value)
    return Scalar(value) if isinstance(a, Scalar) and isinstance(b, Scalar) else Number(where, value)


def _each(value: Value, change: Callable[[float | None], float | None]) -> Value:
    if isinstance(value, NoData):
        return value
    if isinstance(value, Series):
        return Series(value.labels, tuple((at, change(cell)) for at, cell in value.points))
    if isinstance(value, Number):
        return Number(value.labels, change(value.value))
    return Scalar(change(value.value))


def _alone(operator: str, cell: float | None) -> float | None:
    if cell is None or math.isnan(cell):
        return cell
    return float(cell == 0) if operator == "!" else -cell


def _both(operator: str, a: float | None, b: float | None) -> float | None:
    if a is None or b is None:
        return None
    if operator == "||" and a != 0:  # NaN is not zero: it counts as true
        return 1.0
    if operator == "&&" and a == 0:
        return 0.0
    if math.isnan(a) or math.isnan(b):
        return math.nan
    return _OPERATORS[operator](a, b)


def _quotient(a: float, b: float) -> float:
    if b != 0:
        return a / b
    return math.nan if a == 0 else math.copysign(math.inf, a) * math.copysign(1, b)


def _power(a: float, b: float) -> float:
    try:
        return math.pow(a, b)
    except OverflowError:
        return math.copysign(math.inf, a if b % 2 == 1 else 1)
    except ValueError:
        return math.inf if a == 0 else math.nan


_OPERATORS: dict[str, Callable[[float, float], float]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": _quotient,
    "%": lambda a, b: math.nan if b == 0 or math.isinf(a) else math.fmod(a, b),
    "**": _power,
    "==": lambda a, b: float(a == b),
    "!=": lambda a, b: float(a != b),
    ">": lambda a, b: float(a > b),
    ">=": lambda a, b: float(a >= b),
    "<": lambda a, b: float(a < b),
    "<=": lambda a, b: float(a <= b),
    "||": lambda a, b: float(a != 0 or b != 0),
    "&&": lambda a, b: float(a != 0 and b != 0),
}


def _logarithm(x: float) -> float:
    if math.isnan(x) or x < 0:
        return math.nan
    return -math.inf if x == 0 else math.log(x)


_ROUNDED: dict[str, Callable[[float], float]] = {
    "abs": abs,
    "log": _logarithm,
    "round": lambda x: math.copysign(math.floor(abs(x) + 0.5), x),
    "ceil": math.ceil,
    "floor": math.floor,
}
_CONSTANTS: dict[str, float | None] = {"nan": math.nan, "inf": math.inf, "null": None}


def _called(call: Call, known: dict[str, Values]) -> Values:
    if call.name in _CONSTANTS and not call.arguments:
        return (Scalar(_CONSTANTS[call.name]),)
    if call.name not in _ROUNDED or len(call.arguments) != 1:
        raise ExpressionError(f"math has no function {call.name} of {len(call.arguments)} arguments")

    def change(cell: float | None) -> float:
        if cell is None:
            return math.nan
        return float(_ROUNDED[call.name](cell)) if math.isfinite(cell) or call.name in ("abs", "log") else cell

    return tuple(_each(value, change) for value in _walk(call.arguments[0], known))
