"""The time of a satellite receiver, from gpsd's reports. Pure; time is an argument."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from tandem.app.clock.reading import PLAUSIBLE_UTC_NS, Reading
from tandem.position.reports import Pulse, Report, Tpv

SERIAL_ERROR_NS = 1_000_000_000
"""A sentence is told 10 to 700 ms after the instant that it names, and that wanders by 100 to 300 ms (gpsd's manual, of TOFF)."""

PULSE_ERROR_NS = 10_000_000
"""A pulse is told to microseconds where its line is an interrupt; one by USB arrives up to some milliseconds late."""

REPORTS, SPAN_NS = 6, 4_000_000_000
"""So many reports in a row, over so long, have to agree before the receiver is believed: the first after a start may show the time of
its last use, and until it has heard the almanac it may be off by the leap seconds that it does not know."""


@dataclass(frozen=True, slots=True)
class _Told:
    monotonic_ns: int
    utc_ns: int
    offset_ns: int


class Satellites:
    """``heard`` with each report of one connection. Of several receivers the one that told last is listened to."""

    def __init__(self) -> None:
        self._device: str | None = None
        self._told: deque[_Told] = deque(maxlen=4 * REPORTS)

    def heard(self, report: Report, arrived_ns: int, system_offset_ns: int) -> Reading | None:
        """What the receiver says of the time now; None when this report does not tell, or it is not believed yet. ``arrived_ns``:
        CLOCK_MONOTONIC; ``system_offset_ns``: of the same instant."""
        if isinstance(report, Tpv):
            if report.mode < 2 or report.time_utc_ns is None:
                self._told.clear()  # no fix: its time is its own quartz's
                return None
            return self._serial(report.device, arrived_ns, report.time_utc_ns, report.time_utc_ns - arrived_ns)
        if isinstance(report, Pulse):
            offset_ns = report.real_ns - report.clock_ns + system_offset_ns
            if report.kind == "TOFF":  # its own clock time says when the sentences began, before gpsd had read them all
                return self._serial(report.device, arrived_ns, report.real_ns, offset_ns, fix=False)
            return self._pulse(report, arrived_ns, offset_ns)
        return None

    def _serial(
        self, device: str | None, arrived_ns: int, utc_ns: int, offset_ns: int, *, fix: bool = True
    ) -> Reading | None:
        if device != self._device:
            self._device = device
            self._told.clear()
        if not fix and not self._told:
            return None  # TOFF does not say whether there is a fix
        last = self._told[-1] if self._told else None
        if last is not None and abs(offset_ns - last.offset_ns) > SERIAL_ERROR_NS:
            self._told.clear()  # it, or the system's clock, jumped
        if utc_ns < PLAUSIBLE_UTC_NS:
            return None
        if last is None or utc_ns != last.utc_ns or not self._told:
            self._told.append(_Told(arrived_ns, utc_ns, offset_ns))
        return self._believed(arrived_ns)

    def _believed(self, now_ns: int) -> Reading | None:
        while self._told and now_ns - self._told[0].monotonic_ns > 4 * SPAN_NS:
            self._told.popleft()
        if len(self._told) < REPORTS or now_ns - self._told[0].monotonic_ns < SPAN_NS:
            return None
        offsets = [told.offset_ns for told in self._told]
        if max(offsets) - min(offsets) > SERIAL_ERROR_NS:
            return None
        # Whatever delays a report makes its time look older: the least delayed is nearest the truth.
        return Reading("gpsd", now_ns, max(offsets), SERIAL_ERROR_NS, details={"reference": "sentences"})

    def _pulse(self, pulse: Pulse, arrived_ns: int, offset_ns: int) -> Reading | None:
        coarse = self._believed(arrived_ns) if pulse.device == self._device else None
        if coarse is None or abs(coarse.offset_ns - offset_ns) > SERIAL_ERROR_NS:
            return None
        return Reading("gpsd", arrived_ns, offset_ns, PULSE_ERROR_NS, details={"reference": "pulse"})
