"""One hour of one probe, made: its coverage, the day that it belongs to, its pairs. The same from the same records, whenever it is made."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping

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
from tandem_server.derived.reading import ProbeRecords
from tandem_server.derived.stored import Derived, Span
from tandem_server.schema.derived import AREA, AREA_DAY, COVERAGE_DAY, PAIR_DAY, PROBE_AREA_DAY
from tandem_server.store import Influx

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
