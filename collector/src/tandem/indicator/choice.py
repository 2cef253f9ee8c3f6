"""Which state the kit shows, chosen from a small summary of how the collector does. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from tandem.schema.status_led import (
    CALL,
    CHARGE,
    DATA_WAITING,
    MEASURING,
    NO_NETWORK,
    NOT_RUNNING,
    STARTING,
    STATES,
    STOPPING,
    WELL,
    LedState,
)

FROZEN_AFTER_S = 60.0
"""The collector's own thread beats once a second; a card that writes slowly holds it up for seconds, not for a minute. Below
WatchdogSec= of tandem.service, so that the light says it before systemd starts the collector anew."""
MODEM_GONE_AFTER_S = 600.0
"""The recovery ladder's first steps mend most of it within minutes; nobody is to call for these."""
NO_NETWORK_AFTER_S = 600.0
"""Longer than a tunnel or a lift."""
DATA_WAITING_AFTER_S = 7200.0
"""Longer than a commute through the woods."""

Phase = Literal["starting", "running", "stopping", "ended"]


@dataclass(frozen=True, slots=True)
class Situation:
    """Seconds are how long something has been so; None: it is not so, or not known."""

    phase: Phase
    beat_age_s: float = 0.0
    """Since the collector's thread was last heard, while running."""
    undervoltage: bool = False
    disk_low: bool = False
    modem_gone_s: float | None = None
    no_network_s: float | None = None
    unsent_s: float | None = None
    """The age of the oldest record that has not reached the server."""
    measuring: bool = False


def _longer(seconds: float | None, limit_s: float) -> bool:
    return seconds is not None and seconds >= limit_s


_HOLDS: dict[LedState, Callable[[Situation], bool]] = {
    NOT_RUNNING: lambda now: now.phase == "ended" or (now.phase == "running" and now.beat_age_s >= FROZEN_AFTER_S),
    STOPPING: lambda now: now.phase == "stopping",
    CHARGE: lambda now: now.undervoltage,
    CALL: lambda now: now.disk_low or _longer(now.modem_gone_s, MODEM_GONE_AFTER_S),
    NO_NETWORK: lambda now: _longer(now.no_network_s, NO_NETWORK_AFTER_S),
    DATA_WAITING: lambda now: _longer(now.unsent_s, DATA_WAITING_AFTER_S),
    STARTING: lambda now: now.phase == "starting",
    MEASURING: lambda now: now.measuring,
}
"""`OFF` is not here: who plays it does not run any more."""


def holding(now: Situation) -> list[LedState]:
    """All states that hold, the gravest first; `WELL` is the last of every list of a running collector that has not frozen."""
    held = [state for state in STATES if state in _HOLDS and _HOLDS[state](now)]
    return [*held, WELL] if now.phase == "running" and NOT_RUNNING not in held else held


def choose(now: Situation) -> LedState:
    """The gravest."""
    return holding(now)[0]
