"""Mohan's network events (§4.1): how often, how large, which follow which, which fall together. Pure; times in s."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

FIVE_MINUTES_S = 300.0
LARGE_DB = 8.0
"""The paper tells drops up to this size, itself included, from larger ones."""
FOLLOWS_S = 5.0
"""A handover follows a drop that its own operator had at most so long before. The paper names no time: five polls."""
LASTS_S = 7.0
"""For so long an event is felt: the paper's longest recovery from drops on foot (§4.1)."""
LEAST_WINDOW_S = 60.0


class NetworkEvent(NamedTuple):
    """``change_db`` of drops, negative; None of handovers."""

    t_s: float
    operator: str
    kind: Literal["drop", "handover"]
    change_db: float | None = None


class Overlap(NamedTuple):
    """How many of all events fell together with one of another operator. ``share`` None without events."""

    events: int
    together: int

    @property
    def share(self) -> float | None:
        """0 to 1."""
        return self.together / self.events if self.events else None


def per_five_minutes(count: int, seconds: float) -> float | None:
    """A count as a frequency; None of no time."""
    return count * FIVE_MINUTES_S / seconds if seconds > 0 else None


def up_to_and_over(changes_db: Iterable[float], large_db: float = LARGE_DB) -> tuple[int, int]:
    """How many drops up to ``large_db`` and over it, whatever their sign."""
    sizes = [abs(change) for change in changes_db]
    return sum(size <= large_db for size in sizes), sum(size > large_db for size in sizes)


def windows(
    start_s: float, end_s: float, longest_s: float = FIVE_MINUTES_S, least_s: float = LEAST_WINDOW_S
) -> list[tuple[float, float]]:
    """The span in windows of ``longest_s``. A rest shorter than ``least_s`` goes to the window before it; a span is one at least."""
    out: list[tuple[float, float]] = []
    at = start_s
    while end_s - at > longest_s + least_s:
        out.append((at, at + longest_s))
        at += longest_s
    return [*out, (at, end_s)] if end_s > at else out


def following(handovers_s: Sequence[float], drops_s: Sequence[float], within_s: float = FOLLOWS_S) -> int:
    """How many handovers of one operator come at most ``within_s`` after one of its drops, or are shown by the same poll."""
    drops = sorted(drops_s)
    return sum(bisect_left(drops, t - within_s) < bisect_right(drops, t) for t in handovers_s)


def overlap(events: Sequence[NetworkEvent], lasts_s: float = LASTS_S) -> Overlap:
    """Events that fall together with another operator's: each is felt from its time on for ``lasts_s``, the end not included."""
    times: dict[str, list[float]] = {}
    for event in sorted(events):
        times.setdefault(event.operator, []).append(event.t_s)
    together = 0
    for event in events:
        others = (t for operator, t in times.items() if operator != event.operator)
        together += any(bisect_right(t, event.t_s - lasts_s) < bisect_left(t, event.t_s + lasts_s) for t in others)
    return Overlap(len(events), together)


def apart(events: Sequence[NetworkEvent], gap_s: float) -> list[NetworkEvent]:
    """Those without any other event nearer than ``gap_s`` (§4.2: traces with sufficient gaps), in order of time."""
    ordered = sorted(events, key=lambda e: e.t_s)
    return [
        event
        for n, event in enumerate(ordered)
        if (n == 0 or event.t_s - ordered[n - 1].t_s >= gap_s)
        and (n + 1 == len(ordered) or ordered[n + 1].t_s - event.t_s >= gap_s)
    ]
