"""Reduce: a series becomes a number. After ``pkg/expr/mathexp/reduce.go`` of Grafana 11.

The mode says what becomes of nulls, NaN and infinities: strict (None; one of them makes sum, mean, min and max NaN), ``dropNN`` (left out
beforehand; a series without any number then has a null, which is no data for its labels) or ``replaceNN`` (another value instead).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from tandem_dashboards.alarms.evaluate.values import ExpressionError, NoData, Number, Series, Value, Values

Mode = Literal["dropNN", "replaceNN"]
Reducer = Literal["sum", "mean", "min", "max", "count", "last", "median"]
_Cells = Sequence[float | None]


@dataclass(frozen=True)
class Reduce:
    """``of`` is a reference to a query or an expression, ``by`` one of ``REDUCERS``."""

    of: str
    by: Reducer
    mode: Mode | None = None
    replacement: float = 0.0

    @property
    def needs(self) -> tuple[str, ...]:
        """References that must be known before."""
        return (self.of,)

    def execute(self, known: dict[str, Values]) -> Values:
        """ExpressionError when it is given anything but series, numbers or no data."""
        if self.by not in REDUCERS:
            raise ExpressionError(f"reduce knows no {self.by!r}; it knows {', '.join(REDUCERS)}")
        made: list[Value] = []
        for value in known[self.of]:
            if isinstance(value, Series):
                made.append(Number(value.labels, self._reduced([cell for _, cell in value.points])))
            elif isinstance(value, Number):  # already reduced
                mapped = self._mapped(value.value)
                if mapped is not None or self.mode is None:
                    made.append(Number(value.labels, mapped))
            elif isinstance(value, NoData):
                made.append(value)
            else:
                raise ExpressionError("only series can be reduced, not a constant")
        return tuple(made)

    def _reduced(self, cells: _Cells) -> float | None:
        if self.mode is not None:
            cells = [mapped for cell in cells if (mapped := self._mapped(cell)) is not None]
        result = REDUCERS[self.by](cells)
        if self.mode is None or result is None or not math.isnan(result):
            return result
        return None if self.mode == "dropNN" else self.replacement

    def _mapped(self, cell: float | None) -> float | None:
        if self.mode is None or (cell is not None and math.isfinite(cell)):
            return cell
        return None if self.mode == "dropNN" else self.replacement


def _sum(cells: _Cells) -> float:
    return math.nan if any(cell is None for cell in cells) else float(sum(cell for cell in cells if cell is not None))


def _mean(cells: _Cells) -> float:
    return _sum(cells) / len(cells) if cells else math.nan


def _extreme(choose: Callable[[list[float]], float]) -> Callable[[_Cells], float]:
    def find(cells: _Cells) -> float:
        numbers = [cell for cell in cells if cell is not None and not math.isnan(cell)]
        return choose(numbers) if numbers and len(numbers) == len(cells) else math.nan

    return find


def _median(cells: _Cells) -> float:
    numbers = sorted(cell for cell in cells if cell is not None and not math.isnan(cell))
    if not numbers or len(numbers) != len(cells):
        return math.nan
    middle = len(numbers) // 2
    return numbers[middle] if len(numbers) % 2 else (numbers[middle - 1] + numbers[middle]) / 2


def _last(cells: _Cells) -> float | None:
    return cells[-1] if cells else math.nan


REDUCERS: dict[Reducer, Callable[[_Cells], float | None]] = {
    "sum": _sum,
    "mean": _mean,
    "min": _extreme(min),
    "max": _extreme(max),
    "count": lambda cells: float(len(cells)),
    "last": _last,
    "median": _median,
}
