"""Whether a log's probe moved, second by second, where its fixes say so: the speed column alone may be minutes old. Pure.

G-NetTrack Pro takes a fix when the telephone has moved a set distance (100 m in the logs that were looked at), and repeats place and
speed of the last one in every row until then: a car that stands for ten minutes is told as 34 km/h for ten minutes. So a speed
counts while its fix is fresh; after that the way to the next fix tells the mean speed in between.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tandem.mobility.gnettrack import Second

MOVING_KM_H = 3.0
"""Faster is moving."""

FRESH_S = 10
"""A fix speaks for itself so long."""

SURELY_KM_H = 10.0
"""From fix to fix on average; slower, and it stood or crawled for a part of the time that nobody knows."""

STOOD_KM_H = 1.0
"""So slow from fix to fix, it stood for nine tenths of the time even if it never drove faster than ``SURELY_KM_H``."""

ROLLING_S = 30
"""At either end of such a time with a speed above ``MOVING_KM_H`` it may have been rolling still, or again."""

_DEGREE_M = 111_195.0


def moving_by_speed(log: Sequence[Second]) -> list[bool | None]:
    """By the speed column as it stands; None where there is none."""
    return [None if s.speed_km_h is None else s.speed_km_h > MOVING_KM_H for s in log]


def moving_by_fixes(log: Sequence[Second]) -> list[bool | None]:
    """By fixes; None where nobody knows. As ``moving_by_speed`` for rows without a place."""
    out = moving_by_speed(log)
    begins = [i for i in range(len(log)) if i == 0 or _fix(log[i]) != _fix(log[i - 1])]
    for number, first in enumerate(begins):
        end = begins[number + 1] if number + 1 < len(begins) else len(log)
        place = log[first].place
        if place is None:
            continue
        after = log[end] if end < len(log) else None
        for i in range(first, end):
            if log[i].at_s - log[first].at_s >= FRESH_S:
                out[i] = _between(log[first], log[i], after)
    return out


def _fix(second: Second) -> tuple[float | None, tuple[float, float] | None]:
    return second.speed_km_h, second.place


def _between(fix: Second, now: Second, after: Second | None) -> bool | None:
    """Of a second ``now`` whose last fix is old; ``after``: the row of the next one."""
    rolls = [s is not None and s.speed_km_h is not None and s.speed_km_h > MOVING_KM_H for s in (fix, after)]
    if after is None or after.place is None or fix.place is None:
        return None if rolls[0] else False
    mean_km_h = distance_m(fix.place, after.place) / (after.at_s - fix.at_s) * 3.6
    if mean_km_h > SURELY_KM_H:
        return True
    if mean_km_h > STOOD_KM_H:
        return None
    near = (rolls[0] and now.at_s - fix.at_s < ROLLING_S) or (rolls[1] and after.at_s - now.at_s <= ROLLING_S)
    return None if near else False


def distance_m(a: tuple[float, float], b: tuple[float, float]) -> float:
    """Between two places that are near each other, in metres."""
    north = (b[0] - a[0]) * _DEGREE_M
    east = (b[1] - a[1]) * _DEGREE_M * math.cos(math.radians((a[0] + b[0]) / 2))
    return math.hypot(north, east)
