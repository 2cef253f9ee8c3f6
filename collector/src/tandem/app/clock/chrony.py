"""chronyd's word: what ``chronyc -c tracking`` prints. ``parse`` is pure and takes any text."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass

from tandem.app.clock.reading import WORST_ERROR_NS, Reading

COMMAND = ("chronyc", "-c", "tracking")
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

FAST_SLEW = 0.1
"""CLOCK_MONOTONIC runs at most so much too fast or slow while chronyd corrects it (``maxslewrate``, 83,333 ppm)."""

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


def parse(text: str) -> Tracking | None:
    """What chronyc printed; None when it is not what it prints of a chronyd."""
    match = _LINE.fullmatch(text)
    if match is None:
        return None
    reference, stratum, *numbers, leap = match.groups()
    _, correction, last_offset, _, _, _, skew, delay, dispersion, _ = map(float, numbers)
    return Tracking(reference, int(stratum), leap, correction, last_offset, skew, delay, dispersion)


def vouches(told: Tracking) -> bool:
    """Whether chronyd follows somebody else's time."""
    return told.leap != UNSYNCHRONISED and told.stratum > 0 and told.reference not in ("00000000", LOCAL_REFERENCE)


def reading(told: Tracking, monotonic_ns: int, system_offset_ns: int) -> Reading | None:
    """What it says of the time: the system's clock and what has still to be added to it. None when it does not vouch for it, or not
    within a second. The error holds while it slews, up to the next reading a second later."""
    left_s = abs(told.correction_s)
    error_s = told.root_distance_s + min(left_s, left_s / 8 + FAST_SLEW)
    if not vouches(told) or told.root_distance_s < 0 or told.root_distance_s * 1e9 > WORST_ERROR_NS:
        return None
    details: dict[str, float | int | str] = {
        "reference": told.reference,
        "stratum": told.stratum,
        "root_distance_ms": told.root_distance_s * 1e3,
        "last_offset_ms": told.last_offset_s * 1e3,
        "skew_ppm": told.skew_ppm,
    }
    offset_ns = system_offset_ns + round(told.correction_s * 1e9)
    return Reading("chrony", monotonic_ns, offset_ns, round(error_s * 1e9), left_s > SLEWING_S, details)


class Chrony:
    """Asks; used by one thread. ``answered``: whether it answered the last time."""

    def __init__(self, patience_s: float = 1.0) -> None:
        self._patience_s = patience_s
        self.answered = False

    def ask(self) -> Tracking | None:
        """Its answer; None when nobody answers."""
        told = None
        try:
            done = subprocess.run(COMMAND, capture_output=True, timeout=self._patience_s, check=False)
            told = parse(done.stdout.decode("ascii", "replace"))
        except (OSError, subprocess.TimeoutExpired):
            pass  # no chrony, or it hangs: another source may know
        self.answered = told is not None
        return told
