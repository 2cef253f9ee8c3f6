"""What an InfluxDB 1.x needs beside its database: retention policies, the mapping that boards ask, an account that only reads; and
how roll-ups are made in it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from tandem_server.schema.rollups import FINEST, MAPPING, MAPPING_POLICY, RESOLUTIONS, ROLLUPS, Column, Rollup, Step
from tandem_server.store.influx import Influx, literal, quoted

READER = "reader"
"""The account of Grafana and of whoever looks: it reads the one database, and can write, make and drop nothing."""

_LONGEST_MS = 2**62


@dataclass(frozen=True, slots=True)
class Kept:
    """For how many days raw records and roll-ups are kept; None: for ever."""

    raw_days: int | None = None
    minute_days: int | None = None
    hour_days: int | None = None


@dataclass(frozen=True, slots=True)
class Prepared:
    """What there is: retention policies with their durations (``0s``: for ever), and whether the mapping is right."""

    policies: dict[str, str]
    mapping: bool

    @property
    def lacks(self) -> list[str]:
        """What is not there."""
        wanted = [*(one.policy for one in RESOLUTIONS), MAPPING_POLICY]
        return [name for name in wanted if name not in self.policies] + ([] if self.mapping else ["mapping"])


def prepare(admin: Influx, kept: Kept) -> None:
    """Make database, policies and mapping as they should be; what is right already stays. ``admin`` may do all. QueryError, StoreDown."""
    name, raw = quoted(admin.database), _days(kept.raw_days)
    if admin.database not in [row[0] for series in admin.query("SHOW DATABASES") for row in series.rows]:
        first = f"DURATION {raw} REPLICATION 1 SHARD DURATION 7d NAME {quoted(FINEST.policy)}"
        admin.query(f"CREATE DATABASE {name} WITH {first}")
    there = look(admin).policies
    _policy(admin, there, FINEST.policy, raw, "7d", " DEFAULT")
    _policy(admin, there, "minute", _days(kept.minute_days), "28d")
    _policy(admin, there, "hour", _days(kept.hour_days), "364d")
    _policy(admin, there, MAPPING_POLICY, "INF", "3640d")
    if not _mapped(admin):
        admin.query(f"DROP SERIES FROM {quoted(MAPPING)}")
        admin.write(_mapping(), policy=MAPPING_POLICY)


def give_password(admin: Influx, user: str, password: str) -> bool:
    """To the account ``user``, which is made where it is not there; whether it was. QueryError, StoreDown."""
    there = any(row[0] == user for series in admin.query("SHOW USERS") for row in series.rows)
    what = f"SET PASSWORD FOR {user} =" if there else f"CREATE USER {user} WITH PASSWORD"
    admin.query(f"{what} {literal(password)}")
    return there


def prepare_reader(admin: Influx, password: str) -> None:
    """Make the reader, or give it this password and only its one right. QueryError, StoreDown.

    It is kept from writing only where ``runs_continuous_queries`` says no.
    """
    if give_password(admin, READER, password):
        admin.query(f"REVOKE ALL PRIVILEGES FROM {READER}")
        admin.query(f"REVOKE ALL ON {quoted(admin.database)} FROM {READER}")
    admin.query(f"GRANT READ ON {quoted(admin.database)} TO {READER}")


def runs_continuous_queries(admin: Influx) -> bool:
    """Whether the database runs continuous queries (by default it does).

    InfluxDB 1.x asks only for the right to read of who makes one, and runs it with the right to write: so there nobody only reads.
    """
    settings = [
        dict(zip(series.columns, row, strict=True))
        for series in admin.query("SHOW DIAGNOSTICS FOR 'config-cqs'")
        for row in series.rows
    ]
    return not settings or any(bool(one.get("enabled", True)) for one in settings)


def forget_continuous_queries(admin: Influx) -> None:
    """Drop all of this database: none of them is ours."""
    found = (s for s in admin.query("SHOW CONTINUOUS QUERIES") if s.name == admin.database)
    for row in [row for series in found for row in series.rows]:
        admin.query(f"DROP CONTINUOUS QUERY {quoted(row[0])} ON {quoted(admin.database)}")


def look(client: Influx) -> Prepared:
    """What there is of it; with the account that writes, too. QueryError, StoreDown."""
    policies = {
        row[0]: row[1]
        for series in client.query(f"SHOW RETENTION POLICIES ON {quoted(client.database)}")
        for row in series.rows
    }
    return Prepared(policies, MAPPING_POLICY in policies and _mapped(client))


def _days(days: int | None) -> str:
    return "INF" if days is None else f"{days}d"


def _policy(admin: Influx, there: dict[str, str], policy: str, duration: str, shard: str, default: str = "") -> None:
    """A shard is dropped as a whole when all of it is too old; its width holds for shards made from now on."""
    do, replication = ("ALTER", "") if policy in there else ("CREATE", " REPLICATION 1")
    what = f"{quoted(policy)} ON {quoted(admin.database)}"
    admin.query(f"{do} RETENTION POLICY {what} DURATION {duration}{replication} SHARD DURATION {shard}{default}")


def _mapping() -> list[str]:
    return [
        f'{MAPPING},step={number} resolution="{policy}",rolled="{rolled}",from_ms={start}i,below_ms={below}i 0'
        for number, (policy, rolled, start, below) in enumerate(_steps())
    ]


def _mapped(client: Influx) -> bool:
    """Whether the points of the mapping are there, and no others."""
    fields = '"resolution", "rolled", "from_ms", "below_ms"'
    found = client.query(f"SELECT {fields} FROM {quoted(MAPPING_POLICY)}.{quoted(MAPPING)}")  # noqa: S608  constants
    return sorted(tuple(row[1:]) for series in found for row in series.rows) == sorted(_steps())


def _steps() -> list[tuple[str, str, int, int]]:
    lowest = 0
    steps: list[tuple[str, str, int, int]] = []
    for one in RESOLUTIONS:
        below = _LONGEST_MS if one.below_s is None else one.below_s * 1000
        steps.append((one.policy, one.rolled, lowest, below))
        lowest = below
    return steps


# --- The statements that make roll-ups, for a span of time: of raw records, or hours of minutes ---------------------

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
