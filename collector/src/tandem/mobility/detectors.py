"""All detectors behind one door."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from tandem.mobility.fused import FusedDetector
from tandem.mobility.radio_events import (
    HandoverDetector,
    MobilityDetector,
    PresenceDetector,
    ServiceDetector,
    SignalDropDetector,
)
from tandem.mobility.settings import FusedSettings, Settings
from tandem.mobility.speed import SpeedClass, SpeedClassifier
from tandem.schema.record import Record


class MovementLike(Protocol):
    """What judges movement: the published rule or the fused detector."""

    @property
    def mobile(self) -> bool: ...
    @property
    def mobile_since_ns(self) -> int | None: ...

    def feed(self, record: Record) -> list[Record]: ...
    def tick(self, monotonic_ns: int) -> list[Record]: ...


class Detectors:
    """Feed every radio and registration record of every path, each path's in the order in which they were made, and position
    records; others are ignored.

    ``settings.detector`` says which one judges movement: only its events are told. A good speed (``FusedSettings``: fix, age, error)
    decides in the fused detector alone, and in both the speed class, which a stop has and, on the move, each handover and drop.
    Not safe for several threads at once: the app feeds it from one.
    """

    def __init__(self, settings: Settings, fused: FusedSettings | None = None) -> None:
        self._movement: MovementLike
        if settings.detector == "fused":
            self._movement = FusedDetector(fused or FusedSettings(period_s=settings.period_s))
        else:
            self._movement = MobilityDetector(settings)
        self._service = ServiceDetector(settings)
        self._others = (
            SignalDropDetector(settings), HandoverDetector(settings), self._service, PresenceDetector(settings),
        )  # fmt: skip
        self._speed_class = SpeedClassifier(fused)
        self._now_ns = 0

    @property
    def mobile(self) -> bool:
        """Whether the probe is judged to be moving."""
        return self._movement.mobile

    @property
    def mobile_since_ns(self) -> int | None:
        """CLOCK_MONOTONIC of the last ``mobility_start``; None when not mobile."""
        return self._movement.mobile_since_ns

    @property
    def speed_class(self) -> str | None:
        """``low`` or ``high`` of the movement that goes on; None when not mobile, or in its first minute."""
        found = self._speed_class.so_far(self._now_ns)
        return None if found is None else found.kind

    def feed(self, record: Record) -> list[Record]:
        """The events that this record shows: presence, service, handover and drop before the change of mobility."""
        if record.measurement not in ("radio", "registration", "position"):
            return []
        self._now_ns = max(self._now_ns, record.monotonic_ns)
        events = [self._on_the_move(event) for detector in reversed(self._others) for event in detector.feed(record)]
        changes = self._movement.feed(record)
        # A stop that this record shows lies before it: the movement is classed without it.
        classed = self._classed(changes)
        self._speed_class.feed(record)
        return events + classed

    def tick(self, monotonic_ns: int) -> list[Record]:
        """Time has come to ``monotonic_ns``; call it about once a second, so that mobility ends also when no poll succeeds."""
        self._now_ns = max(self._now_ns, monotonic_ns)
        return self._service.tick(monotonic_ns) + self._classed(self._movement.tick(monotonic_ns))

    def _classed(self, changes: list[Record]) -> list[Record]:
        """The same events; a stop with the speed class of the movement that it ends."""
        out = []
        for event in changes:
            if event.tags["kind"] == "mobility_start":
                self._speed_class.begin(event.monotonic_ns)
                out.append(event)
                continue
            out.append(_with(event, self._speed_class.end(event.monotonic_ns)))
        return out

    def _on_the_move(self, event: Record) -> Record:
        """A handover or a drop with the class of the movement so far."""
        if event.tags["kind"] not in ("handover", "signal_drop"):
            return event
        return _with(event, self._speed_class.so_far(event.monotonic_ns))


def _with(event: Record, found: SpeedClass | None) -> Record:
    return event if found is None else replace(event, fields={**event.fields, **found.as_fields()})
