"""What a reading of a connection is, whichever kernel gave it, and the call by which kernels are asked.

The socket module's getsockopt gives the kernel an empty buffer, but these options read a header first (some with pointers into our
memory), so libc is called through ctypes.
"""

from __future__ import annotations

import ctypes
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tandem import mptcp_abi as abi

ROOM = 16
"""Subflows that one sample can hold. Eight endpoints on each end are the kernels' own limit; further ones are counted only."""

GetSockOpt = Callable[..., int]
"""getsockopt(2) of libc: descriptor, level, option, memory, length by reference; 0, or -1 with errno set."""
_libc = ctypes.CDLL(None, use_errno=True)


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


class Memory:
    """A buffer that Python sees as a bytearray and the kernel by its address."""

    def __init__(self, size: int) -> None:
        self.bytes = bytearray(size)
        self.pointer = (ctypes.c_char * size).from_buffer(self.bytes)
        self.address = ctypes.addressof(self.pointer)


def ask(
    connection: socket.socket, level: int, option: int, memory: Memory, size: int, getsockopt: GetSockOpt | None = None
) -> int:
    """Have the kernel write an option into ``memory``, whose first ``size`` bytes it may read and write; how many it wrote. OSError."""
    length = ctypes.c_uint32(size)
    given = _libc.getsockopt if getsockopt is None else getsockopt
    if given(connection.fileno(), level, option, memory.pointer, ctypes.byref(length)) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return length.value


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


class Numbers:
    """Numbers for subflows of kernels that give none: from 1 by first appearance, told apart by both ends."""

    def __init__(self) -> None:
        self._known: dict[tuple[abi.Address | None, abi.Address | None], str] = {}

    def of(self, local: abi.Address | None, remote: abi.Address | None) -> str:
        """The subflow's."""
        return self._known.setdefault((local, remote), str(len(self._known) + 1))
