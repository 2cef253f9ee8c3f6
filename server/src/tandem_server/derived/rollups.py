"""Roll-ups: what is new, each minute; what came late, again; and each hour once more when it is settled. A piece at a time.

These are continuous queries, run here and not by the database: InfluxDB 1.x lets an account that may only read make continuous queries,
which then write. And its own never look back; here what has been done is on the registry's disk, and what was missed is done later:

- each minute the minutes since the last time, with those before it in which lines may have come that are not taken for late;
- an hour of a probe for which the gateway noted late lines, whole, of raw records;
- each hour once, when what comes for it is late: so whatever kept the first from being done leaves no trace.

So in the end a roll-up is what it would be had it been made of all raw records at once, whatever the order in which they came.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from tandem_server.periodic import Periodic
from tandem_server.registry import LATE_S, Debounce, LateHour, Registry, Settled
from tandem_server.schema.rollups import FINEST, ROLLUPS, Step
from tandem_server.store import Influx, QueryError
from tandem_server.store.preparing import Kept, made_by, of_minutes, of_raw

CONSUMER = LOCK = "rollups"
_PERIOD_S = 10.0
_SETTLE_S = 5.0
_BUSY_S = 1.0
"""Between rounds while more is due: long enough for another one to have its turn."""
MINUTE_S, HOUR_S, DAY_S = 60, 3600, 86_400
SETTLED_AFTER_S = 900
"""So long after its end an hour is made once more: then whatever comes for it is noted as late."""

_EARLIEST_S = 1_577_836_800
"""2020-01-01: the gateway takes nothing older."""
_LOOK_S = 28 * DAY_S
_HOURS_EVERY_S = 600
_QUICK_S, _SLOW_S = 1.0, 5.0
FRESH = "fresh"
"""In the registry's table of what is settled: up to when minutes were made while they were new."""

_TOGETHER = 8
"""From so many probes on, an hour of theirs is made again for all probes by one statement."""


@dataclass(frozen=True, slots=True)
class Span:
    """Whole windows of one measurement, of one probe or of all: ``start_s`` to before ``end_s``, seconds since 1970 UTC."""

    measurement: str
    start_s: int
    end_s: int
    probe: str | None = None


class Rollups:
    """The work itself. StoreDown, QueryError, sqlite3.Error as they come: then what was under way is done again. Of one thread; one
    process at a time works, which has the LOCK. ``settle_s``: for how long a note of late lines stands before it is acted on."""

    def __init__(
        self,
        registry: Registry,
        store: Influx,
        kept: Kept,
        only: Collection[str] = tuple(ROLLUPS),
        settle_s: float = 30.0,
    ) -> None:
        self._registry, self._store, self._kept, self._only = registry, store, kept, only
        self._debounce = Debounce(settle_s)
        self._slice_s = dict.fromkeys(ROLLUPS, HOUR_S)

    def fresh(self, now_s: float) -> None:
        """Minutes that ended since the last time, and every ten of them their hours, the one under way too."""
        end_s = int(now_s) // MINUTE_S * MINUTE_S
        was = self._registry.late.settled().get(FRESH)
        since_s = end_s - HOUR_S  # what no one made for an hour, settling does
        if was is not None and since_s <= was.through_utc_s <= end_s:
            since_s = was.through_utc_s
        if since_s == end_s:
            return
        # What came since then and is older than this was noted as late.
        start_s = (since_s - LATE_S) // MINUTE_S * MINUTE_S - MINUTE_S
        for measurement in self._only:
            for statement in of_raw(measurement, "minute", self._store.database, start_s, end_s):
                self._store.query(statement)
        if end_s // _HOURS_EVERY_S != since_s // _HOURS_EVERY_S:
            hour_s = _hour(end_s)
            for measurement in self._only:
                self._store.query(of_minutes(measurement, self._store.database, hour_s - HOUR_S, hour_s + HOUR_S))
        self._registry.late.settle(FRESH, Settled("", end_s))

    def late(self, now_s: float, monotonic_s: float) -> Iterator[int]:
        """Make again what was noted and is ripe, a few hours at a time; yields how many notes were taken off by that."""
        ripe = self._debounce.ready(self._registry.late.pending(CONSUMER), monotonic_s)
        for span, notes in _spans(ripe):
            if span.measurement in ROLLUPS:
                self.make(span, now_s)
            self._registry.late.done(CONSUMER, notes)
            yield len(notes)

    def settle(self, now_s: float) -> Iterator[Span]:
        """Settle what is due, a slice at a time, what is furthest behind first; yields each slice when it is settled."""
        due_s = _hour(now_s - SETTLED_AFTER_S)
        through = {name: self._through(name, due_s) for name in self._only}
        while (start_s := min(through.values())) < due_s:
            measurement = min(through, key=lambda name: through[name])
            span = Span(measurement, start_s, min(due_s, start_s + self._slice_s[measurement]))
            began_s = time.monotonic()
            self.make(span, now_s)
            self._fit(measurement, time.monotonic() - began_s)
            self._registry.late.settle(measurement, Settled(made_by(measurement), span.end_s))
            through[measurement] = span.end_s
            yield span

    def make(self, span: Span, now_s: float) -> None:
        """Minutes and hours of ``span`` (whole hours), of raw records, as far as they are kept."""
        days: dict[Step, int | None] = {"minute": self._kept.minute_days, "hour": self._kept.hour_days}
        for step, kept in days.items():
            start_s = span.start_s if kept is None else max(span.start_s, _hour(now_s - kept * DAY_S) + HOUR_S)
            if start_s >= span.end_s:
                continue
            for statement in of_raw(span.measurement, step, self._store.database, start_s, span.end_s, span.probe):
                self._store.query(statement)

    def oldest(self, measurement: str, before_s: int) -> int:
        """The beginning of the first four weeks with a raw record; ``before_s`` without one. A look at all at once would open all
        shards."""
        counted = ROLLUPS[measurement].counted
        for start_s in range(_EARLIEST_S, before_s, _LOOK_S):
            span = f"time >= {start_s}s AND time < {min(before_s, start_s + _LOOK_S)}s"
            what = f'SELECT "{counted}" FROM "{FINEST.policy}"."{measurement}" WHERE {span} LIMIT 1'  # noqa: S608  of the schema
            if self._store.query(what):
                return start_s
        return before_s

    def _through(self, measurement: str, due_s: int) -> int:
        """How far it is settled. With another table than before all begins anew."""
        was = self._registry.late.settled().get(measurement)
        if was is None or was.made_by != made_by(measurement):
            was = Settled(made_by(measurement), self.oldest(measurement, due_s))
            self._registry.late.settle(measurement, was)
        return was.through_utc_s

    def _fit(self, measurement: str, took_s: float) -> None:
        """The next slice: larger while they take a moment, smaller when they hold up others."""
        now = self._slice_s[measurement]
        if took_s < _QUICK_S:
            self._slice_s[measurement] = min(DAY_S, 2 * now)
        elif took_s > _SLOW_S:
            self._slice_s[measurement] = max(HOUR_S, now // 2 // HOUR_S * HOUR_S)


class RollingSeries(Periodic):
    """The work of ``Rollups``, a round at a time; between them ``tandem-server series recompute`` has its turn."""

    def __init__(self, registry: Registry, store: Influx, kept: Kept, settle_s: float) -> None:
        # Often enough that a ripe note does not wait much longer.
        super().__init__("rollups", min(_PERIOD_S, settle_s / 3))
        self._registry = registry
        self._rollups = Rollups(registry, store, kept, settle_s=settle_s)

    def turn(self) -> float | None:
        """A round, unless the command is at it."""
        with self._registry.locked(LOCK) as ours:
            try:
                return _BUSY_S if ours and self._round() else None
            except QueryError as error:
                raise QueryError(f"{error}; hint: tandem-server series prepare") from error

    def _round(self) -> bool:
        """What is new, all late hours that are ripe, then settling for a few seconds; whether more is due."""
        self._rollups.fresh(time.time())
        for _ in self._rollups.late(time.time(), time.monotonic()):
            if not self._goes_on():
                return True
        until_s = time.monotonic() + _SETTLE_S
        settled = self._rollups.settle(time.time())
        return any(time.monotonic() > until_s or not self._goes_on() for _ in settled)

    def _goes_on(self) -> bool:
        """After each piece: what is new comes first. False when it is ending."""
        if self.ending:
            return False
        self._rollups.fresh(time.time())
        return True


def _spans(ripe: list[LateHour]) -> Iterator[tuple[Span, list[LateHour]]]:
    """What is to be made again, newest first: hours that follow one another in one piece, up to a day; many probes' hour at once."""
    by_hour: dict[tuple[str, int], list[LateHour]] = {}
    for one in ripe:
        by_hour.setdefault((one.measurement, one.hour_utc_s), []).append(one)
    of_probe: dict[tuple[str, str], list[LateHour]] = {}
    for (measurement, hour_s), notes in by_hour.items():
        if len(notes) >= _TOGETHER:
            yield Span(measurement, hour_s, hour_s + HOUR_S), notes
            continue
        for note in notes:
            of_probe.setdefault((measurement, note.probe), []).append(note)
    for (measurement, probe), notes in of_probe.items():
        run: list[LateHour] = []
        for note in sorted(notes, key=lambda one: -one.hour_utc_s):
            if run and (run[-1].hour_utc_s != note.hour_utc_s + HOUR_S or len(run) == 24):
                yield _span(measurement, probe, run), run
                run = []
            run.append(note)
        yield _span(measurement, probe, run), run


def _span(measurement: str, probe: str, notes: list[LateHour]) -> Span:
    return Span(measurement, notes[-1].hour_utc_s, notes[0].hour_utc_s + HOUR_S, probe)


def _hour(utc_s: float) -> int:
    return int(utc_s) // HOUR_S * HOUR_S
