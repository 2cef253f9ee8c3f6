"""Read one connection's statistics from the kernel: the whole connection and each subflow, in one call where it can.

MPTCP_FULL_INFO since Linux 6.5; before, MPTCP_TCPINFO with MPTCP_SUBFLOW_ADDRS; TCP_INFO after a fallback and for plain TCP. The
v0.9x kernel has its own way: ``kernel_v094``.
"""

from __future__ import annotations

import errno
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tandem import mptcp_abi as abi
from tandem.mptcp_abi import v094

if TYPE_CHECKING:
    from tandem.mptcp import kernel_v094

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


def plain(connection: socket.socket, memory: abi.Memory, now: int, *, fallback: bool) -> ConnectionSample:
    """A sample of a connection that is plain TCP, by TCP_INFO; StatisticsError when it can no longer be read."""
    try:
        size = abi.getsockopt(connection, socket.IPPROTO_TCP, abi.TCP_INFO, memory, abi.TCP_INFO_BYTES)
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


_NO_SUCH_OPTION = (errno.EOPNOTSUPP, errno.ENOPROTOOPT)


class Reader:
    """Reads one socket again and again with the same buffers; ``socket`` may be MPTCP or TCP. Not for two threads at once."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._v094: kernel_v094.Reader | None = None
        if v094.present():
            from tandem.mptcp.kernel_v094 import Reader as ReaderV094

            self._v094 = ReaderV094(connection)
        self._multipath = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PROTOCOL) == abi.IPPROTO_MPTCP
        self._full = self._multipath
        self._header = abi.Memory(abi.FULL_INFO_BYTES)
        self._subflows = abi.Memory(abi.SUBFLOW_INFO_BYTES * ROOM)
        self._tcp = abi.Memory(abi.ARRAY_HEADER_BYTES + abi.TCP_INFO_BYTES * ROOM)
        self._addresses = abi.Memory(abi.ARRAY_HEADER_BYTES + abi.ADDRESSES_BYTES * ROOM)
        self._numbers = abi.Numbers()

    def read(self) -> ConnectionSample:
        """One sample now; StatisticsError when the connection can no longer be read."""
        now = time.monotonic_ns()
        if self._v094 is not None:
            return self._v094.read(now)
        if not self._multipath:
            return plain(self._socket, self._tcp, now, fallback=False)
        try:
            return self._read_full(now) if self._full else self._read_arrays(now)
        except OSError as error:
            if error.errno not in _NO_SUCH_OPTION:
                raise StatisticsError(error.errno, error.strerror) from error
        # Either this kernel has no MPTCP_FULL_INFO, or the connection fell back: MPTCP_INFO tells the two apart.
        try:
            self._call(abi.SOL_MPTCP, abi.MPTCP_INFO, self._header, abi.MPTCP_INFO_BYTES)
        except OSError as error:
            if error.errno not in _NO_SUCH_OPTION:
                raise StatisticsError(error.errno, error.strerror) from error
            return plain(self._socket, self._tcp, now, fallback=True)
        self._full = False
        return self._read_arrays(now)

    def _read_full(self, now: int) -> ConnectionSample:
        abi.full_info_request(self._header.bytes, self._subflows.address, self._tcp.address, ROOM)
        size = self._call(abi.SOL_MPTCP, abi.MPTCP_FULL_INFO, self._header, abi.FULL_INFO_BYTES)
        full = abi.decode_full_info(self._header.bytes[:size], self._subflows.bytes, self._tcp.bytes)
        used = [s for s in full.subflows if not abi.unused(s.tcp, s.remote)]
        rows = tuple(SubflowSample(str(s.id), s.local, s.remote, s.tcp) for s in used)
        return ConnectionSample(now, full.mptcp.fallback, full.mptcp, rows, full.total - len(full.subflows) + len(used))

    def _read_arrays(self, now: int) -> ConnectionSample:
        """Three calls; a subflow may come or go between them, so they are repeated until their counts agree."""
        for _ in range(4):
            size = self._call(abi.SOL_MPTCP, abi.MPTCP_INFO, self._header, abi.MPTCP_INFO_BYTES)
            mptcp = abi.decode_mptcp_info(self._header.bytes[:size])
            abi.array_request(self._addresses.bytes, abi.ADDRESSES_BYTES)
            self._call(abi.SOL_MPTCP, abi.MPTCP_SUBFLOW_ADDRS, self._addresses, len(self._addresses.bytes))
            ends = abi.decode_address_array(self._addresses.bytes)
            abi.array_request(self._tcp.bytes, abi.TCP_INFO_BYTES)
            self._call(abi.SOL_MPTCP, abi.MPTCP_TCPINFO, self._tcp, len(self._tcp.bytes))
            infos = abi.decode_tcp_array(self._tcp.bytes)
            if len(ends) == len(infos):
                used = [(e, tcp) for e, tcp in zip(ends, infos, strict=True) if not abi.unused(tcp, e[1])]
                rows = tuple(SubflowSample(self._numbers.of(*e), e[0], e[1], tcp) for e, tcp in used)
                return ConnectionSample(now, mptcp.fallback, mptcp, rows, len(rows))
        raise StatisticsError(errno.EAGAIN, "the connection's subflows changed during four readings")

    def _call(self, level: int, option: int, memory: abi.Memory, size: int) -> int:
        return abi.getsockopt(self._socket, level, option, memory, size)
