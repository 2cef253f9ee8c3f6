"""What the kernel says a TCP connection moved (linux/tcp.h, struct tcp_info)."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass

_BYTES_ACKED_AT, _SEGMENTS_AT, _BYTES_SENT_AT, _INFO_BYTES = 120, 136, 200, 216
_HEADERS_BYTES = 72
"""IPv6 and TCP with its time stamps; with IPv4 20 less. What is counted against a budget is not to be too little."""


@dataclass(frozen=True, slots=True)
class TcpCounts:
    """``payload_bytes``: what arrived of TCP's payload, both ways; ``carried_bytes``: what networks carried for it, both ways, headers and
    everything sent twice included; ``sent_bytes``: of that, payload sent, all that went twice included."""

    payload_bytes: int = 0
    carried_bytes: int = 0
    sent_bytes: int = 0

    def __add__(self, other: TcpCounts) -> TcpCounts:
        """Of both together."""
        return TcpCounts(
            self.payload_bytes + other.payload_bytes,
            self.carried_bytes + other.carried_bytes,
            self.sent_bytes + other.sent_bytes,
        )


def counts_of(connection: socket.socket) -> TcpCounts:
    """Of a connected socket; OSError when it is gone."""
    return read_counts(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_BYTES))


def read_counts(told: bytes) -> TcpCounts:
    """From the bytes of ``tcp_info``; struct.error when there are too few. Kernels before 4.19 do not tell what was sent: then what was
    acknowledged stands for it."""
    acked, received = struct.unpack_from("=QQ", told, _BYTES_ACKED_AT)
    segments = sum(struct.unpack_from("=II", told, _SEGMENTS_AT))
    sent = struct.unpack_from("=Q", told, _BYTES_SENT_AT)[0] if len(told) >= _BYTES_SENT_AT + 8 else acked
    return TcpCounts(acked + received, sent + received + segments * _HEADERS_BYTES, sent)
