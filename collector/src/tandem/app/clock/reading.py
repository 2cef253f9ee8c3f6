"""What one source says of the clock at one instant, and reading the two clocks as one."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

SOURCES = ("auto", "chrony", "kernel", "gpsd", "system")
"""``[clock] source``. ``auto``: chrony where it answers, else the kernel's word (systemd-timesyncd, ntpd), else gpsd's; where none of
them vouches for the time, records are held: ``system`` must be asked for, since it trusts whatever the clock shows."""

PLAUSIBLE_UTC_NS = 1_735_689_600 * 10**9
"""2025-01-01. An earlier time is nobody's: a clock that was never set, or a receiver whose week counter has wrapped (1024 weeks)."""

WORST_ERROR_NS = 1_000_000_000
"""A source that owns to more than a second of error does not vouch for the time."""


@dataclass(frozen=True, slots=True)
class Reading:
    """``offset_ns``: UTC less CLOCK_MONOTONIC, as best known at ``monotonic_ns``. ``error_ns``: how far off it may be; None: nobody
    says (``system``). ``slewing``: CLOCK_MONOTONIC is being led to the time, up to a tenth faster or slower. ``details``: fields of
    the ``clock`` record that this source can tell."""

    source: str
    monotonic_ns: int
    offset_ns: int
    error_ns: int | None
    slewing: bool = False
    details: dict[str, float | int | str] = field(default_factory=dict)


def system_offset_ns() -> int:
    """CLOCK_REALTIME less CLOCK_MONOTONIC. Slewing moves both, so it changes by steps only; the narrowest of three looks is taken, since
    a look may be interrupted between the two."""
    looks = []
    for _ in range(3):
        before = time.monotonic_ns()
        utc = time.time_ns()
        after = time.monotonic_ns()
        looks.append((after - before, utc - (before + after) // 2))
    return min(looks)[1]


def system_reading(monotonic_ns: int, offset_ns: int) -> Reading | None:
    """The clock as it stands, when it shows a time that can be."""
    if monotonic_ns + offset_ns < PLAUSIBLE_UTC_NS:
        return None
    return Reading("system", monotonic_ns, offset_ns, None)
