"""The quantile of what was counted one by one. Figures of the papers take numpy's, which lies between two values."""

from __future__ import annotations

import math
from collections.abc import Sequence


def nearest_rank(ordered: Sequence[float], share: float) -> float | None:
    """The least value that at least ``share`` (0 to 1) of ``ordered``, rising, do not exceed; None where there is none."""
    size = len(ordered)  # a share is no binary fraction: 0.07 · 100 is a little more than 7
    return float(ordered[max(0, math.ceil(share * size - 1e-9) - 1)]) if size else None
