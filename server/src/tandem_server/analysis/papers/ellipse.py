"""The 1-σ ellipse of points, as in throughput–delay graphs (Mohan figure 10). Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Ellipse(NamedTuple):
    """Centre, standard deviations and correlation of a Gaussian of ``n`` points. Its outline: ``outline``."""

    x: float
    y: float
    sd_x: float
    sd_y: float
    correlation: float
    n: int

    def outline(self, points: int = 48) -> list[tuple[float, float]]:
        """Points at one Mahalanobis distance from the centre, the first again at the end."""
        rest = math.sqrt(max(0.0, 1 - self.correlation**2))
        turns = (2 * math.pi * k / points for k in range(points + 1))
        return [
            (
                self.x + self.sd_x * math.cos(a),
                self.y + self.sd_y * (self.correlation * math.cos(a) + rest * math.sin(a)),
            )
            for a in turns
        ]


def ellipse(x: Sequence[float], y: Sequence[float]) -> Ellipse | None:
    """Of at least three points; None of fewer."""
    if len(x) < 3:
        return None
    a, b = np.array(x, dtype=np.float64), np.array(y, dtype=np.float64)
    sd_x, sd_y = float(a.std(ddof=1)), float(b.std(ddof=1))
    correlation = float(np.corrcoef(a, b)[0, 1]) if sd_x > 0 and sd_y > 0 else 0.0
    return Ellipse(float(a.mean()), float(b.mean()), sd_x, sd_y, correlation, len(a))
