"""Moving or not, as the route says; and as the published rule says of levels that were played."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

MOVING_M_S = 0.3
SHORT_STOP_S = 15.0
LEAST_DB, STOP_S = 6.0, 10.0
"""Mohan et al.'s rule as a rehearsal has it: moving from a change of so much between two polls, a second apart, of either modem, until
there was none for so long."""


def changes(speed_m_s: Sequence[float], tick_s: float) -> list[tuple[int, bool]]:
    """(tick, moving) at the start and at each change: faster than 0.3 m/s is moving.

    A stop shorter than 15 s between two spells of moving is part of the ride: a tram at a stop has not arrived.
    """
    fast = [speed > MOVING_M_S for speed in speed_m_s]
    spans: list[tuple[int, bool]] = [(i, state) for i, state in enumerate(fast) if i == 0 or state != fast[i - 1]]
    out: list[tuple[int, bool]] = []
    for number, (tick, moving) in enumerate(spans):
        end = spans[number + 1][0] if number + 1 < len(spans) else None
        short_stop = not moving and number > 0 and end is not None and (end - tick) * tick_s < SHORT_STOP_S
        if not short_stop and (not out or out[-1][1] != moving):
            out.append((tick, moving))
    return out


def states(speed_m_s: Sequence[float], tick_s: float) -> list[bool]:
    """``changes``, one a tick."""
    spans = [*changes(speed_m_s, tick_s), (len(speed_m_s), False)]
    return [moving for (begin, moving), (end, _) in itertools.pairwise(spans) for _ in range(begin, end)]


def by_the_rule(levels: Sequence[Sequence[float | None]], offsets: Sequence[int], tick_s: float) -> list[bool]:
    """What the published rule says, one a tick: of ``levels`` (dBm, one a tick), one modem's each, polled once a second from tick
    ``offsets`` on."""
    lag, stop = round(1 / tick_s), round(STOP_S / tick_s)
    large = {
        tick
        for series, offset in zip(levels, offsets, strict=True)
        for tick in range(offset + lag, len(series), lag)
        if (now := series[tick]) is not None
        and (before := series[tick - lag]) is not None
        and abs(now - before) >= LEAST_DB
    }
    out: list[bool] = []
    last = -stop
    for tick in range(max(map(len, levels))):
        last = tick if tick in large else last
        out.append(tick - last < stop)
    return out
