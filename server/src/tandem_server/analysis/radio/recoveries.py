"""t_R of many events: ``papers.recovery`` over bins instead of samples. Pure.

A bin counts at its middle: it is before an event where that is, so a bin's time is wrong by half its width at most.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tandem_server.analysis.papers.recovery import BEFORE_S, LONGEST_S, Recovery, recovery
from tandem_server.analysis.radio.shapes import Binned, Whole

SECOND = 1_000_000_000
BEFORE_NS, LONGEST_NS = round(BEFORE_S * SECOND), round(LONGEST_S * SECOND)


@dataclass(frozen=True, slots=True)
class Grid:
    """Which bins lie where."""

    width_ns: int
    offset_ns: int

    def first_at(self, t_ns: Whole) -> Whole:
        """The first bin whose middle is at or after a time."""
        return np.asarray(-((self.width_ns - 2 * (t_ns - self.offset_ns)) // (2 * self.width_ns)), dtype=np.int64)

    def middle_ns(self, place: Whole) -> Whole:
        """Of a bin, rounded down."""
        return np.asarray(place * self.width_ns + self.offset_ns + self.width_ns // 2, dtype=np.int64)


def recoveries(
    binned: Binned, flow: Whole, events_ns: Whole, nexts_ns: Whole, ends_ns: Whole, factor: float
) -> list[Recovery]:
    """Of events on the subflows ``flow``. ``nexts_ns``: that path's next event; ``ends_ns``: when the connection's data
    ended."""
    known = np.isfinite(binned.rtt_mean_ms)
    of, middle_ns = binned.flow[known], Grid(binned.width_ns, binned.offset_ns).middle_ns(binned.place[known])
    mean, most = binned.rtt_mean_ms[known], binned.rtt_max_ms[known]
    found = []
    for row, event_ns, next_ns, end_ns in zip(flow, events_ns, nexts_ns, ends_ns, strict=True):
        own = slice(np.searchsorted(of, row), np.searchsorted(of, row, side="right"))
        near = np.searchsorted(middle_ns[own], (event_ns - BEFORE_NS, event_ns + LONGEST_NS + 1)) + own.start
        # One more before: whether it had just begun can be seen of that.
        own = slice(max(own.start, near[0] - 1), near[1])
        following_s, end_s = float(next_ns - event_ns) / SECOND, float(end_ns - event_ns) / SECOND
        t_s = (middle_ns[own] - event_ns) / SECOND
        found.append(recovery(t_s, mean[own], 0.0, following_s, end_s, factor, most[own]))
    return found
