"""What carries a measured transfer: a socket, or TLS over one. Both ends use it (stdlib only)."""

from __future__ import annotations

import fcntl
import socket
import struct
import termios

from tandem.stream.tls import TlsStream

__all__ = ["Stream", "TlsStream", "backlog", "unacknowledged", "wake"]

Stream = socket.socket | TlsStream

# In these options a time is two longs of the running program. Where a long has 32 bits, Python's constant may be the newer option's, which
# takes 64: the older ones (asm-generic/socket.h) are named outright. A time of the wrong size is taken for none: nothing ever wakes.
_32_BIT = struct.calcsize("@l") == 4
_WAIT_TO_RECEIVE, _WAIT_TO_SEND = (20, 21) if _32_BIT else (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO)


def backlog(stream: Stream) -> int:
    """Bytes that this process still holds: see ``TlsStream.backlog``; a socket's are the kernel's."""
    return stream.backlog() if isinstance(stream, TlsStream) else 0


def wake(stream: Stream, after_s: float, *, sending: bool = False) -> None:
    """Have a blocking read (and with ``sending`` a write) come back after ``after_s``, 1 µs or more, with BlockingIOError."""
    seconds, microseconds = divmod(round(after_s * 1e6), 10**6)
    time_value = struct.pack("@ll", seconds, microseconds)
    for option in (_WAIT_TO_RECEIVE, _WAIT_TO_SEND)[: 1 + sending]:
        stream.setsockopt(socket.SOL_SOCKET, option, time_value)


def unacknowledged(stream: Stream) -> int:
    """Bytes of the stream that the peer has not acknowledged, or that have not been sent yet (SIOCOUTQ: of Multipath TCP at the level of
    data). OSError when the connection has gone."""
    held = backlog(stream)
    answer: bytes = fcntl.ioctl(stream.fileno(), termios.TIOCOUTQ, bytes(4))
    return held + int(struct.unpack("i", answer)[0])
