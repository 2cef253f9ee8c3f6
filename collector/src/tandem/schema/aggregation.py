"""Cordero's metrics of what several paths give together (Multi-Path TCP Performance Evaluation in Dual-Homed Devices, §3.1, §4). Pure;
the experiments, the server's pairs and its figures take them from here.

Each benefit comes raw, as the formula's straight lines go on, and clipped, as the paper defines it. Rates in bit/s, delays in s; each
function takes any unit that is the same for all its values. ValueError for values that are no measurement (negative, not finite).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Benefit(NamedTuple):
    """``raw``: not limited; ``clipped``: -1 to 1. None: the formula gives nothing there."""

    raw: float | None
    clipped: float | None


UNDEFINED = Benefit(None, None)


def disjointivity(separate: Sequence[float], together: float) -> float | None:
    """The transport disjointivity index, Eq. (1): C_total / ΣC_i, unlimited: measured values may pass 1 a little. None when no path
    carried anything by itself."""
    _measured((*separate, together))
    whole = sum(separate)
    return together / whole if whole > 0 else None


def bandwidth_benefit(separate: Sequence[float], together: float, x: float) -> Benefit:
    """The bandwidth aggregation benefit, Eq. (2), of a goodput ``x`` where the paths reach ``separate`` alone and ``together`` at once.

    None where ``x`` is not below the best path and ``together`` is not above it: there is nothing to gain, so no scale for a gain.
    None, too, when no path carried anything.
    """
    _measured((*separate, together, x))
    best = max(separate, default=0.0)
    if best <= 0:
        return UNDEFINED
    if x < best:
        raw = (x - best) / best
    elif together > best:
        raw = (x - best) / (together - best)
    else:
        return UNDEFINED
    return Benefit(raw, _clip(raw))


def ideal_delay(delays: Sequence[float]) -> float:
    """D*_th: all paths at once, perfectly scheduled, each as fast as alone: 1 / Σ(1/D_i). For two paths it is k/(k+1) · D_min, as in
    Eq. (4); the paper gives no formula for more."""
    _delays(delays)
    return 1.0 / sum(1.0 / delay for delay in delays)


def delay_benefit(delays: Sequence[float], x: float) -> Benefit:
    """The delay aggregation benefit, Eq. (3), of a delay ``x`` where TCP over each path alone takes ``delays`` (two or more).

    With equal delays (k = 1) there is no third case: -1 beyond D_min, without a raw value, for the line would be upright. At the slow
    end Eq. (3) holds, -1, and not the 0 of the paper's prose.
    """
    _delays((*delays, x))
    if len(delays) < 2:
        raise ValueError("a delay benefit needs the delays of two paths or more")
    fastest, slowest, ideal = min(delays), max(delays), ideal_delay(delays)
    if x <= fastest:
        raw = (fastest - x) / (fastest - ideal) if ideal < fastest else 0.0
        return Benefit(raw, min(raw, 1.0))
    if slowest > fastest:
        raw = (fastest - x) / (slowest - fastest)
        return Benefit(raw, max(raw, -1.0))
    return Benefit(None, -1.0)


def most_loaded_share(carried: Mapping[str, int]) -> float | None:
    """The part of all bytes that went over the path with most of them, 1/n to 1; None when nothing was carried."""
    _measured(tuple(carried.values()))
    whole = sum(carried.values())
    return max(carried.values()) / whole if whole else None


def _clip(value: float) -> float:
    return max(-1.0, min(1.0, value))


def _measured(values: Sequence[float]) -> None:
    for value in values:
        if not math.isfinite(value) or value < 0:
            raise ValueError(f"{value!r} is no measured quantity")


def _delays(values: Sequence[float]) -> None:
    for value in values:
        if not math.isfinite(value) or value <= 0:
            raise ValueError(f"{value!r} is no delay")
