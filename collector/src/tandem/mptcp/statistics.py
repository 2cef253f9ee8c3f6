"""Read one connection's statistics from the kernel: the whole connection and each subflow, in one call where it can.

MPTCP_FULL_INFO since Linux 6.5; before, MPTCP_TCPINFO with MPTCP_SUBFLOW_ADDRS; TCP_INFO after a fallback and for plain TCP. The
v0.9x kernel has its own way: ``kernel_v094``.
"""

from __future__ import annotations

import errno
import socket
import time

from tandem import mptcp_abi as abi
from tandem.mptcp import kernel_v094
from tandem.mptcp.samples import ROOM, ConnectionSample, StatisticsError, SubflowSample, plain
from tandem.mptcp_abi import v094
from tandem.mptcp_abi.calling import Memory, Numbers, ask

__all__ = ["ROOM", "ConnectionSample", "Reader", "StatisticsError", "SubflowSample", "read"]

_NO_SUCH_OPTION = (errno.EOPNOTSUPP, errno.ENOPROTOOPT)


class Reader:
    """Reads one socket again and again with the same buffers; ``socket`` may be MPTCP or TCP. Not for two threads at once."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._v094 = kernel_v094.Reader(connection) if v094.present() else None
        self._multipath = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PROTOCOL) == abi.IPPROTO_MPTCP
        self._full = self._multipath
        self._header = Memory(abi.FULL_INFO_BYTES)
        self._subflows = Memory(abi.SUBFLOW_INFO_BYTES * ROOM)
        self._tcp = Memory(abi.ARRAY_HEADER_BYTES + abi.TCP_INFO_BYTES * ROOM)
        self._addresses = Memory(abi.ARRAY_HEADER_BYTES + abi.ADDRESSES_BYTES * ROOM)
        self._numbers = Numbers()

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

    def _call(self, level: int, option: int, memory: Memory, size: int) -> int:
        return ask(self._socket, level, option, memory, size)


def read(connection: socket.socket) -> ConnectionSample:
    """One sample of ``connection``; for a series keep a ``Reader``, which keeps its buffers."""
    return Reader(connection).read()
