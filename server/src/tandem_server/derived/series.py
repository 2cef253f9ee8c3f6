"""Derived series, a turn at a time: the hours that go on, every hour when it is over, and again those that records came late for.

Of an hour its coverage is made, the day that it belongs to, and its pairs: the same from the same records, whenever it is made. What is
there is compared with what should be, and only the difference is written.
"""

from __future__ import annotations

import logging
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tandem.schema.line_protocol import Point, tag_fault
from tandem.schema.metrics import Measurement
from tandem.schema.record import Value
from tandem_server.derived.coverage import (
    AROUND_NS,
    CLASS_WITHIN_S,
    HOLDS_S,
    HOUR_NS,
    S_NS,
    States,
    added,
    count,
    of_area,
    of_pair,
    pair_point,
)
from tandem_server.derived.reading import ProbeRecords, oldest_record, probes_with_records
from tandem_server.periodic import Periodic
from tandem_server.registry import Debounce, LateHour, Registry, Settled
from tandem_server.schema.derived import AREA, AREA_DAY, COVERAGE_DAY, DERIVED_POLICIES, PAIR_DAY, PROBE_AREA_DAY
from tandem_server.schema.measurements import SERVER_MEASUREMENTS, check_server, encode_point
from tandem_server.store import Influx, Rejected
from tandem_server.store.influx import literal

Identity = tuple[int, tuple[tuple[str, str], ...]]
"""Time, and the tags that are there, by name."""


class DerivedRefused(RuntimeError):  # noqa: N818  (as the store's LinesRefused)
    """The database will never take a point that was made here: a fault of ours, told with its reason."""


@dataclass(frozen=True, slots=True)
class Span:
    """[start, end) in UTC ns of one probe; None: of all, or of points that have no probe."""

    probe: str | None
    start_utc_ns: int
    end_utc_ns: int


class Derived:
    """The derived measurements in ``store``, each in its retention policy. StoreDown and QueryError as they come."""

    def __init__(self, store: Influx) -> None:
        self._store = store

    def points(self, measurement: str, span: Span) -> dict[Identity, dict[str, Value]]:
        """What is there, by identity; ``probe`` is among the tags."""
        answer = self._store.query(
            f"SELECT * FROM {_from(measurement)} WHERE {_of(span)} GROUP BY *",  # noqa: S608  constants
            {} if span.probe is None else {"probe": span.probe},
        )
        found: dict[Identity, dict[str, Value]] = {}
        for series in answer:
            tags = tuple(sorted((name, value) for name, value in series.tags.items() if value))
            names = series.columns[1:]
            for row in series.rows:
                found[int(row[0]), tags] = {n: v for n, v in zip(names, row[1:], strict=True) if v is not None}
        return found

    def replace(
        self, measurement: str, span: Span, points: Iterable[tuple[int, Mapping[str, str], Mapping[str, Value]]]
    ) -> bool:
        """Make ``points`` (time, tags without ``probe``, fields) all that there is of the probe in the span; whether anything changed.

        What stays the same is not touched. Of what changes, the new is written first, where that will do; a point that loses a field is
        deleted and written again. Broken off in between it is not whole, and done again it is.
        """
        wanted = {
            (utc_ns, _tags({"probe": span.probe or "", **tags})): dict(fields)
            for utc_ns, tags, fields in points
            # Records from before the gateway refused such tags are in the database.
            if fields and all(tag_fault(value) is None for value in tags.values())
        }
        there = self.points(measurement, span)
        gone = [one for one in there if one not in wanted]
        shrunk = [one for one in there if one in wanted and set(there[one]) - set(wanted[one])]
        self._delete(measurement, shrunk)
        changed = [one for one, fields in wanted.items() if one in shrunk or there.get(one) != fields]
        lines = [_line(measurement, one, wanted[one]) for one in changed]
        refused: list[Rejected] = self._store.write(lines, DERIVED_POLICIES[measurement]) if lines else []
        if refused:
            raise DerivedRefused(f"{lines[refused[0].index][:200]}: {refused[0].reason}")
        self._delete(measurement, gone)
        return bool(changed or gone)

    def _delete(self, measurement: str, points: Iterable[Identity]) -> None:
        for utc_ns, tags in points:
            known: dict[str, Any] = dict(tags)
            terms = [f"time = {utc_ns}"]
            terms += [f'"{tag}" = {literal(known.get(tag, ""))}' for tag in SERVER_MEASUREMENTS[measurement].tags]
            self._store.query(f'DELETE FROM "{measurement}" WHERE {" AND ".join(terms)}')  # noqa: S608  a constant, quoted


def _tags(tags: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, value) for name, value in tags.items() if value))


def _line(measurement: str, identity: Identity, fields: dict[str, Value]) -> str:
    utc_ns, tags = identity
    check_server(measurement, dict(tags), fields)
    return encode_point(Point(measurement, dict(tags), fields, utc_ns))


def _from(measurement: str) -> str:
    return f'"{DERIVED_POLICIES[measurement]}"."{measurement}"'


def _of(span: Span) -> str:
    of_probe = "" if span.probe is None else '"probe" = $probe AND '
    return f"{of_probe}time >= {int(span.start_utc_ns)} AND time < {int(span.end_utc_ns)}"


# --- One hour of one probe, made ------------------------------------------------------------------------------------

DAY_NS = 24 * HOUR_NS
PAIR_AROUND_S = 6 * 3600
"""So far apart may the ends of one pair's runs be."""

SEEN_AFTER_S = CLASS_WITHIN_S + AROUND_NS // S_NS
"""What is made of an hour depends on records up to this long after it."""

AFFECTED: Mapping[str, tuple[int, ...]] = {
    **dict.fromkeys(("radio", "position", "event", "health"), (-1, 0, 1, 2)),
    **dict.fromkeys(("run_begun", "subflow"), (0, 1, 2)),
    **dict.fromkeys(("connection", "run", "run_usage"), (0,)),
}
"""By measurement: which hours after its own a record has a part in. A pair is made by its Multipath TCP run's end, of what was before."""


_Rows = list[tuple[dict[str, str], dict[str, Value]]]
_Shape = Callable[[Mapping[str, Value]], dict[str, Value]]
_Days = tuple[tuple[Measurement, _Shape], ...]
_COVERAGE_DAYS: _Days = ((COVERAGE_DAY, dict), (PROBE_AREA_DAY, of_area))
_AREA_DAYS: _Days = ((AREA_DAY, dict),)
_PAIR_DAYS: _Days = ((PAIR_DAY, of_pair),)


class Making:
    """Reads and writes ``store``. StoreDown, QueryError, DerivedRefused."""

    def __init__(self, store: Influx) -> None:
        self._store, self._derived = store, Derived(store)

    def hour(self, probe: str, start_utc_ns: int) -> bool:
        """Make coverage and pairs of one probe in the hour that begins there, and its days; whether any of it changed."""
        records = ProbeRecords(self._store, probe)
        changed = self._coverage(records, probe, start_utc_ns)
        days = {start_utc_ns // DAY_NS * DAY_NS}
        pairs_changed, their_days = self._pairs(records, probe, start_utc_ns)
        # Also when nothing changed: whoever changed it may have been broken off before its day.
        for day in sorted(days):
            changed |= self._day(probe, day, "coverage", _COVERAGE_DAYS)
        for day in sorted(days | their_days):
            changed |= self._day(probe, day, "pair", _PAIR_DAYS)
        return changed or pairs_changed

    def together(self, hours_utc_ns: Iterable[int]) -> None:
        """Make what is of all probes together in these hours, each of which was made for every probe, and in their days."""
        hours = sorted(set(hours_utc_ns))
        for start in hours:
            rows = self._rows("coverage", Span(None, start, start + HOUR_NS))
            sums = _summed(rows, AREA.tags, of_area)
            points = [
                (start, dict(zip(AREA.tags, key, strict=True)), row) for key, row in sums if _placed(AREA.tags, key)
            ]
            self._derived.replace("area", Span(None, start, start + HOUR_NS), points)
        for day in sorted({start // DAY_NS * DAY_NS for start in hours}):
            self._day(None, day, "area", _AREA_DAYS)

    def _coverage(self, records: ProbeRecords, probe: str, start: int) -> bool:
        end = start + HOUR_NS
        states = _states(records, start, end)
        around = start - AROUND_NS, end + AROUND_NS
        counted = count(
            start,
            records.polls(*around),
            records.fixes(*around),
            records.handovers(start, end),
            records.slots(start, end),
            states,
        )
        points = [(start, key._asdict(), row.fields()) for key, row in sorted(counted.items())]
        return self._derived.replace("coverage", Span(probe, start, end), points)

    def _day(self, probe: str | None, start: int, of: str, wanted: _Days) -> bool:
        """The day's sums, of what its hours have."""
        span = Span(probe, start, start + DAY_NS)
        rows = self._rows(of, span)
        changed = False
        for measurement, shape in wanted:
            tags = tuple(tag for tag in measurement.tags if tag != "probe")
            sums = _summed(rows, tags, shape)
            points = [(start, dict(zip(tags, key, strict=True)), row) for key, row in sums if _placed(tags, key)]
            changed |= self._derived.replace(measurement.name, span, points)
        return changed

    def _rows(self, measurement: str, span: Span) -> _Rows:
        return [(dict(tags), fields) for (_, tags), fields in sorted(self._derived.points(measurement, span).items())]

    def _pairs(self, records: ProbeRecords, probe: str, start: int) -> tuple[bool, set[int]]:
        """Whether any changed; the days of those that were looked at."""
        changed, days = False, set()
        for runs in records.pairs(start, start + HOUR_NS, PAIR_AROUND_S):
            multipath = [run for run in runs if run.kind == "mptcp"]
            carried = records.carried(multipath[0]) if len(multipath) == 1 else {}
            found = pair_point(runs, records.operators(runs), carried)
            points = []
            if found is not None:
                states = _states(records, found.start_utc_ns, found.utc_ns)
                tags = {**found.tags, "mobility": states.most(found.start_utc_ns, found.utc_ns)}
                points = [(found.utc_ns, tags, found.fields)]
            for run in multipath:
                changed |= self._derived.replace("pair", Span(probe, run.utc_ns, run.utc_ns + 1), points)
                days.add(run.utc_ns // DAY_NS * DAY_NS)
        return changed, days


def _states(records: ProbeRecords, start: int, end: int) -> States:
    return States(records.tellings(start - (HOLDS_S * S_NS + AROUND_NS), end + SEEN_AFTER_S * S_NS))


def _placed(tags: tuple[str, ...], key: tuple[str, ...]) -> bool:
    """What is told by area has one."""
    return "area" not in tags or bool(key[tags.index("area")])


def _summed(rows: _Rows, tags: tuple[str, ...], shape: _Shape) -> Iterator[tuple[tuple[str, ...], dict[str, Value]]]:
    groups: dict[tuple[str, ...], list[dict[str, Value]]] = defaultdict(list)
    for told, fields in rows:
        groups[tuple(told.get(tag, "") for tag in tags)].append(shape(fields))
    return ((key, added(group)) for key, group in sorted(groups.items()))


# --- Which hours, and when ------------------------------------------------------------------------------------------

_LOG = logging.getLogger("tandem.derived")
CONSUMER = "coverage"
"""Under this name the gateway notes late hours for us, and the registry keeps how far hours are settled."""

MADE_BY = "coverage/1"
"""Another one makes all hours anew: to be raised when the same records give other figures."""

PERIOD_S = 60.0
_SHARE = 0.05
"""No more of the time than this goes into the hours that go on: with many probes they are made less often than once a minute."""

SETTLED_AFTER_S = SEEN_AFTER_S + 300
"""After an hour's end: its records, and those around it, are here, or they are late and noted (``registry/backfill.py``: 120 s)."""

_TURN_S = 120.0
"""So long hours of the past are made before those that go on are made again."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What one turn made: ``hours`` of probes; ``left``: there are more of the past to make."""

    hours: int
    left: bool


class DerivedSeries(Periodic):
    """What makes them, with what little others leave it."""

    nice = 19
    expected = (*Periodic.expected, DerivedRefused)

    def __init__(self, registry: Registry, store: Influx, debounce: Debounce | None = None) -> None:
        super().__init__("derived series", PERIOD_S)
        self._registry, self._store, self._making = registry, store, Making(store)
        self._debounce = debounce or Debounce()
        self._oldest: int | None = None
        self._going_on_s = self._again_s = 0.0

    def turn(self) -> float | None:
        """See ``once``; the hours that go on only as often as their share of the time allows."""
        going_on = time.monotonic() >= self._again_s
        try:
            return 0.0 if self.once(time.time_ns(), going_on=going_on).left else None
        finally:
            if going_on:
                self._again_s = time.monotonic() + self._going_on_s / _SHARE

    def once(self, now_utc_ns: int, for_s: float = _TURN_S, *, going_on: bool = True) -> Turn:
        """The hours that go on, unless ``going_on`` is False; then late ones and those that are not settled yet, for ``for_s`` at most.

        StoreDown, QueryError, DerivedRefused, sqlite3.Error: what was not made is made by the next turn.
        """
        self._oldest = self._keep_from(now_utc_ns)
        through = self._through()
        if through is None:
            return Turn(0, left=False)
        this, began = now_utc_ns // HOUR_NS * HOUR_NS, time.monotonic()
        newest = (this, this - HOUR_NS) if going_on else ()
        made = sum(self._all_probes(hour, anyway=False) for hour in newest if hour >= through)
        until = time.monotonic() + for_s
        self._going_on_s = until - for_s - began
        made += self._late(through, until)
        while through + HOUR_NS + SETTLED_AFTER_S * S_NS <= now_utc_ns:
            if time.monotonic() >= until or self.ending:
                return Turn(made, left=True)
            made += self._all_probes(through, anyway=True)
            if self.ending:
                return Turn(made, left=True)
            through += HOUR_NS
            self._registry.late.settle(CONSUMER, Settled(MADE_BY, through // S_NS))
        return Turn(made, left=False)

    def _keep_from(self, now_utc_ns: int) -> int | None:
        return oldest_kept(self._store, now_utc_ns)

    def _through(self) -> int | None:
        """Hours before it are settled; None: there is no record yet."""
        settled = self._registry.late.settled().get(CONSUMER)
        if settled is not None and settled.made_by == MADE_BY:
            return settled.through_utc_s * S_NS
        oldest = oldest_record(self._store)
        return None if oldest is None else oldest // HOUR_NS * HOUR_NS

    def _all_probes(self, hour: int, *, anyway: bool) -> int:
        """Make an hour of every probe that has records in it, and what is of all together: ``anyway``, else if anything changed."""
        made, changed = 0, False
        for probe in probes_with_records(self._store, hour, hour + HOUR_NS):
            if self.ending:
                return made
            changed |= self._making.hour(probe, hour)
            made += 1
        if changed or (anyway and made):
            self._making.together([hour])
        return made

    def _late(self, through: int, until: float) -> int:
        """Make again what noted hours have a part in, the latest first; of what is not settled yet, it will be made anyway."""
        pending = self._registry.late.pending(CONSUMER)
        made = 0
        again: set[tuple[str, int]] = set()
        of_hour: dict[int, list[LateHour]] = defaultdict(list)
        for one in self._debounce.ready(pending, time.monotonic()):
            of_hour[one.hour_utc_s].append(one)
        for _, notes in sorted(of_hour.items(), reverse=True):
            if time.monotonic() >= until:
                return made
            wanted = affected(notes, through) - again
            for probe, hour in sorted(wanted):
                if self.ending:
                    return made
                if self._oldest is not None and hour < self._oldest:
                    _LOG.warning("%s: records came for an hour that is not kept any more: it stays as it was", probe)
                    continue
                self._making.hour(probe, hour)
                made += 1
            self._making.together({hour for _, hour in wanted if self._oldest is None or hour >= self._oldest})
            again |= wanted
            self._registry.late.done(CONSUMER, notes)
        return made


def affected(notes: Iterable[LateHour], before_utc_ns: int) -> set[tuple[str, int]]:
    """Probes and hours (UTC ns) that have a part of what these notes are of, as far as they begin before ``before_utc_ns``."""
    hours = {
        (one.probe, one.hour_utc_s * S_NS + after * HOUR_NS)
        for one in notes
        for after in AFFECTED.get(one.measurement, ())
    }
    return {one for one in hours if one[1] < before_utc_ns}


def oldest_kept(store: Influx, now_utc_ns: int) -> int | None:
    """Before this hour raw records, or hours, may be gone: nothing is made again of what is left. None: all is kept."""
    answer = store.query(f'SHOW RETENTION POLICIES ON "{store.database}"')
    days = {row[0]: duration_s(str(row[1])) for series in answer for row in series.rows}
    kept = [s for name, s in days.items() if name in ("kept", "minute") and s]
    return None if not kept else (now_utc_ns - min(kept) * S_NS) // (24 * HOUR_NS) * 24 * HOUR_NS + 24 * HOUR_NS


def duration_s(text: str) -> int:
    """Go's way to write a duration (``168h0m0s``) in seconds; 0: without an end. ValueError."""
    match = re.fullmatch(r"(?:([0-9]+)h)?(?:([0-9]+)m)?(?:([0-9]+)s)?", text)
    if match is None or not text:
        raise ValueError(f"{text!r} is no duration")
    hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return hours * 3600 + minutes * 60 + seconds
