"""What carries a measured transfer: a socket, or TLS over one. Both ends use it (stdlib only)."""

from __future__ import annotations

import fcntl
import socket
import struct
import termios

from tandem.stream.tls import TlsStream

__all__ = ["Stream", "TlsStream", "backlog", "unacknowledged"]

Stream = socket.socket | TlsStream


def backlog(stream: Stream) -> int:
    """Bytes that this process still holds: see ``TlsStream.backlog``; a socket's are the kernel's."""
    return stream.backlog() if isinstance(stream, TlsStream) else 0


def unacknowledged(stream: Stream) -> int:
    """Bytes of the stream that the peer has not acknowledged, or that have not been sent yet (SIOCOUTQ: of Multipath TCP at the level of
    data). OSError when the connection has gone."""
    held = backlog(stream)
    answer: bytes = fcntl.ioctl(stream.fileno(), termios.TIOCOUTQ, bytes(4))
    return held + int(struct.unpack("i", answer)[0])
