"""Which retention policy a board asks, by how long a time it shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Step = Literal["minute", "hour"]
_HOUR_S = 3600


@dataclass(frozen=True, slots=True)
class Resolution:
    """``policy`` serves time ranges shorter than ``below_s`` (None: any). ``step_s``: a window; 0: records as they are. ``rolled``: the
    policy for what only roll-ups have."""

    policy: str
    step_s: int
    below_s: int | None
    rolled: Step


RESOLUTIONS = (
    Resolution("kept", 0, 3 * _HOUR_S + 1, "minute"),
    Resolution("minute", 60, 7 * 24 * _HOUR_S + 1, "minute"),
    Resolution("hour", 3600, None, "hour"),
)
"""From the finest on: up to three hours raw, up to seven days by the minute, by the hour above."""

FINEST = RESOLUTIONS[0]

MAPPING_POLICY, MAPPING = "boards", "resolution"
"""Retention policy and measurement of the database that hold ``RESOLUTIONS``, one point each, for boards to ask by ``resolution_query``."""


def resolution_query(field: Literal["resolution", "rolled"] = "resolution") -> str:
    """The InfluxQL of Grafana's variable of that name: one row, the policy for the board's time range. Refreshed when the range changes."""
    return (
        f'SELECT "{field}" FROM "{MAPPING_POLICY}"."{MAPPING}"'  # noqa: S608  constants
        ' WHERE "from_ms" <= $__to - $__from AND "below_ms" > $__to - $__from'
    )
