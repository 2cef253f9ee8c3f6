"""What a reading of a connection is, whichever kernel gave it."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tandem import mptcp_abi as abi
from tandem.mptcp_abi.calling import Memory, ask

ROOM = 16
"""Subflows that one sample can hold. Eight endpoints on each end are the kernels' own limit; further ones are counted only."""


@dataclass(frozen=True, slots=True)
class SubflowSample:
    """One subflow. ``id`` as the kernel counts them from 1; "0" for a connection that is plain TCP."""

    id: str
    local: abi.Address | None
    remote: abi.Address | None
    tcp: abi.TcpInfo

    @property
    def established(self) -> bool:
        """The subflow's handshake is done and it is not closed, though it may be closing."""
        return self.tcp.state not in (abi.SYN_SENT, abi.SYN_RECV, abi.CLOSE)

    @property
    def alive(self) -> bool:
        """It can still carry data to us."""
        return self.tcp.state in (abi.ESTABLISHED, abi.CLOSE_WAIT)


@dataclass(frozen=True, slots=True)
class ConnectionSample:
    """One connection at ``monotonic_ns`` (CLOCK_MONOTONIC). ``mptcp`` is None for plain TCP and after a fallback.

    ``fallback``: it was asked for as MPTCP and is TCP. ``total`` subflows existed, of which ``subflows`` could be read.
    """

    monotonic_ns: int
    fallback: bool
    mptcp: abi.MptcpInfo | None
    subflows: tuple[SubflowSample, ...]
    total: int

    @property
    def alive(self) -> int:
        """How many subflows are alive."""
        return sum(s.alive for s in self.subflows)


class StatisticsError(OSError):
    """The kernel refused every way of reading: the socket is closed, or not a TCP connection."""


def plain(connection: socket.socket, memory: Memory, now: int, *, fallback: bool) -> ConnectionSample:
    """A sample of a connection that is plain TCP, by TCP_INFO; StatisticsError when it can no longer be read."""
    try:
        size = ask(connection, socket.IPPROTO_TCP, abi.TCP_INFO, memory, abi.TCP_INFO_BYTES)
        tcp = abi.decode_tcp_info(memory.bytes[:size])
        ends = (_end(connection.getsockname), _end(connection.getpeername))
    except OSError as error:
        raise StatisticsError(error.errno, error.strerror) from error
    return ConnectionSample(now, fallback, None, (SubflowSample("0", *ends, tcp),), 1)


def _end(name: Callable[[], Any]) -> abi.Address | None:
    """Our or the peer's address; None once the connection is gone, whose counters may still be read."""
    try:
        host, port = name()[:2]
    except OSError:
        return None
    return abi.Address(host.removeprefix("::ffff:"), port)
