"""When the kernel had a datagram: ``SO_TIMESTAMPNS`` (socket(7)), brought from the day's clock to CLOCK_MONOTONIC."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterable

SO_TIMESTAMPNS = 35
"""include/uapi/asm-generic/socket.h: SO_TIMESTAMPNS_OLD, whose times are as wide as the program's longs."""
_STAMP = struct.Struct("@ll")
_NS = 10**9
_CLOSE_NS = 20_000
_READINGS = 3


def stamp(made: socket.socket) -> None:
    """Ask for stamps on this socket; OSError. The first that asks on a machine waits for them: the kernel switches them on in a work queue
    (net_enable_timestamp), and a datagram that comes before is stamped as it is read."""
    made.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)


def arrival_ns(ancillary: Iterable[tuple[int, int, bytes]]) -> int:
    """CLOCK_MONOTONIC in ns when the datagram came, from what ``recvmsg`` gave with it; now, where there is no stamp, or where the day's
    clock was set meanwhile (a stamp older than a second, or of the future)."""
    offset_ns, now_ns = _clocks()
    for level, kind, content in ancillary:
        if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPNS and len(content) >= _STAMP.size:
            seconds, nanoseconds = _STAMP.unpack_from(content)
            came_ns = int(seconds) * _NS + int(nanoseconds) - offset_ns
            # The offset is known to within the time that its reading took.
            if now_ns - _NS < came_ns <= now_ns + _CLOSE_NS:
                return min(came_ns, now_ns)
    return now_ns


def _clocks() -> tuple[int, int]:
    """The day's clock less CLOCK_MONOTONIC, and CLOCK_MONOTONIC now. Who is interrupted between two readings would take the pause for an
    offset: each reading of the one is held between two of the other, and the closest pair counts."""
    best = _NS, 0
    after_ns = time.monotonic_ns()
    for _ in range(_READINGS):
        before_ns, day_ns, after_ns = after_ns, time.time_ns(), time.monotonic_ns()
        if after_ns - before_ns < best[0]:
            best = after_ns - before_ns, day_ns - (before_ns + after_ns) // 2
        if best[0] <= _CLOSE_NS:
            break
    return best[1], after_ns
