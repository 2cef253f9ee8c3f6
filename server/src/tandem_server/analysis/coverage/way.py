"""How far the probe went, from its fixes. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from tandem_server.analysis.coverage.seen import S_NS, Fix

EARTH_M = 6_371_000.0

STEP_M = 15.0
"""The way is told in steps of this: a receiver that stands wanders by some metres, second for second, and would seem to walk."""

TOGETHER_S = 10
"""Fixes farther apart are not joined: between them there may be what was not to be told (a home zone)."""

GOOD_M = 50.0
"""Fixes with a greater error tell no way; the mobility detector draws the line there, too."""

FASTEST_M_PER_S = 150.0
"""What would be faster is a jump of the receiver's."""


@dataclass(frozen=True, slots=True)
class Step:
    """From one fix to the next: ``metres`` (0 while a step of ``STEP_M`` is not whole) are at its end."""

    start_utc_ns: int
    end_utc_ns: int
    metres: float


def distance_m(latitude_a: float, longitude_a: float, latitude_b: float, longitude_b: float) -> float:
    """Between two places given in degrees, on a sphere (haversine)."""
    a, b = math.radians(latitude_a), math.radians(latitude_b)
    half = math.sin((b - a) / 2) ** 2
    half += math.cos(a) * math.cos(b) * math.sin(math.radians(longitude_b - longitude_a) / 2) ** 2
    return 2 * EARTH_M * math.asin(math.sqrt(min(1.0, half)))


def steps(fixes: Iterable[Fix]) -> list[Step]:
    """Of the fixes that are told in full, in order of time. A coarse position tells no way."""
    good = [f for f in fixes if f.full and (f.error_m is None or f.error_m <= GOOD_M)]
    out: list[Step] = []
    before: Fix | None = None
    anchor: Fix | None = None
    for fix in sorted(good, key=lambda f: f.utc_ns):
        if before is None or anchor is None or fix.utc_ns - before.utc_ns > TOGETHER_S * S_NS:
            before = anchor = fix
            continue
        metres = distance_m(anchor.latitude_deg, anchor.longitude_deg, fix.latitude_deg, fix.longitude_deg)
        seconds = (fix.utc_ns - anchor.utc_ns) / S_NS
        if metres > FASTEST_M_PER_S * max(seconds, 1.0):
            before = anchor = fix
            continue
        whole = metres >= STEP_M
        out.append(Step(before.utc_ns, fix.utc_ns, metres if whole else 0.0))
        before, anchor = fix, fix if whole else anchor
    return out
