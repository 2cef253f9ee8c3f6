"""The kernel's word: adjtimex(2), which systemd-timesyncd and ntpd keep true, and chronyd with ``rtcsync``."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

from tandem.app.clock.reading import WORST_ERROR_NS, Reading

STA_UNSYNC, STA_NANO = 0x0040, 0x2000
_TIME_ERROR = 5
FLOOR_NS = 50_000_000
"""systemd-timesyncd tells the kernel 0 for both errors at each answer; over a mobile network half a round trip is possible."""


class _Timex(ctypes.Structure):
    _fields_ = (
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long),
        ("status", ctypes.c_int),
        ("rest", ctypes.c_byte * 512),  # more than the kernel writes
    )


@dataclass(frozen=True, slots=True)
class KernelClock:
    """``left_ns``: what its loop has still to add; ``max_error_us`` grows by 500 µs a second from one answer of the time's to the next."""

    synchronised: bool
    left_ns: int
    max_error_us: int
    est_error_us: int


def ask() -> KernelClock | None:
    """What it says; None when this process may not ask (a strict seccomp filter)."""
    state = _Timex()
    status = ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(state))  # reads alone: modes is 0
    if status < 0:
        return None
    left_ns = state.offset if state.status & STA_NANO else state.offset * 1000
    synchronised = status != _TIME_ERROR and not state.status & STA_UNSYNC
    return KernelClock(synchronised, left_ns, state.maxerror, state.esterror)


def reading(told: KernelClock, monotonic_ns: int, system_offset_ns: int) -> Reading | None:
    """What it says of the time; None when nobody disciplines it, or not within a second. A clock set by hand is not synchronised: the
    kernel forgets it then."""
    error_ns = max(FLOOR_NS, told.max_error_us * 1000, told.est_error_us * 1000)
    if not told.synchronised or error_ns > WORST_ERROR_NS:
        return None
    details: dict[str, float | int | str] = {
        "root_distance_ms": told.max_error_us / 1e3,
        "last_offset_ms": told.left_ns / 1e6,
    }
    return Reading("kernel", monotonic_ns, system_offset_ns + told.left_ns, error_ns, False, details)
