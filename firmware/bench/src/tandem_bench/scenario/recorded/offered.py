"""What a log's network must have offered, from what its app got.

A rate that an app got is a lower bound of the capacity: the app may have waited for its server, for a window to open, or for its
user. The rule here, for each direction:

1. only rows in which the app was downloading count;
2. at each tick the largest of them within five seconds before and after: a dip of the app is not a dip of the network;
3. where no row lies within, the last known value (at the start the first);
4. a mean over two seconds, so that the rolling maximum has no cliffs;
5. never less than 1 Mbit/s down and 5 Mbit/s up (the logs hold only the acknowledgements of downloads), never more than the
   subscription of the paper: 150 down, 50 up.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tandem_bench.scenario.model import TICK_S
from tandem_bench.scenario.recorded.gnettrack import Row

WINDOW_S = 5.0
SMOOTH_S = 2.0
DOWN_BIT_PER_S = (1e6, 150e6)
UP_BIT_PER_S = (5e6, 50e6)


@dataclass(frozen=True, slots=True)
class Offer:
    """One entry a tick, bit/s."""

    down_bit_per_s: list[int]
    up_bit_per_s: list[int]


def capacity(rows: Sequence[Row], ticks: int) -> Offer:
    """The capacity offered over ``ticks`` ticks from the first row on."""
    return Offer(
        _offered(rows, ticks, lambda row: row.down_bit_per_s, DOWN_BIT_PER_S),
        _offered(rows, ticks, lambda row: row.up_bit_per_s, UP_BIT_PER_S),
    )


def _offered(
    rows: Sequence[Row], ticks: int, rate: Callable[[Row], float | None], bounds: tuple[float, float]
) -> list[int]:
    known = [(row.t_s, v) for row in rows if (v := rate(row)) is not None]
    least, most = bounds
    if not known:
        return [round(least)] * ticks
    times = [t for t, _ in known]
    largest = np.empty(ticks)
    for tick in range(ticks):
        t = tick * TICK_S
        begin, end = bisect_left(times, t - WINDOW_S), bisect_right(times, t + WINDOW_S)
        within = known[begin:end] or known[max(0, begin - 1) : max(1, begin)]
        largest[tick] = max(v for _, v in within)
    width = round(SMOOTH_S / TICK_S) + 1
    padded = np.pad(largest, width // 2, mode="edge")
    sums = np.concatenate(([0.0], np.cumsum(padded)))
    smooth = (sums[width:] - sums[:-width]) / width
    return [int(v) for v in np.round(np.clip(smooth, least, most), -3)]
