"""Handovers found against handovers played.

A true handover counts as detected when the same operator's new cell is recorded within the tolerance after it. Several of one
operator between two polls are one, from the first's old cell to the last's new one; if that is the same cell, no poll can
see it, and it is counted apart (``hidden``).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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
        """Events without a true handover within the tolerance."""
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
) -> HandoverScore:
    """``polls`` by operator and in order of time; ``events`` are the probe's handover events.

    Handovers before an operator's first poll or after its last are nobody's to find and are left out.
    """
    total = detected = hidden = 0
    missed: list[TrueHandover] = []
    delays: list[float] = []
    for operator in sorted({h.operator for h in true}):
        cells = polls.get(operator, ())
        times = [p.t_s for p in cells]
        if not times:
            own = [h for h in true if h.operator == operator]
            total += len(own)
            missed += own
            continue
        seen = [h for h in true if h.operator == operator and times[0] <= h.t_s <= times[-1]]
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
    false = [e for e in events if not _near_before(true_times.get(e.operator, []), e.t_s, tolerance_s)]
    return HandoverScore(total, detected, missed, false, hidden, delays)


def _first_seen(
    handover: TrueHandover, cells: Sequence[CellPoll], times: Sequence[float], tolerance_s: float
) -> float | None:
    for poll in cells[bisect_left(times, handover.t_s - CLOCK_S) :]:
        if poll.t_s > handover.t_s + tolerance_s:
            return None
        if poll.eci == handover.to_eci:
            return max(0.0, poll.t_s - handover.t_s)
    return None


def _near_before(times: Sequence[float], t: float, tolerance_s: float) -> bool:
    i = bisect_right(times, t + CLOCK_S) - 1
    return i >= 0 and times[i] >= t - tolerance_s
