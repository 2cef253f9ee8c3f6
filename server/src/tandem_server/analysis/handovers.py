"""Handovers found against handovers played.

A true handover counts as detected when the same operator's new cell is recorded within the tolerance after it, or by the first poll
after it, however late that came: late polls are told apart (``polls_late``), and no detector sees what was not polled. Several of one
operator between two polls are one, from the first's old cell to the last's new one; if that is the same cell, no poll can
see it, and it is counted apart (``hidden``).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tandem_server.analysis.truth import TrueHandover

TOLERANCE_S = 2.0
CLOCK_S = 0.05
"""A poll is stamped when its answer is read; a cell that changes meanwhile may carry a slightly earlier time."""


@dataclass(frozen=True, slots=True)
class CellPoll:
    """A poll that named the serving cell."""

    t_s: float
    eci: int


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
            merged.append(
                TrueHandover(
                    handover.t_s, handover.operator, group[0].from_eci, handover.to_eci, handover.interruption_ms
                )
            )
        group = []
    return merged, hidden


def score(
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
    polled_at = sorted(poll.t_s for cells in polls.values() for poll in cells)
    total = detected = hidden = 0
    missed: list[TrueHandover] = []
    delays: list[float] = []
    for operator in sorted({h.operator for h in true}):
        cells = polls.get(operator, ())
        times = [p.t_s for p in cells]
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
    poll_times = {operator: [p.t_s for p in cells] for operator, cells in polls.items()}
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
    for number, poll in enumerate(cells[first:], first):
        if poll.t_s > handover.t_s + tolerance_s and number > after:
            return None
        if poll.eci == handover.to_eci:
            return max(0.0, poll.t_s - handover.t_s)
    return None


def _since(event: FoundEvent, poll_times: Sequence[float], tolerance_s: float) -> float:
    """The earliest handover that the event may tell of."""
    before = bisect_left(poll_times, event.t_s - CLOCK_S) - 1
    return min(event.t_s - tolerance_s, poll_times[before] - CLOCK_S if before >= 0 else event.t_s)


def _any_between(times: Sequence[float], start: float, end: float) -> bool:
    i = bisect_right(times, end + CLOCK_S) - 1
    return i >= 0 and times[i] >= start
