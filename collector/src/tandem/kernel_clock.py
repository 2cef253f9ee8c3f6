"""What the kernel says of its clock (adjtimex(2)), for the map of the boot and for a measurement that compares two ends' clocks."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

STA_UNSYNC, STA_NANO = 0x0040, 0x2000
_TIME_ERROR = 5


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


def ask_kernel() -> KernelClock | None:
    """What it says; None when this process may not ask (a strict seccomp filter)."""
    state = _Timex()
    status = ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(state))  # reads alone: modes is 0
    if status < 0:
        return None
    left_ns = state.offset if state.status & STA_NANO else state.offset * 1000
    synchronised = status != _TIME_ERROR and not state.status & STA_UNSYNC
    return KernelClock(synchronised, left_ns, state.maxerror, state.esterror)
