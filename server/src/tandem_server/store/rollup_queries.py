"""The InfluxQL that makes roll-ups, for a span of time: of raw records, or hours of minutes. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cache

from tandem_server.schema.rollups import FINEST, ROLLUPS, Column, Rollup, Step
from tandem_server.store.influx import literal, quoted

STEP_S: dict[Step, int] = {"minute": 60, "hour": 3600}
_WIDTH: dict[Step, str] = {"minute": "1m", "hour": "1h"}


@cache
def made_by(measurement: str) -> str:
    """What stands for the table by which this measurement's roll-ups are made: another table, another word."""
    rollup = ROLLUPS[measurement]
    table = repr((rollup.tags, [(c.name, c.kind, c.of_raw, c.of_finer, c.where) for c in rollup.columns]))
    return hashlib.sha256(table.encode()).hexdigest()[:12]


def of_raw(
    measurement: str, step: Step, database: str, start_s: int, end_s: int, probe: str | None = None
) -> Iterator[str]:
    """The statements that make the roll-ups of the raw records from ``start_s`` to before ``end_s`` (whole windows, seconds since 1970
    UTC), of one probe or of all."""
    rollup = ROLLUPS[measurement]
    span = _span(start_s, end_s) + ("" if probe is None else f' AND "probe" = {literal(probe)}')
    by_condition: dict[str | None, list[Column]] = {None: []}
    for column in rollup.columns:
        by_condition.setdefault(column.where, []).append(column)
    for where, columns in by_condition.items():
        made = [(column.of_raw, column.name) for column in columns]
        condition = span if where is None else f"{where} AND {span}"
        yield _select(made, rollup, step, database, FINEST.policy, condition)


def of_minutes(measurement: str, database: str, start_s: int, end_s: int) -> str:
    """The statement that makes hours of the minutes there are."""
    rollup = ROLLUPS[measurement]
    made = [(column.of_finer, column.name) for column in rollup.columns]
    return _select(made, rollup, "hour", database, "minute", _span(start_s, end_s))


def _span(start_s: int, end_s: int) -> str:
    return f"time >= {start_s}s AND time < {end_s}s"


def _select(made: list[tuple[str, str]], rollup: Rollup, step: Step, database: str, source: str, condition: str) -> str:
    columns = ", ".join(f"{what} AS {quoted(name)}" for what, name in made)
    place, name = quoted(database), quoted(rollup.measurement)
    groups = ", ".join([f"time({_WIDTH[step]})", *(quoted(tag) for tag in rollup.tags)])
    return (
        f"SELECT {columns} INTO {place}.{quoted(step)}.{name} FROM {place}.{quoted(source)}.{name}"  # noqa: S608  quoted
        f" WHERE {condition} GROUP BY {groups} fill(none)"
    )
