"""Conditions of a query. Each names its tags and fields, so that they can be checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tandem_dashboards.expressions import quoted

Sort = Literal["tag", "field", "either"]
Compared = Literal["=", "!=", "<", "<=", ">", ">="]


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
