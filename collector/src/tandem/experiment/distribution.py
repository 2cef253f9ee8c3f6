"""A set of measured values in one object of a result: count, mean, quantiles by the nearest rank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_PERCENT = (1, 5, 10, 25, 50, 75, 90, 95, 99)


def distribution(values: Sequence[float]) -> dict[str, Any]:
    """``n``, ``mean``, ``p1`` … ``p99`` rounded to the thousandth; None where there is no value."""
    ordered = sorted(values)
    size = len(ordered)
    found: dict[str, Any] = {"n": size, "mean": round(sum(ordered) / size, 3) if size else None}
    for percent in _PERCENT:
        # the least value that so many percent do not exceed
        found[f"p{percent}"] = round(ordered[-(-percent * size // 100) - 1], 3) if size else None
    return found


def share(part: int, whole: int) -> float | None:
    """``part`` of ``whole``; None of nothing."""
    return part / whole if whole else None
