"""What the probe found against what the bench played: handovers, signal drops by size, mobility."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tandem_server.analysis.truth import Array, Level, Phase, TrueDrop, TrueHandover

TOLERANCE_S = 2.0
CLOCK_S = 0.05
"""A poll is stamped when its answer is read; a cell that changes meanwhile may carry a slightly earlier time."""


CellPoll = tuple[float, int]
"""The time of a poll that named the serving cell, in s, and that cell."""


@dataclass(frozen=True, slots=True)
class FoundEvent:
    """An event as the probe recorded it."""

    t_s: float
    operator: str


@dataclass(frozen=True, slots=True)
class HandoverScore:
    """``missed`` and ``false_events`` name the cases; ``hidden``: went and came back between two polls, not in ``true``."""

    true: int
    detected: int
    missed: list[TrueHandover]
    false_events: list[FoundEvent]
    hidden: int
    delay_s: list[float]

    @property
    def false(self) -> int:
        """Events without a true handover within the tolerance before them, or since the poll before."""
        return len(self.false_events)


def merge(handovers: Sequence[TrueHandover], poll_times: Sequence[float]) -> tuple[list[TrueHandover], int]:
    """One operator's handovers with those between the same two polls made one (at the last's time), and how many were hidden."""
    merged: list[TrueHandover] = []
    hidden = 0
    group: list[TrueHandover] = []
    ordered = sorted(handovers, key=lambda h: h.t_s)
    for i, handover in enumerate(ordered):
        group.append(handover)
        here = bisect_right(poll_times, handover.t_s)
        after = ordered[i + 1] if i + 1 < len(ordered) else None
        if after is not None and bisect_right(poll_times, after.t_s) == here:
            continue
        if len(group) > 1 and group[0].from_eci == handover.to_eci:
            hidden += 1
        else:
            merged.append(TrueHandover(handover.t_s, handover.operator, group[0].from_eci, handover.to_eci))
        group = []
    return merged, hidden


def score_handovers(
    true: Sequence[TrueHandover],
    polls: Mapping[str, Sequence[CellPoll]],
    events: Sequence[FoundEvent],
    tolerance_s: float = TOLERANCE_S,
    starts: Sequence[float] = (),
) -> HandoverScore:
    """``polls`` by operator and in order of time; ``events`` are the probe's handover events. ``starts``: when the collector began anew.

    Handovers before an operator's first poll or after its last are nobody's to find and are left out; of each of the collector's
    lives. An event may tell of one all the same: the modem says a new cell unasked, also after the last poll.
    """
    polled_at = sorted(t for cells in polls.values() for t, _ in cells)
    total = detected = hidden = 0
    missed: list[TrueHandover] = []
    delays: list[float] = []
    for operator in sorted({h.operator for h in true}):
        cells = polls.get(operator, ())
        times = [t for t, _ in cells]
        if not times:
            own = [
                h for h in true if h.operator == operator and (not polled_at or polled_at[0] <= h.t_s <= polled_at[-1])
            ]
            total += len(own)
            missed += own
            continue
        polled = lives(times, starts)
        seen = [h for h in true if h.operator == operator and any(a <= h.t_s <= b for a, b in polled)]
        kept, gone = merge(seen, times)
        hidden += gone
        for handover in kept:
            total += 1
            delay = _first_seen(handover, cells, times, tolerance_s)
            if delay is None:
                missed.append(handover)
            else:
                detected += 1
                delays.append(delay)
    true_times: dict[str, list[float]] = {}
    for handover in sorted(true, key=lambda h: h.t_s):
        true_times.setdefault(handover.operator, []).append(handover.t_s)
    poll_times = {operator: [t for t, _ in cells] for operator, cells in polls.items()}
    false = [
        event
        for event in events
        if not _any_between(
            true_times.get(event.operator, []),
            _since(event, poll_times.get(event.operator, []), tolerance_s),
            event.t_s,
        )
    ]
    return HandoverScore(total, detected, missed, false, hidden, delays)


def lives(times: Sequence[float], starts: Sequence[float]) -> list[tuple[float, float]]:
    """First and last of ``times`` (in order) in each stretch that ``starts`` make of them."""
    cuts = [0, *(bisect_left(times, start) for start in sorted(starts)), len(times)]
    return [(times[a], times[b - 1]) for a, b in pairwise(cuts) if b > a]


def _first_seen(
    handover: TrueHandover, cells: Sequence[CellPoll], times: Sequence[float], tolerance_s: float
) -> float | None:
    first = bisect_left(times, handover.t_s - CLOCK_S)
    after = bisect_right(times, handover.t_s + CLOCK_S)
    for number, (t_s, eci) in enumerate(cells[first:], first):
        if t_s > handover.t_s + tolerance_s and number > after:
            return None
        if eci == handover.to_eci:
            return max(0.0, t_s - handover.t_s)
    return None


def _since(event: FoundEvent, poll_times: Sequence[float], tolerance_s: float) -> float:
    """The earliest handover that the event may tell of."""
    before = bisect_left(poll_times, event.t_s - CLOCK_S) - 1
    return min(event.t_s - tolerance_s, poll_times[before] - CLOCK_S if before >= 0 else event.t_s)


def _any_between(times: Sequence[float], start: float, end: float) -> bool:
    i = bisect_right(times, end + CLOCK_S) - 1
    return i >= 0 and times[i] >= start


SIZES = (("6-8", 6.0, 8.0), ("8-12", 8.0, 12.0), ("12+", 12.0, float("inf")))
"""Name, least and first too large, in dB of fall. The paper tells falls up to 8 dB from larger ones."""


LEAST_DB = 6.0
ROUNDING_DB = 1.0
"""Two values rounded down to whole decibels differ by less than this from what they were."""
SUCCESSIVE_S = 2.5


@dataclass(frozen=True, slots=True)
class DropScore:
    """``found`` and ``missed`` part the true drops; ``false_events`` have no true drop near."""

    found: list[TrueDrop]
    missed: list[TrueDrop]
    false_events: list[FoundEvent]

    @property
    def true(self) -> int:
        """True drops while the modem was polled."""
        return len(self.found) + len(self.missed)


def by_size(changes_db: Iterable[float]) -> dict[str, int]:
    """How many falls of each size; the sign of a change does not matter, falls below 6 dB are in none."""
    counts = {name: 0 for name, _, _ in SIZES}
    for change in changes_db:
        for name, low, high in SIZES:
            if low <= abs(change) < high:
                counts[name] += 1
    return counts


def at_polls(
    operator: str, level: Level, begun_s: Array, ended_s: Array, least_db: float = LEAST_DB, *, surely: bool = True
) -> list[TrueDrop]:
    """Falls of ``least_db`` or more between two successive polls as the RSRP was played; each at the later poll.

    A modem reads its level at some moment between a poll's beginning and its end (seconds, ascending). ``surely``: only falls that
    were large enough whichever moments those were; else those that may have been. Polls more than ``SUCCESSIVE_S`` apart are not
    successive, as for the collector's detector.
    """
    inside = (begun_s >= level.t_s[0]) & (ended_s <= level.t_s[-1] + SUCCESSIVE_S)
    begun, ended = begun_s[inside], ended_s[inside]
    if len(begun) < 2:
        return []
    # The value written for 0.3 s holds from 0.3 s on; a poll is shorter than two ticks, so its ends see all its values.
    first, last = (level.rsrp_dbm[np.searchsorted(level.t_s, t + 1e-6, side="right") - 1] for t in (begun, ended))
    low, high = np.minimum(first, last), np.maximum(first, last)
    change = high[1:] - low[:-1] if surely else low[1:] - high[:-1]
    hit = (change <= -least_db) & (np.diff(begun) <= SUCCESSIVE_S)
    return [TrueDrop(float(t), operator, float(c)) for t, c in zip(begun[1:][hit], change[hit], strict=True)]


def score_drops(
    true: Sequence[TrueDrop],
    events: Sequence[FoundEvent],
    nearly: Sequence[TrueDrop] = (),
    tolerance_s: float = TOLERANCE_S,
) -> DropScore:
    """Match by operator and time. ``nearly``: falls a little below the threshold, for which an event is not false."""

    def near(operator: str, t: float, others: Iterable[TrueDrop | FoundEvent]) -> bool:
        return any(o.operator == operator and abs(o.t_s - t) <= tolerance_s for o in others)

    found = [d for d in true if near(d.operator, d.t_s, events)]
    missed = [d for d in true if not near(d.operator, d.t_s, events)]
    false = [e for e in events if not near(e.operator, e.t_s, [*true, *nearly])]
    return DropScore(found, missed, false)


Change = tuple[float, bool]
"""Time in s and the state (moving or not) from then on."""


@dataclass(frozen=True, slots=True)
class MobilityScore:
    """``accuracy`` 0 to 1: share of time in the right state; ``false_starts`` found while standing; ``missed_starts``: moving
    spans in which the probe never said so. ``lag_s``: from each true start to its being found."""

    accuracy: float | None
    false_starts: int
    missed_starts: int
    lag_s: list[float]


def state_at(changes: Sequence[Change], t: float, before: bool = False) -> bool:
    """The state at ``t``; ``before`` holds until the first change."""
    state = before
    for at, value in changes:
        if at > t:
            break
        state = value
    return state


def spans(
    changes: Sequence[Change], start_s: float, end_s: float, before: bool = False
) -> list[tuple[float, float, bool]]:
    """The states over [start, end] as (from, to, state), neighbours with the same state joined."""
    out: list[tuple[float, float, bool]] = []
    at, state = start_s, state_at(changes, start_s, before)
    last_at = dict(changes)  # of several changes at one moment the last holds
    for t, value in last_at.items():
        if t <= start_s or t >= end_s or value == state:
            continue
        out.append((at, t, state))
        at, state = t, value
    if end_s > at:
        out.append((at, end_s, state))
    return out


def score_mobility(
    true: Sequence[Change],
    found: Sequence[Change],
    lives: Sequence[tuple[float, float]],
    tolerance_s: float = TOLERANCE_S,
) -> MobilityScore:
    """Over a collector's lives, each from its first poll to its last: each begins as one that knows of no movement, and what is between
    them nobody could see. Both lists in order of time; standing before the first. Movement that goes on over an end was missed only if no
    life of it said so; its lag is the first one's."""
    agreed = seconds = 0.0
    false, lags, saw, told = 0, [], set(), set()
    moving = [(a, b) for a, b, state in spans(true, lives[0][0], lives[-1][1]) if state] if lives else []
    for start_s, end_s in lives:
        seen, own = spans(true, start_s, end_s), spans([c for c in found if start_s <= c[0] <= end_s], start_s, end_s)
        agreed += sum(max(0.0, min(b, d) - max(a, c)) for a, b, state in seen for c, d, other in own if state == other)
        seconds += end_s - start_s
        said = [(a, b) for a, b, state in own if state]
        there = [(a - tolerance_s, b + tolerance_s) for a, b, state in seen if state]
        false += sum(not any(a <= t <= b for a, b in there) for t, _ in said)
        for number, (a, b) in enumerate(moving):
            if a >= end_s or b <= start_s:
                continue
            times = [max(c, a) for c, d in said if min(b, d) > max(a, c)]
            if times and number not in told and a >= start_s:
                lags.append(min(times) - a)
            saw.add(number)
            told |= {number} if times else set()
    return MobilityScore(agreed / seconds if seconds else None, false, len(saw - told), lags)


def activity_of_phases(phases: Sequence[Phase], start_s: float, end_s: float) -> str | None:
    """The activity that fills most of [start, end]; None outside every phase."""
    share: dict[str, float] = {}
    for phase in phases:
        share[phase.activity] = share.get(phase.activity, 0.0) + max(
            0.0, min(end_s, phase.end_s) - max(start_s, phase.start_s)
        )
    best = max(share, key=lambda name: share[name], default=None)
    return best if best is not None and share[best] > 0 else None


def activity_of_detector(changes: Sequence[Change], start_s: float, end_s: float) -> str | None:
    """``moving`` or ``still``, whichever the detector said for longer; None for an empty span."""
    moving = sum(b - a for a, b, state in spans(changes, start_s, end_s) if state)
    return ("moving" if moving * 2 >= end_s - start_s else "still") if end_s > start_s else None
