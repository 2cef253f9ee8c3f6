"""Mohan's network events: how often, how large, which follow which, which fall together (§4.1); and what one did to a subflow's
round-trip time: t_R, the peak, and how much a decibel costs (§4.2). Pure; times in s."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

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


def count_in(times: Sequence[float], start_s: float, end_s: float) -> int:
    """How many of ``times``, in order, lie in a window, its end not included."""
    return bisect_left(times, end_s) - bisect_left(times, start_s)


def following(handovers_s: Sequence[float], drops_s: Sequence[float], within_s: float = FOLLOWS_S) -> int:
    """How many handovers of one operator come at most ``within_s`` after one of its drops, or are shown by the same poll."""
    drops = sorted(drops_s)
    return sum(bisect_left(drops, t - within_s) < bisect_right(drops, t) for t in handovers_s)


def overlap(events: Sequence[NetworkEvent], lasts_s: float = LASTS_S) -> tuple[int, int]:
    """How many events, and how many of them fall together with another operator's: each is felt from its time on for ``lasts_s``, the end
    not included."""
    times: dict[str, list[float]] = {}
    for event in sorted(events):
        times.setdefault(event.operator, []).append(event.t_s)
    together = 0
    for event in events:
        others = (t for operator, t in times.items() if operator != event.operator)
        together += any(bisect_right(t, event.t_s - lasts_s) < bisect_left(t, event.t_s + lasts_s) for t in others)
    return len(events), together


def apart(events: Sequence[NetworkEvent], gap_s: float) -> list[NetworkEvent]:
    """Those without any other event nearer than ``gap_s`` (§4.2: traces with sufficient gaps), in order of time."""
    ordered = sorted(events, key=lambda e: e.t_s)
    return [
        event
        for n, event in enumerate(ordered)
        if (n == 0 or event.t_s - ordered[n - 1].t_s >= gap_s)
        and (n + 1 == len(ordered) or ordered[n + 1].t_s - event.t_s >= gap_s)
    ]


Array = NDArray[np.float64]
BEFORE_S = 5.0
SETTLED_S = 2.0
"""So long a subflow must have had samples before the event: in a transfer's first round trips everything rises."""
FACTOR = 1.5
"""Recovered is what is back within this factor of the level before."""
HELD_S = 1.0
"""And stays there so long: a single good sample within a spike is no recovery."""
SILENT_S = 1.0
"""Longer without a sample is silence. It counts as out of range: a handover that takes the path away gives no samples at all."""
_LEAST_S = 1e-6
"""Bins of 100 ms are whole seconds apart, the difference of their times in floating point is not."""
RISES_WITHIN_S = 5.0
LONGEST_S = 60.0
LEAST_S = 1.0
"""For so long at least an effect is looked at."""
UNKNOWN_S = 5.0
"""So long where t_R cannot be known for want of samples before."""
NO_LEVEL = ("no_sample_before", "just_begun")
WHY = ("", *NO_LEVEL, "next_event", "run_ended", "silent_to_end", "not_recovered")
"""Why there is no t_R, the first that holds; "": there is one."""


class Recovery(NamedTuple):
    """``level_ms``: median before; ``peak_ms``: the greatest sample until it was back, or as far as it was seen; NaN without
    one. ``t_r_s``: from the event on, 0 when it never left, NaN where ``why`` (one of ``WHY``) says so. ``seen_s``: after the event, how
    long its effect could be seen; ``silent_s``: how much of t_R, or of that, was silence."""

    level_ms: float
    peak_ms: float
    t_r_s: float
    why: str
    seen_s: float
    silent_s: float

    @property
    def lasted_s(self) -> float:
        """For how long the effect is looked at, in s from the event: t_R, or as far as it was seen."""
        if self.why in NO_LEVEL:
            return min(UNKNOWN_S, self.seen_s)
        return self.seen_s if self.why else min(max(self.t_r_s, LEAST_S), self.seen_s)


def recovery(
    t_s: Array,
    rtt_ms: Array,
    event_s: float,
    next_s: float,
    end_s: float,
    most_ms: Array | None = None,
) -> Recovery:
    """Of one subflow's samples in order of time. ``next_s``: that operator's next event, infinite without one: what follows is that one's;
    ``end_s``: the end of its connection's data. ``most_ms``: the greatest RTTs, where ``rtt_ms`` are means of bins."""
    known = np.isfinite(rtt_ms)
    t, v = t_s[known] - event_s, rtt_ms[known]
    most = v if most_ms is None else most_ms[known]
    seen = max(0.0, min(next_s - event_s, end_s - event_s, LONGEST_S))
    at = int(np.searchsorted(t, 0.0))
    before = v[int(np.searchsorted(t, -BEFORE_S)) : at]
    if len(before) == 0 or t[0] > -SETTLED_S:
        return Recovery(
            float(np.median(before)) if len(before) else math.nan,
            math.nan,
            math.nan,
            NO_LEVEL[len(before) > 0],
            seen,
            0.0,
        )
    level = float(np.median(before))
    # What lies at the next event is that event's; at the end of the longest wait it counts.
    until = int(np.searchsorted(t, seen, side="right" if seen == LONGEST_S else "left"))
    # From the last sample before the event on: silence may have begun there.
    t, v, most = t[at - 1 : until], v[at - 1 : until], most[at:until]
    away = v > FACTOR * level
    away[0] = False
    silent = np.diff(t, append=seen) > SILENT_S + _LEAST_S
    from_s, to_s = np.maximum(t, 0.0), np.append(t[1:], seen)
    leaves = np.flatnonzero(away | silent)
    if len(leaves) == 0 or from_s[leaves[0]] > RISES_WITHIN_S:
        if seen >= RISES_WITHIN_S:
            return Recovery(level, _greatest(most[t[1:] <= RISES_WITHIN_S]), 0.0, "", seen, 0.0)
        return Recovery(level, _greatest(most), math.nan, "next_event" if next_s <= end_s else "run_ended", seen, 0.0)
    # Back is the first sample behind one that was away, or behind silence, which no other such follows for long enough.
    stays_until = np.append(t[leaves[1:]], seen)
    for back, until_s in zip(leaves + 1, stays_until, strict=True):
        if back < len(t) and not away[back] and until_s - t[back] > HELD_S - _LEAST_S:
            silence = float((to_s - from_s)[:back][silent[:back]].sum())
            return Recovery(level, _greatest(most[:back]), float(t[back]), "", seen, silence)
    if seen == LONGEST_S:
        why = "not_recovered"
    elif next_s <= end_s:
        why = "next_event"
    else:
        why = "silent_to_end" if silent[-1] else "run_ended"
    return Recovery(level, _greatest(most), math.nan, why, seen, float((to_s - from_s)[silent].sum()))


def _greatest(values: Array) -> float:
    return float(values.max()) if len(values) else math.nan


def factor_per_2_db(drops_db: Sequence[float], normalised: Sequence[float]) -> float | None:
    """By which factor the normalised RTT grows when a drop is 2 dB larger: the least squares of its logarithm (the paper's is 1.7). None
    of fewer than three values or of drops of one size. ValueError of what is not above 0."""
    if len(drops_db) < 3 or len(set(drops_db)) < 2:
        return None
    if any(not math.isfinite(v) or v <= 0 for v in normalised):
        raise ValueError("a normalised RTT is above 0")
    slope = np.polyfit(np.abs(np.array(drops_db, dtype=np.float64)), np.log(np.array(normalised, dtype=np.float64)), 1)[
        0
    ]
    return float(math.exp(2 * slope))
