"""Whether two machines' clocks can be compared, and how far. ``tell`` reads this one's; the rest is pure."""

from __future__ import annotations

import ctypes
import time
from dataclasses import dataclass
from typing import Any

_TIME_ERROR = 5


@dataclass(frozen=True, slots=True)
class Clock:
    """``offset_ns``: UTC less CLOCK_MONOTONIC. ``synchronised``, ``error_ms``: as its kernel has them; None when it does not tell."""

    offset_ns: int
    synchronised: bool | None
    error_ms: float | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Of the server's clock with ours. ``absolute``: both are synchronised, so one-way times mean something, within ``error_ms``.
    ``ahead_ns``: what to take off the server's CLOCK_MONOTONIC to have ours; None when they cannot be compared."""

    absolute: bool
    error_ms: float | None
    ahead_ns: int | None


class _Timex(ctypes.Structure):
    _fields_ = (
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("rest", ctypes.c_byte * 512),  # more than the kernel writes
    )


def tell() -> Clock:
    """This machine's."""
    offset_ns = time.time_ns() - time.monotonic_ns()
    state = _Timex()
    status = ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(state))  # reads alone: modes is 0
    if status < 0:
        return Clock(offset_ns, None, None)
    synchronised = status != _TIME_ERROR
    return Clock(offset_ns, synchronised, state.maxerror / 1000 if synchronised else None)


def read(told: Any) -> Clock | None:  # noqa: ANN401  any JSON value
    """The server's, from its answer; None when that holds none."""
    if not isinstance(told, dict):
        return None
    offset, synchronised, error_ms = (told.get(k) for k in ("utc_minus_monotonic_ns", "synchronised", "error_ms"))
    if not isinstance(offset, int) or isinstance(offset, bool):
        return None
    error = float(error_ms) if isinstance(error_ms, int | float) and not isinstance(error_ms, bool) else None
    return Clock(offset, synchronised if isinstance(synchronised, bool) else None, error)


def compare(ours: Clock, theirs: Clock | None) -> Comparison:
    """See ``Comparison``. The error is the sum of what the two kernels own to."""
    if theirs is None or not ours.synchronised or not theirs.synchronised:
        return Comparison(False, None, None)
    if ours.error_ms is None or theirs.error_ms is None:
        return Comparison(False, None, None)
    return Comparison(True, ours.error_ms + theirs.error_ms, ours.offset_ns - theirs.offset_ns)
