"""t_R of many events at once: ``papers.recovery`` over bins instead of samples, and why there is none. Pure.

A bin counts at its middle: it is before an event where that is, so a bin's time is wrong by half its width at most.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tandem_server.analysis.papers.recovery import BEFORE_S, LONGEST_S, RISES_WITHIN_S, SETTLED_S
from tandem_server.analysis.radio.shapes import Array, Binned, Whole
from tandem_server.analysis.radio.stretches import Index, medians, side_by_side

SECOND = 1_000_000_000
WHY = (
    "",
    "no_sample_before",
    "just_begun",
    "no_sample_after",
    "next_event",
    "run_ended",
    "not_recovered",
)
"""Why there is no t_R, the first that holds; "": there is one."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Which bins lie where."""

    width_ns: int
    offset_ns: int

    def first_at(self, t_ns: Whole) -> Whole:
        """The first bin whose middle is at or after a time."""
        return np.asarray(-((self.width_ns - 2 * (t_ns - self.offset_ns)) // (2 * self.width_ns)), dtype=np.int64)

    def first_after(self, t_ns: Whole) -> Whole:
        """The first bin whose middle is after a time."""
        return np.asarray((2 * (t_ns - self.offset_ns) - self.width_ns) // (2 * self.width_ns) + 1, dtype=np.int64)

    def middle_ns(self, place: Whole) -> Whole:
        """Of a bin, rounded down."""
        return np.asarray(place * self.width_ns + self.offset_ns + self.width_ns // 2, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Recoveries:
    """By event, NaN where not known. ``seen_to_ns``: until when the event's effect could be seen."""

    level_ms: Array
    peak_ms: Array
    t_r_s: Array
    why: NDArray[np.int8]
    seen_to_ns: Whole


def recoveries(
    binned: Binned, flow: Whole, event_ns: Whole, next_ns: Whole, end_ns: Whole, factor: float
) -> Recoveries:
    """Of events on the subflows ``flow``. ``next_ns``: that path's next event; ``end_ns``: when the subflow or the run's data ended."""
    grid = Grid(binned.width_ns, binned.offset_ns)
    known = np.flatnonzero(np.isfinite(binned.rtt_mean_ms))
    of, place = binned.flow[known], binned.place[known]
    mean, most = binned.rtt_mean_ms[known], binned.rtt_max_ms[known]
    index = Index(of, place, *_ends(binned.place))
    longest = event_ns + round(LONGEST_S * SECOND)
    seen_to = np.minimum(np.minimum(next_ns, end_ns), longest)
    at = grid.first_at(event_ns)
    # Like a sample at its very end, a bin at the end of the longest wait counts; one at the next event is that event's.
    until = np.where(seen_to == longest, grid.first_after(longest), grid.first_at(seen_to))
    before = index.between(flow, grid.first_at(event_ns - round(BEFORE_S * SECOND)), at)
    level = medians(mean, *before)
    begun = _begun_ns(grid, of, place, flow)
    low, high = index.between(flow, at, until)
    count = len(flow)
    peak, t_r, rose = np.full(count, np.nan), np.full(count, np.nan), np.zeros(count, dtype=bool)
    rises = grid.first_after(event_ns + round(RISES_WITHIN_S * SECOND))
    for which, rows, there in side_by_side(low, high):
        if len(mean) == 0:
            break
        picked: Whole = np.minimum(rows, len(mean) - 1)
        above = there & (mean[picked] > factor * level[which, None])
        early = there & (place[picked] < rises[which, None])
        risen: NDArray[np.bool_] = np.asarray((above & early).any(axis=1), dtype=np.bool_)
        first = np.argmax(above & early, axis=1)
        across = np.arange(rows.shape[1])
        back = there & ~above & (across > first[:, None])
        is_back: NDArray[np.bool_] = np.asarray(risen & back.any(axis=1), dtype=np.bool_)
        last = np.argmax(back, axis=1)
        # Until it was back; of what rose and did not come back all; else what came in time, or the first that came at all.
        soon = early | ((across == 0) & ~early[:, :1])
        counted = there & np.where(is_back[:, None], across <= last[:, None], risen[:, None] | soon)
        peak[which] = np.where(counted, most[picked], -np.inf).max(axis=1)
        came = grid.middle_ns(place[picked[np.arange(len(which)), last]]) - event_ns[which]
        t_r[which] = np.where(is_back, np.maximum(came, 0) / SECOND, np.where(risen, np.nan, 0.0))
        rose[which] = risen
    # What has not risen may yet rise within its time, unless that could be seen.
    cut: NDArray[np.bool_] = ~rose & (seen_to < event_ns + round(RISES_WITHIN_S * SECOND))
    t_r[cut] = np.nan
    ends: NDArray[np.int64] = np.where(next_ns <= end_ns, WHY.index("next_event"), WHY.index("run_ended"))
    why = np.select(
        [np.isnan(level), begun > event_ns - round(SETTLED_S * SECOND), low == high, np.isfinite(t_r)],
        [WHY.index("no_sample_before"), WHY.index("just_begun"), WHY.index("no_sample_after"), 0],
        np.where(seen_to < longest, ends, WHY.index("not_recovered")),
    ).astype(np.int8)
    nothing = (why > 0) & (why < WHY.index("next_event"))
    t_r[nothing], peak[nothing] = np.nan, np.nan
    return Recoveries(level, peak, t_r, why, seen_to)


def _ends(place: Whole) -> tuple[int, int]:
    return (int(place.min()), int(place.max())) if len(place) else (0, 0)


def _begun_ns(grid: Grid, of: Whole, place: Whole, flow: Whole) -> Whole:
    """When each subflow had its first sample; an event's subflow without any is known by its lacking level."""
    if not len(of):
        return np.zeros(len(flow), dtype=np.int64)
    first = np.minimum(np.searchsorted(of, flow), len(of) - 1)
    return grid.middle_ns(place[first])
