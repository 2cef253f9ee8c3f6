"""The table ``[path.plan]`` of the configuration: what a SIM may carry from one reset to the next."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PlanConfig:
    """``bytes``: both ways, of one period. A period begins at 00:00 UTC of ``reset_day``, in a month without that day on its last.
    ``warn_share``: the share of ``bytes`` above which the forecast for the next reset is warned of."""

    bytes: int
    reset_day: int
    warn_share: float
