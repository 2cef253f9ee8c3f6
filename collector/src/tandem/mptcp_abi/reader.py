"""Read one connection's statistics from the kernel, at either end: the whole connection and each subflow, in one call where it can.

MPTCP_FULL_INFO since Linux 6.5; before, MPTCP_TCPINFO with MPTCP_SUBFLOW_ADDRS; on the v0.9x kernel MPTCP_INFO; TCP_INFO after a
fallback and for plain TCP.
"""

from __future__ import annotations

import errno
import os
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tandem import mptcp_abi as abi
from tandem.mptcp_abi import SubflowSample, v094

ROOM = 16
"""Subflows that one sample can hold. Eight endpoints on each end are the kernels' own limit; further ones are counted only."""


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
        return sum(s.alive for s in self.subflows)


class StatisticsError(OSError):
    """The kernel refused every way of reading: the socket is closed, or not a TCP connection."""


_NO_SUCH_OPTION = (errno.EOPNOTSUPP, errno.ENOPROTOOPT)


class Reader:
    """Reads one socket again and again with the same buffers; ``connection`` may be MPTCP or TCP. Not for two threads at once.

    ``root``: where the v0.9x kernel's files are. That kernel does not show a connection that left Multipath TCP after its handshake (an
    infinite mapping): there ``fallback`` is true only where the handshake already was plain TCP."""

    def __init__(self, connection: abi.Connection, root: Path = Path("/")) -> None:
        self._connection, self._root = connection, root
        self._tcp = abi.Memory(abi.ARRAY_HEADER_BYTES + abi.TCP_INFO_BYTES * ROOM)
        self._numbers: dict[tuple[object, object], str] = {}
        self._v094 = v094.InfoReader(connection, ROOM) if v094.present(root) else None
        if self._v094 is not None:
            self._multipath = isinstance(connection, v094.MultipathSocket)
            self._token = _token(connection, root)
            return
        self._multipath = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PROTOCOL) == abi.IPPROTO_MPTCP
        self._full = self._multipath
        self._header = abi.Memory(abi.FULL_INFO_BYTES)
        self._subflows = abi.Memory(abi.SUBFLOW_INFO_BYTES * ROOM)
        self._addresses = abi.Memory(abi.ARRAY_HEADER_BYTES + abi.ADDRESSES_BYTES * ROOM)

    def read(self) -> ConnectionSample:
        """One sample now; StatisticsError when the connection can no longer be read."""
        now = time.monotonic_ns()
        try:
            if self._v094 is not None:
                return self._read_v094(self._v094, now)
            if not self._multipath:
                return self._read_plain(now, fallback=False)
            return self._read_multipath(now)
        except StatisticsError:
            raise
        except OSError as error:
            raise StatisticsError(error.errno, error.strerror) from error

    def _read_multipath(self, now: int) -> ConnectionSample:
        try:
            return self._read_full(now) if self._full else self._read_arrays(now)
        except OSError as error:
            if error.errno not in _NO_SUCH_OPTION:
                raise
        # Either this kernel has no MPTCP_FULL_INFO, or the connection fell back: MPTCP_INFO tells the two apart.
        try:
            self._call(abi.MPTCP_INFO, self._header, abi.MPTCP_INFO_BYTES)
        except OSError as error:
            if error.errno not in _NO_SUCH_OPTION:
                raise
            return self._read_plain(now, fallback=True)
        self._full = False
        return self._read_arrays(now)

    def _read_full(self, now: int) -> ConnectionSample:
        abi.full_info_request(self._header.bytes, self._subflows.address, self._tcp.address, ROOM)
        size = self._call(abi.MPTCP_FULL_INFO, self._header, abi.FULL_INFO_BYTES)
        full = abi.decode_full_info(self._header.bytes[:size], self._subflows.bytes, self._tcp.bytes)
        used = tuple(s for s in full.subflows if not abi.unused(s.tcp, s.remote))
        return ConnectionSample(now, full.mptcp.fallback, full.mptcp, used, full.total - len(full.subflows) + len(used))

    def _read_arrays(self, now: int) -> ConnectionSample:
        """Three calls; a subflow may come or go between them, so they are repeated until their counts agree."""
        for _ in range(4):
            size = self._call(abi.MPTCP_INFO, self._header, abi.MPTCP_INFO_BYTES)
            mptcp = abi.decode_mptcp_info(self._header.bytes[:size])
            abi.array_request(self._addresses.bytes, abi.ADDRESSES_BYTES)
            self._call(abi.MPTCP_SUBFLOW_ADDRS, self._addresses, len(self._addresses.bytes))
            ends = abi.decode_address_array(self._addresses.bytes)
            abi.array_request(self._tcp.bytes, abi.TCP_INFO_BYTES)
            self._call(abi.MPTCP_TCPINFO, self._tcp, len(self._tcp.bytes))
            infos = abi.decode_tcp_array(self._tcp.bytes)
            if len(ends) == len(infos):
                used = [(*e, tcp) for e, tcp in zip(ends, infos, strict=True) if not abi.unused(tcp, e[1])]
                return self._numbered(now, mptcp, used)
        raise StatisticsError(errno.EAGAIN, "the connection's subflows changed during four readings")

    def _read_v094(self, reader: v094.InfoReader, now: int) -> ConnectionSample:
        try:
            info = reader.read()
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            return self._read_plain(now, fallback=self._multipath)
        return self._numbered(now, info.mptcp._replace(token=self._token), info.subflows)

    def _numbered(
        self, now: int, mptcp: abi.MptcpInfo, rows: Sequence[tuple[abi.Address | None, abi.Address | None, abi.TcpInfo]]
    ) -> ConnectionSample:
        """A sample of subflows to which the kernel gives no numbers: from 1 by first appearance, told apart by both ends."""
        known = self._numbers
        subflows = tuple(SubflowSample(known.setdefault(row[:2], str(len(known) + 1)), *row) for row in rows)
        return ConnectionSample(now, mptcp.fallback, mptcp, subflows, len(subflows))

    def _read_plain(self, now: int, *, fallback: bool) -> ConnectionSample:
        size = abi.getsockopt(self._connection, socket.IPPROTO_TCP, abi.TCP_INFO, self._tcp, abi.TCP_INFO_BYTES)
        tcp = abi.decode_tcp_info(self._tcp.bytes[:size])
        ends = (_end(self._connection.getsockname), _end(self._connection.getpeername))
        return ConnectionSample(now, fallback, None, (SubflowSample("0", *ends, tcp),), 1)

    def _call(self, option: int, memory: abi.Memory, size: int) -> int:
        return abi.getsockopt(self._connection, abi.SOL_MPTCP, option, memory, size)


def _end(name: Callable[[], Any]) -> abi.Address | None:
    """Our or the peer's address; None once the connection is gone, whose counters may still be read."""
    try:
        host, port = name()[:2]
    except OSError:
        return None
    return abi.Address(host.removeprefix("::ffff:"), port)


def _token(connection: abi.Connection, root: Path) -> int | None:
    """The v0.9x kernel's token of the connection, by its socket's inode; None for who has no CAP_NET_ADMIN."""
    try:
        found = v094.parse_connections((root / v094.FOLDER / "mptcp").read_text())
        inode = os.fstat(connection.fileno()).st_ino
    except (OSError, abi.AbiError):
        return None
    return next((one.token for one in found if one.inode == inode), None)
