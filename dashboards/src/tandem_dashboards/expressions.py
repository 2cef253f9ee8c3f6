"""What a query selects: a field of the schema, a function of it, arithmetic. Each keeps which field it shows, and so its unit.

mean("rsrp_dbm")                                  in dBm, called rsrp_dbm
rate(last("received_bytes"), times=8, unit="bit/s").named("downlink")
total("bytes_retrans") / total("bytes_sent") * 100
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

Needs = Literal["any", "number"]


@dataclass(frozen=True)
class Expression:
    """``text``: InfluxQL. ``reads``: the names in it, each with what the function around it needs. ``shows``: the field whose unit
    the figures have, None when they have another: then ``unit``, in the schema's words ("" for a count). ``name``: of the column."""

    text: str
    reads: tuple[tuple[str, Needs], ...]
    shows: str | None
    unit: str = ""
    name: str | None = None

    def named(self, name: str) -> Expression:
        """The same, called ``name`` in tables and in ``$col`` of an alias."""
        return replace(self, name=name)

    def in_unit(self, unit: str) -> Expression:
        """The same, in ``unit`` (the schema's words: ``bit/s``, ``B``, ``ms``, ``%`` …) instead of the field's own."""
        return replace(self, shows=None, unit=unit)

    def __add__(self, other: Operand) -> Expression:
        return _joined(self, "+", other)

    def __sub__(self, other: Operand) -> Expression:
        return _joined(self, "-", other)

    def __mul__(self, other: Operand) -> Expression:
        return _joined(self, "*", other)

    def __truediv__(self, other: Operand) -> Expression:
        # A function around a query that divides whole numbers takes its figures for whole ones, and cuts 1.2 to 1 (InfluxDB 1.x).
        return _joined(replace(self, text=f"1.0 * {self.text}"), "/", other)


Operand = Expression | int | float
Source = Expression | str
"""An expression, or the name of a field."""


def value(name: str) -> Expression:
    """The field itself, point by point (no function): for runs, where each point is wanted, and for texts."""
    return Expression(quoted(name), ((name, "any"),), name, name=name)


tag = value
"""A tag as a column, beside at least one field."""


def quoted(name: str) -> str:
    """An identifier of InfluxQL."""
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _source(source: Source) -> Expression:
    return value(source) if isinstance(source, str) else source


def _joined(left: Expression, operator: str, right: Operand) -> Expression:
    if not isinstance(right, Expression):
        # Multiplied, a figure has another unit; shifted, it has not.
        kept = left.shows if operator in "+-" else None
        return replace(left, text=f"({left.text} {operator} {right:.15g})", reads=_numbers(left), shows=kept)
    same = left.shows if operator in "+-" and left.shows == right.shows else None
    return Expression(
        f"({left.text} {operator} {right.text})", (*_numbers(left), *_numbers(right)), same, name=left.name
    )


def _numbers(expression: Expression) -> tuple[tuple[str, Needs], ...]:
    return tuple((name, "number") for name, _ in expression.reads)


def _function(influxql: str, needs: Needs = "number") -> Callable[[Source], Expression]:
    def call(source: Source) -> Expression:
        inner = _source(source)
        reads = _numbers(inner) if needs == "number" else inner.reads
        return replace(inner, text=f"{influxql}({inner.text})", reads=reads)

    call.__doc__ = f"InfluxQL's ``{influxql}()``, in the unit of what it is of."
    return call


mean = _function("mean")
median = _function("median")
total = _function("sum")
least = _function("min")
greatest = _function("max")
spread = _function("spread")
deviation = _function("stddev")
difference = _function("difference")
rises = _function("non_negative_difference")
running_total = _function("cumulative_sum")
first = _function("first", "any")
last = _function("last", "any")
most_frequent = _function("mode", "any")
distinct = _function("distinct", "any")


def count(source: Source) -> Expression:
    """How many points have the field; called ``count`` unless named."""
    inner = _source(source)
    return Expression(f"count({inner.text})", inner.reads, None, "", "count")


def count_distinct(source: Source) -> Expression:
    """How many different values the field has; called ``count`` unless named."""
    inner = _source(source)
    return Expression(f"count(distinct({inner.text}))", inner.reads, None, "", "count")


def percentile(source: Source, percent: float) -> Expression:
    """The smallest value that ``percent`` of the points do not exceed; called ``<field>_p<percent>``."""
    inner = _source(source)
    name = f"{inner.name}_p{percent:g}" if inner.name else None
    return replace(inner, text=f"percentile({inner.text}, {percent:g})", reads=_numbers(inner), name=name)


def moving_mean(source: Source, points: int) -> Expression:
    """Mean of this and the ``points`` - 1 points before."""
    inner = _source(source)
    return replace(inner, text=f"moving_average({inner.text}, {points})", reads=_numbers(inner))


def rate(source: Source, *, per: str = "1s", times: float = 1, unit: str) -> Expression:
    """Growth of a counter ``per`` time, falls (a counter that began again) left out, multiplied by ``times``; in ``unit``, which is no
    field's: ``rate(last("received_bytes"), times=8, unit="bit/s")``."""
    inner = _source(source)
    grown = replace(
        inner, text=f"non_negative_derivative({inner.text}, {per})", reads=_numbers(inner), shows=None, unit=unit
    )
    return grown if times == 1 else replace(grown * times, unit=unit)


def integral(source: Source, *, per: str = "1s", unit: str) -> Expression:
    """Area under the field, as ``unit``; ``per`` is the time unit of the figures."""
    inner = _source(source)
    return replace(inner, text=f"integral({inner.text}, {per})", reads=_numbers(inner), shows=None, unit=unit)


def top(source: Source, how_many: int) -> Expression:
    """The ``how_many`` greatest points."""
    inner = _source(source)
    return replace(inner, text=f"top({inner.text}, {how_many})", reads=_numbers(inner))


def bottom(source: Source, how_many: int) -> Expression:
    """The ``how_many`` least points."""
    inner = _source(source)
    return replace(inner, text=f"bottom({inner.text}, {how_many})", reads=_numbers(inner))
