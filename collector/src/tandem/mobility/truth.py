"""Whether a log's probe moved, second by second, where its fixes say so: the speed column alone may be minutes old. Pure.

G-NetTrack Pro takes a fix when the telephone has moved a set distance (100 m in the logs that were looked at), and repeats place and
speed of the last one in every row until then: a car that stands for ten minutes is told as 34 km/h for ten minutes. So a speed
counts while its fix is fresh; after that the way to the next fix tells the mean speed in between. Where speeds are what is judged,
places alone are the truth.
"""

from __future__ import annotations

import itertools
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

STEP_M = 100.0
"""Places nearer to each other than this are one place: the app would have taken another fix."""

_DEGREE_M = 111_195.0


def moving_by_speed(log: Sequence[Second]) -> list[bool | None]:
    """By the speed column as it stands; None where there is none."""
    return [None if s.speed_km_h is None else s.speed_km_h > MOVING_KM_H for s in log]


def moving_by_fixes(log: Sequence[Second]) -> list[bool | None]:
    """By fixes; None where nobody knows. As ``moving_by_speed`` for rows without a place."""
    out = moving_by_speed(log)
    begins = [i for i in range(len(log)) if i == 0 or _fix(log[i]) != _fix(log[i - 1])]
    for first, end in itertools.pairwise([*begins, len(log)]):
        if log[first].place is None:
            continue
        after = log[end] if end < len(log) else None
        rolls = [s is not None and s.speed_km_h is not None and s.speed_km_h > MOVING_KM_H for s in (log[first], after)]
        for i in range(first, end):
            if log[i].at_s - log[first].at_s < FRESH_S:
                continue
            if after is None or after.place is None:
                out[i] = None if rolls[0] else False
            else:
                out[i] = _on_the_way(log[first], log[i], after, rolls)
    return out


def moving_by_places(log: Sequence[Second]) -> list[bool | None]:
    """By places alone, no speed looked at: the way from each fix to the next. None where that does not tell, and after the last fix;
    a log that stays within ``STEP_M`` for so long that it cannot have been on its way stood throughout."""
    out: list[bool | None] = [None] * len(log)
    begins = [i for i, fresh in enumerate(fixes(log)) if fresh]
    if begins and all(_distance_m(log[begins[0]], log[i]) < STEP_M for i in begins):
        stood = STEP_M / (log[-1].at_s - log[begins[0]].at_s + 1) * 3.6 < STOOD_KM_H
        return [False for _ in log] if stood else out
    for first, end in itertools.pairwise(begins):
        for i in range(first, end):
            out[i] = _on_the_way(log[first], log[i], log[end], [True, True])
    return out


def fixes(log: Sequence[Second]) -> list[bool]:
    """Whether this row tells a fix of its own, and not the last one again."""
    return [s.place is not None and (i == 0 or s.place != log[i - 1].place) for i, s in enumerate(log)]


def _fix(second: Second) -> tuple[float | None, tuple[float, float] | None]:
    return second.speed_km_h, second.place


def _on_the_way(fix: Second, now: Second, after: Second, rolls: Sequence[bool]) -> bool | None:
    """Of a second ``now`` between two fixes with places; ``rolls``: whether it may have been rolling at either end."""
    mean_km_h = _distance_m(fix, after) / (after.at_s - fix.at_s) * 3.6
    if mean_km_h > SURELY_KM_H:
        return True
    if mean_km_h > STOOD_KM_H:
        return None
    near = (rolls[0] and now.at_s - fix.at_s < ROLLING_S) or (rolls[1] and after.at_s - now.at_s <= ROLLING_S)
    return None if near else False


def _distance_m(one: Second, other: Second) -> float:
    return 0.0 if one.place is None or other.place is None else distance_m(one.place, other.place)


def distance_m(a: tuple[float, float], b: tuple[float, float]) -> float:
    """Between two places that are near each other, in metres."""
    north = (b[0] - a[0]) * _DEGREE_M
    east = (b[1] - a[1]) * _DEGREE_M * math.cos(math.radians((a[0] + b[0]) / 2))
    return math.hypot(north, east)
