"""Who says that the clock is right: chronyd, the kernel, satellites; asked now and then, and the record of what they said."""

from __future__ import annotations

import logging
import re
import subprocess
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from tandem.export.clock import (
    FAST_SLEW,
    PLAUSIBLE_UTC_NS,
    WORST_ERROR_NS,
    Clock,
    Reading,
    system_offset_ns,
    system_reading,
)
from tandem.kernel_clock import KernelClock, ask_kernel
from tandem.position.reports import Pulse, Report, Tpv
from tandem.schema.record import Record, Value

# ---------------------------------------------------------------------------------------------------------------------
# chronyd's word: what ``chronyc -c tracking`` prints. ``parse_tracking`` is pure and takes any text.


_TRACKING = ("chronyc", "-c", "tracking")
_NUMBER = r"(-?[0-9]{1,12}\.[0-9]{1,9})"
_LINE = re.compile(
    # reference, its name, stratum, its time, correction, last offset, mean offset, frequency, its residual, skew, delay, dispersion,
    # interval, leap
    rf"([0-9A-F]{{8}}),[^,\n]*,([0-9]{{1,3}}),{','.join([_NUMBER] * 10)},([A-Za-z ]+)\n",
    re.ASCII,
)
"""Fields of chrony's ``client.c``, in the form for programs."""

UNSYNCHRONISED = "Not synchronised"
LOCAL_REFERENCE = "7F7F0101"
"""What chronyd names as its reference when it vouches for its own clock (``local``): no word of the time."""

SLEWING_S = 0.01


@dataclass(frozen=True, slots=True)
class Tracking:
    """Of ``chronyc tracking``; seconds. ``correction``: what has still to be added to the system's clock."""

    reference: str
    stratum: int
    leap: str
    correction_s: float
    last_offset_s: float
    skew_ppm: float
    root_delay_s: float
    root_dispersion_s: float

    @property
    def root_distance_s(self) -> float:
        """How far the corrected clock may be from the time."""
        return self.root_dispersion_s + self.root_delay_s / 2


def parse_tracking(text: str) -> Tracking | None:
    """What chronyc printed; None when it is not what it prints of a chronyd."""
    match = _LINE.fullmatch(text)
    if match is None:
        return None
    reference, stratum, *numbers, leap = match.groups()
    _, correction, last_offset, _, _, _, skew, delay, dispersion, _ = map(float, numbers)
    return Tracking(reference, int(stratum), leap, correction, last_offset, skew, delay, dispersion)


def vouches(tracking: Tracking) -> bool:
    """Whether chronyd follows somebody else's time."""
    return (
        tracking.leap != UNSYNCHRONISED
        and tracking.stratum > 0
        and tracking.reference not in ("00000000", LOCAL_REFERENCE)
    )


def chrony_reading(tracking: Tracking, monotonic_ns: int, system_offset_ns: int) -> Reading | None:
    """What it says of the time: the system's clock and what has still to be added to it. None when it does not vouch for it, or not
    within a second. The error holds while it slews, up to the next reading a second later."""
    left_s = abs(tracking.correction_s)
    error_s = tracking.root_distance_s + min(left_s, left_s / 8 + FAST_SLEW)
    if not vouches(tracking) or tracking.root_distance_s < 0 or tracking.root_distance_s * 1e9 > WORST_ERROR_NS:
        return None
    details: dict[str, float | int | str] = {
        "reference": tracking.reference,
        "stratum": tracking.stratum,
        "root_distance_ms": tracking.root_distance_s * 1e3,
        "last_offset_ms": tracking.last_offset_s * 1e3,
        "skew_ppm": tracking.skew_ppm,
    }
    offset_ns = system_offset_ns + round(tracking.correction_s * 1e9)
    return Reading("chrony", monotonic_ns, offset_ns, round(error_s * 1e9), left_s > SLEWING_S, details)


def ask_chrony(patience_s: float = 1.0) -> Tracking | None:
    try:
        done = subprocess.run(_TRACKING, capture_output=True, timeout=patience_s, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None  # no chrony, or it hangs: another source may know
    return parse_tracking(done.stdout.decode("ascii", "replace"))


# ---------------------------------------------------------------------------------------------------------------------
# The kernel's word.


FLOOR_NS = 50_000_000
"""systemd-timesyncd tells the kernel 0 for both errors at each answer; over a mobile network half a round trip is possible."""


def kernel_reading(kernel: KernelClock, monotonic_ns: int, system_offset_ns: int) -> Reading | None:
    """What it says of the time; None when nobody disciplines it, or not within a second. A clock set by hand is not synchronised: the
    kernel forgets it then."""
    error_ns = max(FLOOR_NS, kernel.max_error_us * 1000, kernel.est_error_us * 1000)
    if not kernel.synchronised or error_ns > WORST_ERROR_NS:
        return None
    details: dict[str, float | int | str] = {
        "root_distance_ms": kernel.max_error_us / 1e3,
        "last_offset_ms": kernel.left_ns / 1e6,
    }
    return Reading("kernel", monotonic_ns, system_offset_ns + kernel.left_ns, error_ns, False, details)


# ---------------------------------------------------------------------------------------------------------------------
# The time of a satellite receiver, from gpsd's reports. Pure; time is an argument.


SERIAL_ERROR_NS = 1_000_000_000
"""A sentence comes 10 to 700 ms after the instant that it names, and that wanders by 100 to 300 ms (gpsd's manual, of TOFF)."""

PULSE_ERROR_NS = 10_000_000
"""A pulse is told to microseconds where its line is an interrupt; one by USB arrives up to some milliseconds late."""

REPORTS, SPAN_NS = 6, 4_000_000_000
"""So many reports in a row, over so long, have to agree before the receiver is believed: the first after a start may show the time of
its last use, and until it has heard the almanac it may be off by the leap seconds that it does not know."""


@dataclass(frozen=True, slots=True)
class _Heard:
    monotonic_ns: int
    utc_ns: int
    offset_ns: int


class Satellites:
    """``heard`` with each report of one connection. Of several receivers the one that told last is listened to."""

    def __init__(self) -> None:
        self._device: str | None = None
        self._reported: deque[_Heard] = deque(maxlen=4 * REPORTS)

    def heard(self, report: Report, arrived_ns: int, system_offset_ns: int) -> Reading | None:
        """What the receiver says of the time now; None when this report does not tell, or it is not believed yet. ``arrived_ns``:
        CLOCK_MONOTONIC; ``system_offset_ns``: of the same instant."""
        if isinstance(report, Tpv):
            if report.mode < 2 or report.time_utc_ns is None:
                self._reported.clear()  # no fix: its time is its own quartz's
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
            self._reported.clear()
        if not fix and not self._reported:
            return None  # TOFF does not say whether there is a fix
        last = self._reported[-1] if self._reported else None
        if last is not None and abs(offset_ns - last.offset_ns) > SERIAL_ERROR_NS:
            self._reported.clear()  # it, or the system's clock, jumped
        if utc_ns < PLAUSIBLE_UTC_NS:
            return None
        if last is None or utc_ns != last.utc_ns or not self._reported:
            self._reported.append(_Heard(arrived_ns, utc_ns, offset_ns))
        return self._believed(arrived_ns)

    def _believed(self, now_ns: int) -> Reading | None:
        while self._reported and now_ns - self._reported[0].monotonic_ns > 4 * SPAN_NS:
            self._reported.popleft()
        if len(self._reported) < REPORTS or now_ns - self._reported[0].monotonic_ns < SPAN_NS:
            return None
        offsets = [one.offset_ns for one in self._reported]
        if max(offsets) - min(offsets) > SERIAL_ERROR_NS:
            return None
        # Whatever delays a report makes its time look older: the least delayed is nearest the truth.
        return Reading("gpsd", now_ns, max(offsets), SERIAL_ERROR_NS, details={"reference": "sentences"})

    def _pulse(self, pulse: Pulse, arrived_ns: int, offset_ns: int) -> Reading | None:
        coarse = self._believed(arrived_ns) if pulse.device == self._device else None
        if coarse is None or abs(coarse.offset_ns - offset_ns) > SERIAL_ERROR_NS:
            return None
        return Reading("gpsd", arrived_ns, offset_ns, PULSE_ERROR_NS, details={"reference": "pulse"})


# ---------------------------------------------------------------------------------------------------------------------
# The ``clock`` record.


EVERY_NS = 60_000_000_000


class ClockRecords:
    """Used by one thread."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._reported_ns: int | None = None
        self._reported: tuple[object, ...] | None = None

    def due(self, now_ns: int) -> list[Record]:
        """A record once a minute, and when somebody else vouches, or nobody any more."""
        state, said = self._clock.state(), self._clock.reading
        changed = tuple(state[name] for name in ("synchronised", "vouched", "source"))
        if self._reported_ns is not None and now_ns - self._reported_ns < EVERY_NS and changed == self._reported:
            return []
        self._reported_ns, self._reported = now_ns, changed
        fields: dict[str, Value | None] = {
            name: state[name]
            for name in ("synchronised", "vouched", "source", "offset_ns", "error_ms", "age_s", "system_error_ms")
        }
        fields["steps"] = self._clock.stepped
        return [Record.make("clock", {}, {**fields, **({} if said is None else said.details)}, now_ns)]


# ---------------------------------------------------------------------------------------------------------------------
# Asks who vouches for the time, now and then, by the collector's own thread: it takes a program of milliseconds or a
# system call.


log = logging.getLogger(__name__)

OFTEN_S, SELDOM_S = 1.0, 8.0
"""Between looks: until somebody vouches and while the clock is being slewed; else."""

STEPPED_NS = 1_000_000
"""The system's clock was set while it was asked about: what was said is of before or after, nobody knows."""

RECEIVER_FRESH_NS = 5_000_000_000


class ClockWatch:
    """``source``: one of ``clock.SOURCES``. All but ``heard`` by one thread."""

    def __init__(
        self,
        clock: Clock,
        source: str,
        ask_chrony: Callable[[], Tracking | None] = ask_chrony,
        ask_kernel: Callable[[], KernelClock | None] = ask_kernel,
        offset_ns: Callable[[], int] = system_offset_ns,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._clock, self._source = clock, source
        self._ask_chrony, self._ask_kernel = ask_chrony, ask_kernel
        self._offset_ns, self._monotonic_ns = offset_ns, monotonic_ns
        self._satellites = Satellites()
        self._receiver: Reading | None = None
        self._why: list[str] = []
        self._reported: str | None = ""
        self._due_s = 0.0

    def tick(self) -> None:
        """Once a second: look when it is time."""
        now_s = time.monotonic()
        if now_s >= self._due_s:
            self._due_s = now_s + SELDOM_S  # also when the look fails
            self._due_s = now_s + self.look() - OFTEN_S / 2  # a tick is a little early or late

    def stop(self) -> None:
        self._clock.keep(now=True)

    def heard(self, report: Report, arrived_ns: int) -> None:
        """A report of gpsd's, from the position receiver's thread."""
        said = self._satellites.heard(report, arrived_ns, self._offset_ns())
        if said is not None:
            self._receiver = said

    def look(self) -> float:
        """Ask once; seconds until the next look."""
        offset_ns = self._offset_ns()
        self._why = []
        said = self._ask(offset_ns)
        if abs(self._offset_ns() - offset_ns) > STEPPED_NS:
            return OFTEN_S
        if said is not None:
            self._clock.take(said)
        self._tell(None if said is not None else "; ".join(self._why))
        self._clock.keep()
        return SELDOM_S if said is not None and not said.slewing and said.source != "system" else OFTEN_S

    def _ask(self, offset_ns: int) -> Reading | None:
        now_ns = self._monotonic_ns()
        if self._source == "system":
            said = system_reading(now_ns, offset_ns)
            if said is None:
                self._why.append("the system's clock shows a time before 2025: it was never set")
            return said
        tracking = self._ask_chrony() if self._source in ("auto", "chrony") else None
        if tracking is not None:
            said = chrony_reading(tracking, now_ns, offset_ns)
            if said is not None:
                return said
            self._why.append("chronyd follows no server closely yet (chronyc sources)")
        elif self._source in ("auto", "chrony"):
            self._why.append("no chronyd answers on port 323")
        if self._source == "kernel" or (self._source == "auto" and tracking is None):
            said = self._of_kernel(now_ns, offset_ns)
            if said is not None:
                return said
        if self._source in ("auto", "gpsd"):
            heard = self._receiver
            if heard is not None and now_ns - heard.monotonic_ns < RECEIVER_FRESH_NS:
                return heard
            self._why.append("gpsd tells no time that can be believed")
        if self._source == "auto":
            self._why.append(
                'hint: install chrony (docs/contributing/collector.md); on a bench or laptop [clock] source = "system"'
            )
        return None

    def _of_kernel(self, now_ns: int, offset_ns: int) -> Reading | None:
        kernel = self._ask_kernel()
        said = None if kernel is None else kernel_reading(kernel, now_ns, offset_ns)
        if said is None:
            self._why.append("the kernel's clock is not disciplined (timedatectl)")
        return said

    def _tell(self, why: str | None) -> None:
        self._clock.trouble = None if why is None else f"the clock is not synchronised: {why}"
        if why == self._reported:
            return
        if why is not None:
            log.warning("clock: not synchronised: %s", why)
        elif self._source == "system":
            log.warning("clock: trusted as it stands (source = system): nobody vouches for it")
        else:
            log.info("clock: synchronised")
        self._reported = why
