"""One hour of one probe: radio ⨝ position ⨝ mobility ⨝ goodput, counted by modem, technology, area and state. Pure.

Whatever happened belongs to the poll of its path at or before it, and so to that poll's technology, area and state: so handovers,
seconds of goodput and steps of the way are counted where the time is.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tandem.schema.nearest import nearest
from tandem_server.analysis.coverage.counts import Counts
from tandem_server.analysis.coverage.geohash import MOST_LETTERS, geohash, letters_for
from tandem_server.analysis.coverage.seen import S_NS, Fix, Handover, Poll, Slot
from tandem_server.analysis.coverage.states import States
from tandem_server.analysis.coverage.way import Step, steps

HOUR_NS = 3600 * S_NS

SUCCESSIVE_NS = 2_500_000_000
"""A poll stands for the time until the next, and no longer than this; the detectors call polls successive up to here."""

AROUND_NS = 15 * S_NS
"""What the hour's joins see of the time around it: polls and fixes just before and just after."""

_COARSE_LETTERS = 5
"""Of a coarse position without an error, which no collector sends: the least step that can be configured is of this size."""


class Key(NamedTuple):
    """What a row is of; empty where it is not known."""

    path: str
    operator: str
    rat: str
    area: str
    mobility: str


def count(
    start_utc_ns: int,
    polls: Iterable[Poll],
    fixes: Sequence[Fix],
    handovers: Iterable[Handover],
    slots: Iterable[Slot],
    states: States,
) -> dict[Key, Counts]:
    """The rows of the hour that begins at ``start_utc_ns``. Records of ``AROUND_NS`` before and after it are to be given, too. Each thing
    is counted in one hour: the one in which it happened, or ended."""
    end_utc_ns = start_utc_ns + HOUR_NS
    rows: dict[Key, Counts] = defaultdict(Counts)
    place = Places(fixes, states)
    of_path: dict[str, list[Poll]] = defaultdict(list)
    for poll in polls:
        of_path[poll.path].append(poll)
    lines: dict[str, _Line] = {}
    for path, own in sorted(of_path.items()):
        lines[path] = line = _Line(own, place)
        for poll, key, stands_ns in line.rows():
            if start_utc_ns <= poll.utc_ns < end_utc_ns and poll.answered:
                _count_poll(rows[key], poll, stands_ns)
    way = steps(fixes)
    for step in way:
        if not start_utc_ns < step.end_utc_ns <= end_utc_ns:
            continue
        for line in lines.values():
            found = line.at(step.end_utc_ns)
            if found is not None:
                row = rows[found]
                row.way_time_ns += step.end_utc_ns - step.start_utc_ns
                if step.metres:
                    row.way_m.append(step.metres)
    known = _Spans(way)
    for handover in handovers:
        if start_utc_ns <= handover.utc_ns < end_utc_ns:
            key = _key(lines, place, handover.path, handover.operator, handover.utc_ns)
            rows[key].counted["handovers"] += 1
            if known.hold(handover.utc_ns):
                rows[key].counted["way_handovers"] += 1
    for slot in slots:
        if start_utc_ns <= slot.utc_ns < end_utc_ns:
            key = _key(lines, place, slot.path, "", slot.utc_ns + S_NS // 2)
            rows[key].goodput_bit_per_s.append(slot.goodput_bit_per_s)
    return dict(rows)


class Places:
    """Area and state of any moment: the fix nearest within a second, as records are joined everywhere, and the state then."""

    def __init__(self, fixes: Sequence[Fix], states: States) -> None:
        self._fixes, self._times, self._states = fixes, [fix.utc_ns for fix in fixes], states
        self._areas = [_area(fix) for fix in fixes]

    def of(self, times_utc_ns: Sequence[int]) -> list[tuple[str, str]]:
        """Area and mobility state at each time."""
        areas = nearest(times_utc_ns, self._times, self._areas)
        return [(area or "", self._states.at(t)) for t, area in zip(times_utc_ns, areas, strict=True)]


def _area(fix: Fix) -> str:
    if fix.error_m is None:
        return geohash(fix.latitude_deg, fix.longitude_deg, MOST_LETTERS if fix.full else _COARSE_LETTERS)
    return geohash(fix.latitude_deg, fix.longitude_deg, letters_for(fix.error_m))


class _Line:
    """One path's polls in order, each with its key."""

    def __init__(self, polls: Sequence[Poll], place: Places) -> None:
        self._polls = sorted(polls, key=lambda p: p.utc_ns)
        self._times = [poll.utc_ns for poll in self._polls]
        places = place.of(self._times)
        self._keys = [Key(p.path, p.operator, p.rat, *where) for p, where in zip(self._polls, places, strict=True)]

    def rows(self) -> Iterable[tuple[Poll, Key, int]]:
        """Each poll, its key, and the time in ns that it stands for."""
        for i, poll in enumerate(self._polls):
            after = self._times[i + 1] - poll.utc_ns if i + 1 < len(self._times) else SUCCESSIVE_NS
            yield poll, self._keys[i], min(after, SUCCESSIVE_NS)

    def at(self, utc_ns: int) -> Key | None:
        """Of the last answered poll that is not older than ``SUCCESSIVE_NS``."""
        i = bisect_right(self._times, utc_ns) - 1
        while i >= 0 and utc_ns - self._times[i] <= SUCCESSIVE_NS:
            if self._polls[i].answered:
                return self._keys[i]
            i -= 1
        return None


def _key(lines: dict[str, _Line], place: Places, path: str, operator: str, utc_ns: int) -> Key:
    found = lines[path].at(utc_ns) if path in lines else None
    return found or Key(path, operator, "", *place.of([utc_ns])[0])


def _count_poll(row: Counts, poll: Poll, stands_ns: int) -> None:
    row.time_ns += stands_ns
    row.counted["polls"] += 1
    row.counted["polls_unserved"] += not poll.served
    if poll.rsrp_dbm is not None:
        row.rsrp_dbm.append(poll.rsrp_dbm)


class _Spans:
    def __init__(self, way: Sequence[Step]) -> None:
        self._starts = [step.start_utc_ns for step in way]
        self._ends = [step.end_utc_ns for step in way]

    def hold(self, utc_ns: int) -> bool:
        """Whether a step of the way, its end included, was under way."""
        i = bisect_right(self._starts, utc_ns - 1) - 1
        return i >= 0 and utc_ns <= self._ends[i]
