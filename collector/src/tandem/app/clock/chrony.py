"""chronyd's word, asked over its command socket: the request TRACKING of version 6 of its protocol (chrony 2.0 and later).

One datagram each way on the loopback, where chronyd answers monitoring requests of anybody unless ``cmdport 0`` is set: a
thousandth of what starting ``chronyc -c tracking`` takes. ``parse`` is pure and takes any bytes.
"""

from __future__ import annotations

import math
import socket
import struct
from dataclasses import dataclass

from tandem.app.clock.reading import WORST_ERROR_NS, Reading

ADDRESS = ("127.0.0.1", 323)
"""A port below 1024: nobody but root can answer in chronyd's place."""

_VERSION, _REQUEST, _REPLY, _TRACKING, _TRACKED = 6, 1, 2, 33, 5
_HEAD = struct.Struct("!BBHHHHHHHIII")  # version, type, -, command, reply, status, 3 pads, sequence, 2 pads
_BODY = struct.Struct("!I16sHHHHIII9I")
LENGTH = _HEAD.size + _BODY.size + 4
"""Of request (filled up, so that an answer is never longer than what asked for it) and answer."""

UNSYNCHRONISED = 3
LOCAL_REFERENCE = 0x7F7F0101
"""What chronyd names as its reference when it vouches for its own clock (``local``): no word of the time."""

FAST_SLEW = 0.1
"""CLOCK_MONOTONIC runs at most so much too fast or slow while chronyd corrects it (``maxslewrate``, 83,333 ppm)."""

SLEWING_S = 0.01


@dataclass(frozen=True, slots=True)
class Tracking:
    """Of ``chronyc tracking``; seconds. ``correction``: what has still to be added to the system's clock."""

    reference: int
    stratum: int
    leap: int
    correction_s: float
    last_offset_s: float
    skew_ppm: float
    root_delay_s: float
    root_dispersion_s: float

    @property
    def root_distance_s(self) -> float:
        """How far the corrected clock may be from the time."""
        return self.root_dispersion_s + self.root_delay_s / 2


def request(sequence: int) -> bytes:
    """A TRACKING request. ``sequence``: 32 bits, which the answer repeats."""
    return struct.pack("!BBHHHI", _VERSION, _REQUEST, 0, _TRACKING, 0, sequence).ljust(LENGTH, b"\0")


def parse(answer: bytes, sequence: int) -> Tracking | None:
    """The answer to ``request(sequence)``; None when it is none, or a refusal."""
    if len(answer) < _HEAD.size + _BODY.size:
        return None
    version, kind, _, command, reply, status, _, _, _, repeated, _, _ = _HEAD.unpack_from(answer)
    if (version, kind, command, reply, status) != (_VERSION, _REPLY, _TRACKING, _TRACKED, 0) or repeated != sequence:
        return None
    reference, _, _, _, stratum, leap, _, _, _, *floats = _BODY.unpack_from(answer, _HEAD.size)
    correction, last_offset, _, _, _, skew, root_delay, root_dispersion, _ = map(_float, floats)
    return Tracking(reference, stratum, leap, correction, last_offset, skew, root_delay, root_dispersion)


def _float(bits: int) -> float:
    """chrony's own: 7 bits of exponent and 25 of coefficient, both in two's complement."""
    exponent, coefficient = bits >> 25, bits & 0x1FFFFFF
    exponent -= 128 if exponent >= 64 else 0
    coefficient -= 0x2000000 if coefficient >= 0x1000000 else 0
    return math.ldexp(coefficient, exponent - 25)


def vouches(told: Tracking) -> bool:
    """Whether chronyd follows somebody else's time."""
    return told.leap != UNSYNCHRONISED and told.stratum > 0 and told.reference not in (0, LOCAL_REFERENCE)


def reading(told: Tracking, monotonic_ns: int, system_offset_ns: int) -> Reading | None:
    """What it says of the time: the system's clock and what has still to be added to it. None when it does not vouch for it, or not
    within a second. The error holds while it slews, up to the next reading a second later."""
    left_s = abs(told.correction_s)
    error_s = told.root_distance_s + min(left_s, left_s / 8 + FAST_SLEW)
    if not vouches(told) or told.root_distance_s < 0 or told.root_distance_s * 1e9 > WORST_ERROR_NS:
        return None
    details: dict[str, float | int | str] = {
        "reference": f"{told.reference:08X}",
        "stratum": told.stratum,
        "root_distance_ms": told.root_distance_s * 1e3,
        "last_offset_ms": told.last_offset_s * 1e3,
        "skew_ppm": told.skew_ppm,
    }
    offset_ns = system_offset_ns + round(told.correction_s * 1e9)
    return Reading("chrony", monotonic_ns, offset_ns, round(error_s * 1e9), left_s > SLEWING_S, details)


class Chrony:
    """Asks; used by one thread. ``answered``: whether it answered the last time."""

    def __init__(self, address: tuple[str, int] = ADDRESS, patience_s: float = 0.5) -> None:
        self._address, self._patience_s = address, patience_s
        self._sequence = 0
        self.answered = False

    def ask(self) -> Tracking | None:
        """Its answer; None when nobody answers."""
        self._sequence = (self._sequence + 1) % 2**32
        told = None
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as asked:
                asked.settimeout(self._patience_s)
                asked.connect(self._address)  # so that nobody else is heard, and a closed port is told at once
                asked.send(request(self._sequence))
                told = parse(asked.recv(1024), self._sequence)
        except OSError:
            pass  # no chronyd, or it takes no commands: another source may know
        self.answered = told is not None
        return told
