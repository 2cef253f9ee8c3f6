"""Moving or not, as the route says."""

from __future__ import annotations

from collections.abc import Sequence

MOVING_M_S = 0.3
SHORT_STOP_S = 15.0


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
