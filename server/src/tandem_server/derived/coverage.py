"""Coverage: radio, goodput, handovers and ways by place and mobility, an hour of one probe at a time; and Multipath TCP against TCP
over each path alone (docs/reference/ledger.md). Pure; times are UTC ns, what is absent is None."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from tandem.schema.aggregation import bandwidth_benefit
from tandem.schema.record import Value
from tandem_server.schema.derived import (
    AREA,
    COVERAGE,
    GOODPUT_BINS,
    GOODPUT_EDGES_MBIT_PER_S,
    GOODPUT_NONE,
    PAIR_DAY,
    RSRP_BINS,
    RSRP_EDGES_DBM,
    WEAK_DBM,
)

S_NS = 10**9
WITHIN_NS = S_NS
"""How far from a record the position may be that belongs to it."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Poll:
    """One radio record. ``answered``: the modem did; ``served``: a network serves it; ``rsrp_dbm``: None where it is stale, too."""

    utc_ns: int
    path: str
    operator: str
    rat: str
    answered: bool
    served: bool
    rsrp_dbm: float | None


@dataclass(frozen=True, slots=True)
class Fix:
    """One position record with a position. ``full``: not coarsened by the privacy mode."""

    utc_ns: int
    latitude_deg: float
    longitude_deg: float
    full: bool
    error_m: float | None


@dataclass(frozen=True, slots=True)
class Handover:
    """One event of that kind."""

    utc_ns: int
    path: str
    operator: str


@dataclass(frozen=True, slots=True)
class Telling:
    """What the probe said of its mobility: ``begins`` and ``ends`` are its events, the others its health records."""

    utc_ns: int
    mobile: bool
    speed_class: str | None
    begins: bool = False
    ends: bool = False


@dataclass(frozen=True, slots=True)
class Slot:
    """One second of a TCP download over one path alone."""

    utc_ns: int
    path: str
    goodput_bit_per_s: float


@dataclass(frozen=True, slots=True)
class RunEnded:
    """One run record with its tags. ``of``: how many runs its pair was to have; None when its beginning is not known."""

    utc_ns: int
    id: str
    kind: str
    path: str
    pair: str
    pairing: str
    campaign: str
    ok: bool
    goodput_bit_per_s: float | None
    duration_s: float | None
    fallback: bool | None
    of: int | None


_LETTERS = "0123456789bcdefghjkmnpqrstuvwxyz"
_METRES_A_DEGREE = 111_195.0
"""Of latitude, on a sphere of 6371 km."""

MOST_LETTERS = 6
"""A cell of 0.0055 by 0.011 degrees: 0.61 km high, 1.2 km wide at the equator."""


def geohash(latitude_deg: float, longitude_deg: float, letters: int = MOST_LETTERS) -> str:
    """The cell that holds the place; -90 to 90, -180 to 180 (180 and the north pole belong to the last cell)."""
    bits = 5 * letters
    rows, columns = 1 << (bits // 2), 1 << (bits - bits // 2)
    row = min(rows - 1, int((latitude_deg + 90.0) / 180.0 * rows))
    column = min(columns - 1, int((longitude_deg + 180.0) / 360.0 * columns))
    mixed = 0
    for bit in range(bits):
        # From the most significant: columns and rows in turn.
        source, place = (column, bits - bits // 2) if bit % 2 == 0 else (row, bits // 2)
        mixed = mixed << 1 | source >> (place - 1 - bit // 2) & 1
    return "".join(_LETTERS[mixed >> shift & 31] for shift in range(bits - 5, -1, -5))


def letters_for(error_m: float) -> int:
    """The most letters, 1 to ``MOST_LETTERS``, whose cells are no lower than ``error_m``: a smaller cell would claim to know better."""
    for letters in range(MOST_LETTERS, 1, -1):
        if 180.0 / (1 << (5 * letters // 2)) * _METRES_A_DEGREE >= error_m:
            return letters
    return 1


EARTH_M = 6_371_000.0

STEP_M = 15.0
"""The way is told in steps of this: a receiver that stands wanders by some metres, second for second, and would seem to walk."""

TOGETHER_S = 10
"""Fixes farther apart are not joined: between them there may be what was not to be told (a home zone)."""

GOOD_M = 50.0
"""Fixes with a greater error tell no way; the mobility detector draws the line there, too."""

FASTEST_M_PER_S = 150.0
"""What would be faster is a jump of the receiver's."""


@dataclass(frozen=True, slots=True)
class Step:
    """From one fix to the next: ``metres`` (0 while a step of ``STEP_M`` is not whole) are at its end."""

    start_utc_ns: int
    end_utc_ns: int
    metres: float


def distance_m(latitude_a: float, longitude_a: float, latitude_b: float, longitude_b: float) -> float:
    """Between two places given in degrees, on a sphere (haversine)."""
    a, b = math.radians(latitude_a), math.radians(latitude_b)
    half = math.sin((b - a) / 2) ** 2
    half += math.cos(a) * math.cos(b) * math.sin(math.radians(longitude_b - longitude_a) / 2) ** 2
    return 2 * EARTH_M * math.asin(math.sqrt(min(1.0, half)))


def steps(fixes: Iterable[Fix]) -> list[Step]:
    """Of the fixes that are told in full, in order of time. A coarse position tells no way."""
    good = [f for f in fixes if f.full and (f.error_m is None or f.error_m <= GOOD_M)]
    out: list[Step] = []
    before: Fix | None = None
    anchor: Fix | None = None
    for fix in sorted(good, key=lambda f: f.utc_ns):
        if before is None or anchor is None or fix.utc_ns - before.utc_ns > TOGETHER_S * S_NS:
            before = anchor = fix
            continue
        metres = distance_m(anchor.latitude_deg, anchor.longitude_deg, fix.latitude_deg, fix.longitude_deg)
        seconds = (fix.utc_ns - anchor.utc_ns) / S_NS
        if metres > FASTEST_M_PER_S * max(seconds, 1.0):
            before = anchor = fix
            continue
        whole = metres >= STEP_M
        out.append(Step(before.utc_ns, fix.utc_ns, metres if whole else 0.0))
        before, anchor = fix, fix if whole else anchor
    return out


HOLDS_S = 60
"""A telling holds until the next, and no longer than this: health is told every ten seconds."""

CLASS_WITHIN_S = 90
"""A movement has a class from its first minute on: until then it has the one that is told first, if that is told within this."""


class States:
    """Asked by time. Tellings in any order; of several at one time an event goes before the health record."""

    def __init__(self, tellings: Iterable[Telling]) -> None:
        ordered = sorted(tellings, key=lambda t: (t.utc_ns, not (t.begins or t.ends)))
        self._times = [telling.utc_ns for telling in ordered]
        self._states: list[str] = []
        told: tuple[str, int] | None = None  # the class told next in this movement, and when
        for telling in reversed(ordered):
            known = None if telling.speed_class is None else (telling.speed_class, telling.utc_ns)
            if not telling.mobile:
                self._states.append("still")
                told = known if telling.ends else None
                continue
            told = known or told
            near = told is not None and told[1] - telling.utc_ns <= CLASS_WITHIN_S * S_NS
            self._states.append(told[0] if told is not None and near else "moving")
            if telling.begins:
                told = None
        self._states.reverse()

    def at(self, utc_ns: int) -> str:
        """One of ``tandem_server.schema.derived.MOBILITY``; empty where nothing was told lately."""
        i = bisect_right(self._times, utc_ns) - 1
        return "" if i < 0 or utc_ns - self._times[i] > HOLDS_S * S_NS else self._states[i]

    def most(self, start_utc_ns: int, end_utc_ns: int) -> str:
        """The state of most seconds of the span; of the span's beginning when it is shorter; the first of several in the alphabet."""
        seconds = Counter(self.at(t) for t in range(start_utc_ns, max(end_utc_ns, start_utc_ns + 1), S_NS))
        return min(seconds, key=lambda state: (-seconds[state], state))


_FLOATS = frozenset(f.name for f in (*COVERAGE.fields, *PAIR_DAY.fields) if f.kind == "float")
_GOODPUT_EDGES = tuple(edge * 1e6 for edge in GOODPUT_EDGES_MBIT_PER_S)
_LOOKED_FOR = {
    "polls": ("polls_unserved", "handovers"),
    "rsrp_dbm_count": ("rsrp_weak_count",),
    "way_time_s": ("way_m", "way_handovers"),
    "goodput_bit_per_s_count": ("goodput_bit_per_s_sum",),
}
_OF_PAIR = frozenset(f.name for f in PAIR_DAY.fields)
_OF_AREA = frozenset(f.name for f in AREA.fields)


@dataclass(slots=True)
class Counts:
    """One row while it is counted. Times in ns, ways in m."""

    time_ns: int = 0
    way_time_ns: int = 0
    rsrp_dbm: list[float] = field(default_factory=list)
    goodput_bit_per_s: list[float] = field(default_factory=list)
    way_m: list[float] = field(default_factory=list)
    counted: Counter[str] = field(default_factory=Counter)

    def fields(self) -> dict[str, Value]:
        """As ``tandem_server.schema.derived.COVERAGE`` has them. What was looked for and not found is 0; what was not looked for, and a bin
        without a count, is left out."""
        bins = Counter(RSRP_BINS[bisect_right(RSRP_EDGES_DBM, value)] for value in self.rsrp_dbm)
        bins.update(map(_goodput_bin, self.goodput_bit_per_s))
        figures: dict[str, Value] = {
            **self.counted,
            **bins,
            "time_s": self.time_ns / 1e9,
            "rsrp_dbm_count": len(self.rsrp_dbm),
            "rsrp_dbm_sum": math.fsum(self.rsrp_dbm),
            "rsrp_weak_count": sum(value < WEAK_DBM for value in self.rsrp_dbm),
            "goodput_bit_per_s_count": len(self.goodput_bit_per_s),
            "goodput_bit_per_s_sum": math.fsum(self.goodput_bit_per_s),
            "way_time_s": self.way_time_ns / 1e9,
            "way_m": math.fsum(self.way_m),
        }
        zeros = {
            name: figures.get(name) or 0
            for looked, names in _LOOKED_FOR.items()
            if figures.get(looked)
            for name in names
        }
        return {name: value for name, value in figures.items() if value} | zeros


def _goodput_bin(value: float) -> str:
    return GOODPUT_NONE if value <= 0 else GOODPUT_BINS[1:][bisect_right(_GOODPUT_EDGES, value)]


def added(rows: Iterable[Mapping[str, Value]]) -> dict[str, Value]:
    """Rows of ``COVERAGE``, or of ``PAIR_DAY``, added up, field for field."""
    values: dict[str, list[float]] = {}
    for row in rows:
        for name, value in row.items():
            if isinstance(value, int | float):
                values.setdefault(name, []).append(value)
    return {name: math.fsum(some) if name in _FLOATS else sum(map(int, some)) for name, some in sorted(values.items())}


def of_pair(row: Mapping[str, Value]) -> dict[str, Value]:
    """A pair as ``PAIR_DAY`` adds it up."""
    return {name: value for name, value in row.items() if name in _OF_PAIR}


def of_area(row: Mapping[str, Value]) -> dict[str, Value]:
    """A row of ``COVERAGE`` as ``AREA`` has it."""
    return {name: value for name, value in row.items() if name in _OF_AREA}


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


@dataclass(frozen=True, slots=True)
class PairPoint:
    """One point of ``schema.derived.PAIR``, without the probe and the mobility state. ``start_utc_ns``: of its Multipath TCP run."""

    utc_ns: int
    start_utc_ns: int
    tags: dict[str, str]
    fields: dict[str, Value]


def pair_point(runs: Sequence[RunEnded], operators: Mapping[str, str], carried: Mapping[str, int]) -> PairPoint | None:
    """``runs``: all run records of one pair. ``operators``: by path. ``carried``: bytes of the Multipath TCP run by path.

    None for what is no pair: another number of Multipath TCP runs than one, no TCP run, or fewer runs than it was to have. A run that
    the network failed had a goodput of 0; of one that did not fail it is known.
    """
    multipath = [run for run in runs if run.kind == "mptcp"]
    singles = [run for run in runs if run.kind == "tcp"]
    planned = {run.of for run in runs if run.of is not None}
    if len(multipath) != 1 or not singles or (planned and max(planned) > len(runs)):
        return None
    one = multipath[0]
    if any(run.ok and run.goodput_bit_per_s is None for run in (one, *singles)):
        return None
    reached = {run.path: _goodput(run) for run in singles}
    best = max(sorted(reached), key=lambda path: reached[path])
    together, x = sum(reached.values()), _goodput(one)
    fields: dict[str, Value | None] = {
        "pairs": 1,
        "pair": one.pair,
        "run": one.id,
        "mptcp_goodput_bit_per_s": x,
        "best_goodput_bit_per_s": reached[best],
        "worst_goodput_bit_per_s": min(reached.values()),
        "sum_goodput_bit_per_s": together,
        "best_path": best if reached[best] > 0 else None,
        "best_operator": operators.get(best) if reached[best] > 0 else None,
        "gain": x / reached[best] if reached[best] > 0 else None,
        "paths": len(singles),
        "failed": sum(not run.ok for run in runs),
        "lower": int(x < reached[best]),
        **_shares(carried, one.path),
    }
    if one.pairing != "simultaneous" and together > 0:
        fields["sum_ratio"] = x / together
        fields["benefit_raw"] = raw = benefit(list(reached.values()), x)
        fields["benefit"] = None if raw is None else max(-1.0, min(1.0, raw))
    fields["benefits"], fields["shares"] = int(fields.get("benefit") is not None), int("primary_share" in fields)
    tags = {
        "pairing": one.pairing,
        "campaign": one.campaign,
        "operator": operators.get(one.path, ""),
        "fallback": str(one.fallback is True).lower(),
    }
    start = one.utc_ns - round((one.duration_s or 0.0) * 1e9)
    return PairPoint(one.utc_ns, start, tags, {name: value for name, value in fields.items() if value is not None})


def benefit(separate: Sequence[float], x: float) -> float | None:
    """Kaspar's aggregation benefit (Cordero et al., Eq. 2) of a goodput ``x``, not limited, with the sum of the paths as what they carry
    at once (disjoint paths: a pair does not measure that). None where one path carried all: there is nothing to gain. ValueError of what is
    no measurement: the schema lets no such goodput in."""
    return bandwidth_benefit(separate, sum(separate), x).raw


def _goodput(run: RunEnded) -> float:
    return run.goodput_bit_per_s or 0.0


def _shares(carried: Mapping[str, int], primary: str) -> dict[str, Value | None]:
    whole = sum(carried.values())
    if not whole:
        return {}
    return {"primary_share": carried.get(primary, 0) / whole, "most_loaded_share": max(carried.values()) / whole}


def nearest(
    times_ns: Sequence[int], rows_ns: Sequence[int], rows: Sequence[T], within_ns: int = WITHIN_NS
) -> list[T | None]:
    """For each of ``times_ns`` the row nearest in time, the earlier of two; None when none is within ``within_ns`` (inclusive). Nothing is
    interpolated: between two positions there may be a home zone, or what was not measured.

    ``rows_ns[i]`` is the time of ``rows[i]``. Any order; all times of one clock: UTC, or CLOCK_MONOTONIC of one boot.
    """
    if len(rows_ns) != len(rows):
        raise ValueError(f"{len(rows_ns)} times for {len(rows)} rows")
    order = sorted(range(len(rows)), key=rows_ns.__getitem__)
    sorted_ns = [rows_ns[i] for i in order]
    found: list[T | None] = []
    for time_ns in times_ns:
        after = bisect_left(sorted_ns, time_ns)
        best: int | None = None
        for place in (after - 1, after):
            if 0 <= place < len(sorted_ns):
                apart = abs(sorted_ns[place] - time_ns)
                if apart <= within_ns and (best is None or apart < abs(sorted_ns[best] - time_ns)):
                    best = place
        found.append(None if best is None else rows[order[best]])
    return found
