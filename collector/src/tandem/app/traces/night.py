"""The night of the configuration. Pure."""

from __future__ import annotations

_DAY = 1440


def begins_in(night: tuple[int, int] | None, minute: float) -> float:
    """Minutes until the night begins; 0 while it lasts. ``minute``: of the local day, 0 to 1440; ``night``: when it begins and ends, also
    over midnight; None: always."""
    if night is None:
        return 0.0
    begin, end = night
    within = begin <= minute < end if begin < end else minute >= begin or minute < end
    return 0.0 if within else (begin - minute) % _DAY
