"""What the scheduler is told and what it says. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tandem.schema.campaign import Item


@dataclass(frozen=True, slots=True)
class Moment:
    """An instant. ``monotonic_s`` of ``boot``; ``utc_s`` None before the clock was synchronised."""

    boot: str
    monotonic_s: float
    utc_s: float | None = None

    def since(self, earlier: Moment) -> float | None:
        """Seconds from ``earlier``, never below 0; None when they cannot be compared (another boot, and no UTC)."""
        if self.boot == earlier.boot:
            return max(0.0, self.monotonic_s - earlier.monotonic_s)
        if self.utc_s is None or earlier.utc_s is None:
            return None
        return max(0.0, self.utc_s - earlier.utc_s)


@dataclass(frozen=True, slots=True)
class ProbeState:
    """The probe now. ``speed_class``: still, low, high, None while it is not known; ``position``: latitude and longitude in degrees;
    ``paths_up``: roles whose path can carry data; ``busy``: something else is being measured;
    ``left_bytes``: by role what the SIM may still carry today, where its owner set a limit (``day_bytes``)."""

    mobile: bool = False
    speed_class: str | None = None
    position: tuple[float, float] | None = None
    paths_up: frozenset[str] = frozenset()
    busy: bool = False
    left_bytes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Happening:
    """An event of the schema's kinds."""

    kind: str
    at: Moment


@dataclass(frozen=True, slots=True)
class Cost:
    """What a run is thought to take. ``bytes_by_role``: in both directions together."""

    seconds: float
    bytes_by_role: Mapping[str, int]


@dataclass(slots=True)
class Entry:
    """A run of the campaign, as it is stored. ``ok`` None: it did not come to an end (power cut) or is under way; ``bytes_by_role``:
    measured, the estimate where it was not."""

    step: str
    number: int
    repetition: int
    arm: int
    attempt: int
    started: Moment
    bytes_by_role: dict[str, int]
    label: str | None = None
    ended: Moment | None = None
    ok: bool | None = None
    failure: str | None = None
    runs: list[str] = field(default_factory=list)
    substituted: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By parameter or ``scheduler``: ``asked`` and ``used``, where this kernel had not what the campaign requires."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended. ``bytes_by_role``: None where it was not measured."""

    ok: bool
    failure: str | None
    runs: tuple[str, ...]
    bytes_by_role: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Start:
    """Begin this run now."""

    item: Item
    attempt: int
    cost: Cost
    label: str | None


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing begins. ``reasons``: by step, or under "" for all of them; ``in_s``: when it is worth asking again, None: when something
    happens; ``hold``: maintenance has to wait too."""

    reasons: Mapping[str, str]
    in_s: float | None
    hold: bool


@dataclass(frozen=True, slots=True)
class Done:
    """Every run of every step was made."""


Decision = Start | Wait | Done
