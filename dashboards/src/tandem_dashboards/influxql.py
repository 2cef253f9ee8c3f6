"""A query in InfluxQL, checked against the schema when it is made: an unknown measurement, tag or field is an error that names it.

select(mean("rsrp_dbm"), of="radio", where=[chosen("probe")], by=["path", "operator"], every=INTERVAL)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Final, Literal

from tandem.schema.metrics import COMMON_FIELDS, COMMON_TAGS, MEASUREMENTS, Field, Kind
from tandem_dashboards.expressions import Condition, Expression, quoted, value
from tandem_server.schema.derived import DERIVED_POLICIES, HOURS_OF
from tandem_server.schema.measurements import SERVER_MEASUREMENTS
from tandem_server.schema.rollups import NOT_ROLLED, ROLLUPS

INTERVAL = "$__interval"
"""As wide as a pixel or the panel's least interval: Grafana puts the time in."""

RESOLUTION: Final = "${resolution:raw}"
"""Retention policy by the board's time range, raw for short ones. Only names that raw records and roll-ups share."""
ROLLED: Final = "${rolled:raw}"
"""Likewise, but never raw: for what only roll-ups have (``records``, ``rsrp_dbm_min``, ``state_silent_count`` …)."""
RAW = "kept"
Policy = Literal["kept", "minute", "hour", "${resolution:raw}", "${rolled:raw}"]


class UnknownNameError(LookupError):
    """A query names what the schema has not; the message says what, where, and what was perhaps meant."""


class QueryError(ValueError):
    """The query's names exist, but the query makes no sense: the message says why."""


@dataclass(frozen=True)
class Output:
    """One column of an answer. ``measurement``: whose; None when computed. ``field``: whose figures they are; None when of none, and of a
    tag. ``unit``: the schema's. ``kind``: a tag is ``str``."""

    name: str
    measurement: str | None
    field: Field | None
    unit: str
    kind: Kind = "float"


@dataclass(frozen=True)
class Select:
    """A checked query: ``text`` for Grafana, and what its columns are. Made by ``select``. ``grouped``: tags that it groups by; ``tags``:
    these, and tags among its columns: what an outer query may use as tags."""

    text: str
    outputs: tuple[Output, ...]
    grouped: tuple[str, ...]
    tags: tuple[str, ...]
    measurement: str
    every: str | None
    policy: Policy | None

    def output(self, name: str) -> Output:
        """The column called ``name``."""
        for output in self.outputs:
            if output.name == name:
                return output
        raise UnknownNameError(f"the query has no column {name!r}; it has {', '.join(o.name for o in self.outputs)}")


def select(
    *columns: Expression | str,
    of: str | Select,
    where: Sequence[Condition] = (),
    by: Sequence[str] = (),
    every: str | None = None,
    fill: str | None = None,
    policy: Policy | None = None,
    recent: str | None = None,
    timed: bool = True,
    newest_first: bool = False,
    limit: int | None = None,
) -> Select:
    """``SELECT`` of ``columns`` (expressions, or names of fields) ``of`` a measurement or of another query.

    ``by``: tags to group by. ``every``: width of the time windows (``INTERVAL``, or ``"1m"``); a window without a point is null, so that a
    chart shows the gap (the panel's ``cadence`` keeps windows from being narrower than points are apart), unless ``fill`` says
    otherwise (``"none"``: left out; ``"0"``; ``"previous"``). ``policy``: ``RESOLUTION`` or ``ROLLED`` for any time range, ``"hour"`` or
    ``"minute"`` for one roll-up; None: raw records. Held to the board's time range unless ``timed`` is False (a query around another
    one is not); ``recent`` (``"5m"``) also to the last while before now, for what is shown as "now": a panel over silence must be
    empty, not show the last value for ever. UnknownNameError, QueryError: see there.
    """
    expressions = [value(column) if isinstance(column, str) else column for column in columns]
    if not expressions:
        raise QueryError("a query needs a column")
    if policy and isinstance(of, Select):
        raise QueryError("the retention policy belongs to the inner query")
    source = _source(of, policy)
    outputs = _outputs(expressions, source)
    for condition in where:
        source.check(condition)
    for tag in by:
        source.tag(tag)
    terms = _time_terms(of, timed, recent) + [condition.text for condition in where]
    parts = ["SELECT " + ", ".join(_column(e, o) for e, o in zip(expressions, outputs, strict=True))]
    parts.append("FROM " + _from(of, policy))
    if terms:
        parts.append("WHERE " + " AND ".join(terms))
    groups = [*([f"time({every})"] if every else []), *(quoted(tag) for tag in by)]
    if groups:
        parts.append("GROUP BY " + ", ".join(groups))
    if every:
        parts.append(f"fill({fill or 'null'})")
    elif fill:
        raise QueryError("fill() without time windows (every=…) does nothing")
    if newest_first:
        parts.append("ORDER BY time DESC")
    if limit is not None:
        parts.append(f"LIMIT {limit}")
    measurement = of.measurement if isinstance(of, Select) else of
    its_policy = of.policy if isinstance(of, Select) else policy
    tags = (*by, *_tags_among(outputs, source))
    return Select(" ".join(parts), outputs, tuple(by), tags, measurement, every, its_policy)


def windowed(
    *columns: Expression | str,
    of: str,
    where: Sequence[Condition] = (),
    by: Sequence[str] = (),
    policy: Policy = RESOLUTION,
    fill: str | None = None,
) -> Select:
    """``select`` for a chart over any time range: in windows as wide as a pixel or the panel's ``cadence``."""
    return select(*columns, of=of, where=where, by=by, every=INTERVAL, policy=policy, fill=fill)


def tag_values(tag: str, of: str, where: Sequence[Condition] = ()) -> str:
    """``SHOW TAG VALUES``, for a variable's list: every value that the database's index has, whatever the time range."""
    source = _source(of, None)
    source.tag(tag)
    for condition in where:
        source.check(condition)
    terms = f" WHERE {' AND '.join(c.text for c in where)}" if where else ""
    return f"SHOW TAG VALUES FROM {quoted(of)} WITH KEY = {quoted(tag)}{terms}"


@dataclass(frozen=True)
class _Source:
    """What a query reads from, a measurement or another query: its ``tags``, and its ``fields`` by name. ``called``: in messages."""

    called: str
    tags: tuple[str, ...]
    fields: Mapping[str, Output]
    measurement: str | None = None

    def tag(self, name: str) -> None:
        """``name`` is a tag; UnknownNameError."""
        if name not in self.tags:
            raise UnknownNameError(f"{self.called} has no tag {name!r}; it has {', '.join(self.tags) or 'none'}")

    def read(self, name: str) -> Output:
        """The tag or field ``name``; UnknownNameError."""
        if name in self.tags:
            return Output(name, self.measurement, None, "", "str")
        if name not in self.fields:
            raise UnknownNameError(f"{self.called} has no field {name!r}{_perhaps(name, tuple(self.fields))}")
        return self.fields[name]

    def check(self, condition: Condition) -> None:
        """Its names are there, and are what it takes them for."""
        for name, sort in condition.names:
            if sort == "tag":
                self.tag(name)
            elif sort == "field" and name in self.tags:
                raise QueryError(f"{self.called}.{name} is a tag and is compared as text")
            else:
                self.read(name)


def _source(of: str | Select, policy: Policy | None) -> _Source:
    """The names of ``of``, if a measurement those in ``policy`` (None: raw); UnknownNameError when the schema has no such measurement or
    roll-up."""
    if isinstance(of, Select):
        return _Source("the inner query", of.tags, {output.name: output for output in of.outputs})
    raw = _raw(of)
    if of in DERIVED_POLICIES:
        kept = DERIVED_POLICIES[
            of
        ]  # what the server derives is in one policy; of days and their hours the time range says which
        if policy in (None, kept) or (policy == ROLLED and of in HOURS_OF):
            return raw
        by_range = " or ROLLED" if of in HOURS_OF else ""
        raise UnknownNameError(f"{of} is in the retention policy {kept!r}: ask it with policy={kept!r}{by_range}")
    if policy in (None, RAW):
        return raw
    if of not in ROLLUPS:
        raise UnknownNameError(f"{of} is not rolled up ({NOT_ROLLED.get(of, 'no reason told')}); ask it raw")
    rolled = _rolled(of, raw)
    if policy != RESOLUTION:
        return rolled
    both = {name: output for name, output in rolled.fields.items() if name in raw.fields}
    return _Source(f"{of} (raw and rolled up)", tuple(t for t in rolled.tags if t in raw.tags), both, of)


def _raw(measurement: str) -> _Source:
    if measurement in MEASUREMENTS:
        fields, tags = (
            (*COMMON_FIELDS, *MEASUREMENTS[measurement].fields),
            (*COMMON_TAGS, *MEASUREMENTS[measurement].tags),
        )
    elif measurement in SERVER_MEASUREMENTS:
        fields, tags = SERVER_MEASUREMENTS[measurement].fields, SERVER_MEASUREMENTS[measurement].tags
    else:
        known = (*MEASUREMENTS, *SERVER_MEASUREMENTS)
        raise UnknownNameError(f"the schema has no measurement {measurement!r}{_perhaps(measurement, known)}")
    outputs = {field.name: Output(field.name, measurement, field, field.unit, field.kind) for field in fields}
    return _Source(measurement, tags, outputs, measurement)


def _rolled(measurement: str, raw: _Source) -> _Source:
    rollup = ROLLUPS[measurement]
    for rolled in rollup.fields:
        raw.read(rolled.field)  # one that was renamed in the schema is told by its name
    fields = {}
    for column in rollup.columns:
        # A mean, last or sum, a minimum, a maximum has figures of the raw field; a count or sum of them has a unit only.
        bases = (column.name, column.name.removesuffix("_min"), column.name.removesuffix("_max"))
        field = next((raw.fields[base].field for base in bases if base in raw.fields), None)
        fields[column.name] = Output(column.name, measurement if field else None, field, column.unit, column.kind)
    return _Source(f"{measurement} (rolled up)", rollup.tags, fields, measurement)


def _perhaps(name: str, known: tuple[str, ...]) -> str:
    close = get_close_matches(name, known, 1)
    return f"; did you mean {close[0]!r}?" if close else f"; it has {', '.join(known)}"


def _tags_among(outputs: Sequence[Output], source: _Source) -> tuple[str, ...]:
    """Tags that are selected as columns: an outer query may group by them."""
    return tuple(o.name for o in outputs if o.field is None and o.kind == "str" and o.name in source.tags)


def _time_terms(of: str | Select, timed: bool, recent: str | None) -> list[str]:
    terms = ["$timeFilter"] if timed and not isinstance(of, Select) else []
    return [*terms, f"time >= now() - {recent}"] if recent else terms


def _from(of: str | Select, policy: str | None) -> str:
    if isinstance(of, Select):
        return f"({of.text})"
    if policy == ROLLED and of in HOURS_OF:  # each is in a policy of its own
        return f"{quoted(policy)}./^({HOURS_OF[of]}|{of})$/"
    policy = policy or DERIVED_POLICIES.get(of)
    return f"{quoted(policy)}.{quoted(of)}" if policy else quoted(of)


def _column(expression: Expression, output: Output) -> str:
    plain = expression.text == quoted(output.name)
    return expression.text if plain else f"{expression.text} AS {quoted(output.name)}"


def _outputs(expressions: Sequence[Expression], source: _Source) -> tuple[Output, ...]:
    outputs = [_output(expression, source) for expression in expressions]
    names = [output.name for output in outputs]
    for name in names:
        if names.count(name) > 1:
            raise QueryError(f"two columns are called {name!r}: give one another name with .named(…)")
    return tuple(outputs)


def _output(expression: Expression, source: _Source) -> Output:
    read = {name: source.read(name) for name, _ in expression.reads}
    for name, needs in expression.reads:
        its = read[name]
        if needs == "number" and its.kind not in ("int", "float"):
            what = "a tag, no number" if name in source.tags else f"no number ({its.kind})"
            raise QueryError(f"{source.called}.{name} is {what}: {expression.text}")
    name = expression.name or "value"
    if expression.shows is not None:
        return replace(read[expression.shows], name=name)
    return Output(name, None, None, expression.unit)
