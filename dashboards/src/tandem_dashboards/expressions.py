"""What a query selects (a field of the schema, a function of it, arithmetic: each keeps which field it shows, and so its unit), and the
conditions of a query, which name their tags and fields so that these can be checked.

mean("rsrp_dbm")                                  in dBm, called rsrp_dbm
rate(last("received_bytes"), times=8, unit="bit/s").named("downlink")
total("bytes_retrans") / total("bytes_sent") * 100
where=[chosen("probe"), equal("kind", "mptcp")]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

Needs = Literal["any", "number"]
Sort = Literal["tag", "field", "either"]
Compared = Literal["=", "!=", "<", "<=", ">", ">="]


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

    def part_of(self, whole: Expression, name: str) -> Expression:
        """As a share of ``whole``, called ``name``: 0 to 1, written as a percentage."""
        return (self / whole).in_unit("share").named(name)

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
    """The field itself, point by point (no function): for runs, where each point is wanted, and for texts. Or a tag as a column, beside at
    least one field."""
    return Expression(quoted(name), ((name, "any"),), name, name=name)


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
total = _function("sum")
least = _function("min")
greatest = _function("max")
first = _function("first", "any")
last = _function("last", "any")


def count(source: Source) -> Expression:
    """How many points have the field; called ``count`` unless named."""
    inner = _source(source)
    return Expression(f"count({inner.text})", inner.reads, None, "", "count")


def percentile(source: Source, percent: float) -> Expression:
    """The smallest value that ``percent`` of the points do not exceed; called ``<field>_p<percent>``."""
    inner = _source(source)
    name = f"{inner.name}_p{percent:g}" if inner.name else None
    return replace(inner, text=f"percentile({inner.text}, {percent:g})", reads=_numbers(inner), name=name)


def rate(source: Source, *, per: str = "1s", times: float = 1, unit: str) -> Expression:
    """Growth of a counter ``per`` time, falls (a counter that began again) left out, multiplied by ``times``; in ``unit``, which is no
    field's: ``rate(last("received_bytes"), times=8, unit="bit/s")``."""
    inner = _source(source)
    grown = replace(
        inner, text=f"non_negative_derivative({inner.text}, {per})", reads=_numbers(inner), shows=None, unit=unit
    )
    return grown if times == 1 else replace(grown * times, unit=unit)


@dataclass(frozen=True)
class Condition:
    """``names``: every name in it, and whether it must be a tag or a field."""

    text: str
    names: tuple[tuple[str, Sort], ...]


def chosen(tag: str, variable: str | None = None) -> Condition:
    """The tag is one of those chosen in the board's variable of its name, or in ``variable``.

    ``:regex`` has Grafana escape each value and join several as ``(a|b)``, so that a hostile value stays a value; All is ``.*``, which
    finds points without the tag, too. ``^…$`` around a plain word is looked up in the database's index like an equality.
    """
    return Condition(f"{quoted(tag)} =~ /^${{{variable or tag}:regex}}$/", ((tag, "tag"),))


def every(variable: str) -> Condition:
    """All is chosen in ``variable``. Else the query has no rows, and costs nothing: the database sees before it reads."""
    return Condition(f"'${{{variable}:raw}}' = '.*'", ())


def some(variable: str) -> Condition:
    """Not All, but some are chosen in ``variable``."""
    return Condition(f"'${{{variable}:raw}}' != '.*'", ())


def equal(name: str, wanted: str | float | bool) -> Condition:
    """A tag or a field has this value."""
    return compare(name, "=", wanted)


def unequal(name: str, unwanted: str | float | bool) -> Condition:
    """A tag or a field has another value."""
    return compare(name, "!=", unwanted)


def compare(name: str, operator: Compared, wanted: str | float | bool) -> Condition:
    """A field (or, with a text, a tag) compared with a constant."""
    return Condition(
        f"{quoted(name)} {operator} {literal(wanted)}", ((name, "either" if isinstance(wanted, str) else "field"),)
    )


def present(tag: str) -> Condition:
    """The point has the tag."""
    return Condition(f"{quoted(tag)} != ''", ((tag, "tag"),))


def one_of(tag: str, *wanted: str) -> Condition:
    """The tag has one of these values."""
    return either(*(Condition(f"{quoted(tag)} = {literal(word)}", ((tag, "tag"),)) for word in wanted))


def either(*conditions: Condition) -> Condition:
    """At least one of them holds."""
    if len(conditions) == 1:
        return conditions[0]
    return Condition("(" + " OR ".join(c.text for c in conditions) + ")", tuple(n for c in conditions for n in c.names))


def literal(value: str | float | bool) -> str:
    """A constant of InfluxQL."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
        return f"'{escaped}'"
    return f"{value:.15g}"
