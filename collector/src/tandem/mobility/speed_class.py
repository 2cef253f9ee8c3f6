"""Low or high speed of a movement, by the speeds of a receiver. Radio alone does not tell it (README): without good fixes there is none."""

from __future__ import annotations

from dataclasses import dataclass

from tandem.mobility.fused_settings import FusedSettings
from tandem.mobility.speed import MeanSpeed
from tandem.schema.record import Record

BOUNDARY_KM_H = 10.0
"""What low and high mean: on foot, or by whatever has a motor."""

LEAST_S = 60.0
"""A shorter movement has no class."""


@dataclass(frozen=True, slots=True)
class SpeedClass:
    """``kind``: ``low`` or ``high``; ``by``: ``speed``, good fixes over half of the movement or more."""

    kind: str
    by: str = "speed"

    def as_fields(self) -> dict[str, str]:
        """Of an event record."""
        return {"speed_class": self.kind, "speed_class_by": self.by}


class SpeedClassifier:
    """Feed every position record; ``begin`` when movement starts, ``end`` when it stops."""

    def __init__(self, fused: FusedSettings | None = None) -> None:
        self._speed = MeanSpeed(fused or FusedSettings())
        self._begin_ns: int | None = None

    def begin(self, monotonic_ns: int) -> None:
        """A movement began."""
        self._begin_ns = monotonic_ns
        self._speed.begin()

    def end(self, monotonic_ns: int) -> SpeedClass | None:
        """The class of the movement that ended; None when nobody knows."""
        found = self.so_far(monotonic_ns)
        self._begin_ns = None
        return found

    def so_far(self, monotonic_ns: int) -> SpeedClass | None:
        """The class of the movement until now; None when there is none, it is too short to tell, or too few fixes are good."""
        if self._begin_ns is None or monotonic_ns - self._begin_ns < LEAST_S * 1e9:
            return None
        mean_km_h = self._speed.km_h(monotonic_ns - self._begin_ns)
        return None if mean_km_h is None else SpeedClass("high" if mean_km_h > BOUNDARY_KM_H else "low")

    def feed(self, record: Record) -> None:
        """A position record; others are passed over."""
        if record.measurement == "position" and self._begin_ns is not None:
            self._speed.feed(record)
