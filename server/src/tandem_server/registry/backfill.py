"""Hours that got lines late, queued so that what was made of them (roll-ups, coverage) is made again. And how far roll-ups are settled."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tandem_server.registry.table import Table
from tandem_server.schema.rollups import ROLLUPS

CONSUMERS = {
    "rollups": frozenset(name for name, one in ROLLUPS.items() if "probe" in one.tags),
    "coverage": frozenset(
        ("radio", "position", "event", "health", "connection", "subflow", "run_begun", "run", "run_usage")
    ),
}
"""Each has its own list of the measurements that it is made of, and takes off it what it has made again."""

SCHEMA = """
CREATE TABLE late_hours (
    consumer TEXT NOT NULL,
    probe TEXT NOT NULL,
    measurement TEXT NOT NULL,
    hour_utc_s INTEGER NOT NULL,
    version INTEGER NOT NULL,
    noted_utc_ns INTEGER NOT NULL,
    PRIMARY KEY (consumer, probe, measurement, hour_utc_s)
) STRICT, WITHOUT ROWID;
CREATE TABLE settled (
    measurement TEXT PRIMARY KEY,
    made_by TEXT NOT NULL,
    through_utc_s INTEGER NOT NULL
) STRICT;
"""
"""``version``: another one at each note. ``through_utc_s``: roll-ups of all before are settled, made by the table that ``made_by``
stands for."""

Hour = tuple[str, str, int]
"""Probe, measurement, and the hour's beginning in seconds since 1970 UTC."""


@dataclass(frozen=True, slots=True)
class LateHour:
    """One hour of a measurement of a probe. ``version``: as it was noted last; ``noted_utc_ns``: when that was."""

    probe: str
    measurement: str
    hour_utc_s: int
    version: int
    noted_utc_ns: int


@dataclass(frozen=True, slots=True)
class Settled:
    """How far one measurement's roll-ups are settled, and by which table they were made."""

    made_by: str
    through_utc_s: int


class BackfillQueue(Table):
    """The tables of late hours and of what is settled."""

    def note(self, hours: Iterable[Hour], now_utc_ns: int) -> None:
        """Lines of these hours are in the database now: one transaction for all. On return it is on the disk."""
        rows = [
            (consumer, *hour, now_utc_ns)
            for hour in hours
            for consumer, made_of in CONSUMERS.items()
            if hour[1] in made_of
        ]
        with self._write() as connection:
            # A random version, not a count: one that was taken off and comes again must not look like the one before.
            connection.executemany(
                "INSERT INTO late_hours VALUES (?1, ?2, ?3, ?4, random(), ?5) ON CONFLICT DO UPDATE SET"
                " version = excluded.version, noted_utc_ns = excluded.noted_utc_ns",
                rows,
            )

    def pending(self, consumer: str, most: int = 100_000) -> list[LateHour]:
        """What ``consumer`` has still to make again, the latest hours first: people look at these."""
        rows = self._rows(
            "SELECT probe, measurement, hour_utc_s, version, noted_utc_ns FROM late_hours WHERE consumer = ?"
            " ORDER BY hour_utc_s DESC, measurement, probe LIMIT ?",
            (consumer, most),
        )
        return [LateHour(*row) for row in rows]

    def waiting(self, consumer: str) -> tuple[int, int | None]:
        """How many hours of ``consumer`` wait, and when the oldest note of them was made, UTC ns."""
        row = self._row("SELECT count(*), min(noted_utc_ns) FROM late_hours WHERE consumer = ?", (consumer,))
        return int(row[0]), row[1]

    def done(self, consumer: str, hours: Iterable[LateHour]) -> None:
        """These were made again, as they were noted: what was noted anew meanwhile stays."""
        self._do_all(
            "DELETE FROM late_hours WHERE consumer = ? AND probe = ? AND measurement = ? AND hour_utc_s = ?"
            " AND version = ?",
            [(consumer, one.probe, one.measurement, one.hour_utc_s, one.version) for one in hours],
        )

    def settled(self) -> dict[str, Settled]:
        """By measurement."""
        rows = self._rows("SELECT measurement, made_by, through_utc_s FROM settled")
        return {measurement: Settled(made_by, through) for measurement, made_by, through in rows}

    def settle(self, measurement: str, settled: Settled) -> None:
        """Write this down in place of what was there."""
        self._do(
            "INSERT INTO settled VALUES (?1, ?2, ?3) ON CONFLICT (measurement) DO UPDATE SET"
            " made_by = excluded.made_by, through_utc_s = excluded.through_utc_s",
            (measurement, settled.made_by, settled.through_utc_s),
        )


SETTLE_S = 30.0
NOTED_AGAIN_S = SETTLE_S / 2
"""Half of the time that a note must stand: the other half is for a note on its way to the disk."""


class Debounce:
    """Which noted hours may be made again now: those whose note has stood unchanged for ``settle_s``.

    Whoever notes may leave a note of less than half of that ago unrepeated (``ingest/group_commit.py``): so a note is taken off only
    when no line can have come after it that was not noted for its sake. By the monotonic clock of who asks: no step of the system's
    moves it.
    """

    def __init__(self, settle_s: float = SETTLE_S) -> None:
        self._settle_s = settle_s
        self._seen: dict[Hour, tuple[int, float]] = {}

    def ready(self, pending: Iterable[LateHour], now_monotonic_s: float) -> list[LateHour]:
        """Of ``pending``, all that there are, those that are due."""
        seen, out = {}, []
        for one in pending:
            key = (one.probe, one.measurement, one.hour_utc_s)
            before = self._seen.get(key)
            first_s = before[1] if before is not None and before[0] == one.version else now_monotonic_s
            seen[key] = (one.version, first_s)
            if now_monotonic_s - first_s >= self._settle_s:
                out.append(one)
        self._seen = seen
        return out


# --- Which lines are late --------------------------------------------------------------------------------------------

LATE_S = 120
"""Lines older than this when the database has them are late. Continuous queries look back for longer (store/preparing.py)."""

_MADE_OF = frozenset().union(*CONSUMERS.values())
_DIGITS, _COARSE = 19, 11
"""Times are the last 19 digits of a line (2001 to 2286). Without the last 11 of them they are blocks of 100 s, 36 to the hour."""
_BLOCK_S, _HOUR_S = 100, 3600


def late_hours(probe: str, lines: Iterable[str], now_utc_ns: int) -> set[Hour]:
    """The hours of those of ``lines``, stored just now, that are late. Lines end in their time in ns."""
    bound = str(now_utc_ns - LATE_S * 10**9)
    late = [line for line in lines if line[-_DIGITS:] < bound]
    if not late:
        return set()
    blocks = {(line[: line.index(",")], line[-_DIGITS:-_COARSE]) for line in late}
    return {
        (probe, measurement, int(block) * _BLOCK_S // _HOUR_S * _HOUR_S)
        for measurement, block in blocks
        if measurement in _MADE_OF
    }
