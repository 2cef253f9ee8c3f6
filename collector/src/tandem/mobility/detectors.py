"""All detectors behind one door."""

from __future__ import annotations

from tandem.mobility.drops import SignalDropDetector
from tandem.mobility.handovers import HandoverDetector
from tandem.mobility.movement import MobilityDetector
from tandem.mobility.presence import PresenceDetector
from tandem.mobility.settings import Settings
from tandem.schema.record import Record


class Detectors:
    """Feed every radio record of every path, each path's in the order of its polls; other records are ignored.

    Not safe for several threads at once: the app feeds it from one.
    """

    def __init__(self, settings: Settings) -> None:
        self._movement = MobilityDetector(settings)
        self._others = (SignalDropDetector(settings), HandoverDetector(settings), PresenceDetector(settings))

    @property
    def mobile(self) -> bool:
        """Whether the probe is judged to be moving."""
        return self._movement.mobile

    @property
    def mobile_since_ns(self) -> int | None:
        """CLOCK_MONOTONIC of the last ``mobility_start``; None when not mobile."""
        return self._movement.mobile_since_ns

    def feed(self, record: Record) -> list[Record]:
        """The events that this record shows: presence, handover and drop before the change of mobility."""
        if record.measurement != "radio":
            return []
        events = [event for detector in reversed(self._others) for event in detector.feed(record)]
        return events + self._movement.feed(record)

    def tick(self, monotonic_ns: int) -> list[Record]:
        """Time has come to ``monotonic_ns``; call it about once a second, so that mobility ends also when no poll succeeds."""
        return self._movement.tick(monotonic_ns)
