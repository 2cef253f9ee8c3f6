"""Reads a connection's statistics from the kernel: per subflow for Multipath TCP, one subflow for TCP and after fallback."""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import time
from dataclasses import dataclass, replace

from tandem import mptcp_abi as abi
from tandem.mptcp_abi import v094
from tandem.stream import Stream, TlsStream
from tandem_server.endpoint.multipath import V094Info

_ROOM = 8
"""Subflows read at most; the kernel's own limit is 8 (MPTCP_PM_ADDR_MAX)."""

_LIBC = ctypes.CDLL(None, use_errno=True)
_FELL_BACK = (errno.EOPNOTSUPP, errno.ENOPROTOOPT)
_PLAIN_V094 = (errno.EINVAL,)
_NO_FULL_INFO = (errno.EOPNOTSUPP, errno.ENOPROTOOPT, errno.EINVAL)


@dataclass(frozen=True, slots=True)
class Flow:
    """One subflow now. ``id`` is unique within the connection; ``remote`` and ``port`` are the peer's as seen here."""

    id: str
    remote: str | None
    tcp: abi.TcpInfo
    port: int | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One reading. ``multipath`` False for TCP and after fallback; then ``flows`` is the one connection, with id 1. ``acked_bytes``: of
    what was written; with TLS its payload in whole records, not what encrypting adds."""

    monotonic_ns: int
    utc_ns: int
    multipath: bool
    flows: tuple[Flow, ...]
    acked_bytes: int | None


class Sampler:
    """Reads one connected socket; use it from one thread. Costs 20 to 200 µs a reading."""

    def __init__(self, connection: Stream) -> None:
        self._socket = connection
        peer = connection.getpeername()
        self._peer, self._port = _plain(peer[0]), int(peer[1])
        self._header = bytearray(abi.FULL_INFO_BYTES)
        self._subflows = bytearray(_ROOM * abi.SUBFLOW_INFO_BYTES)
        self._tcp = bytearray(_ROOM * abi.TCP_INFO_BYTES)
        self._addresses = (_address(self._subflows), _address(self._tcp))
        self._numbers: dict[tuple[object, object], str] = {}
        self._full_info = True
        self._v094 = V094Info(connection, _ROOM) if v094.present() else None

    def read(self) -> Snapshot | None:
        """The statistics now; None when the connection has none any more (closed, reset)."""
        snapshot = self._read()
        if snapshot is not None and snapshot.acked_bytes is not None and isinstance(self._socket, TlsStream):
            return replace(snapshot, acked_bytes=self._socket.payload_in(snapshot.acked_bytes))
        return snapshot

    def _read(self) -> Snapshot | None:
        utc_ns, monotonic_ns = time.time_ns(), time.monotonic_ns()
        try:
            if self._v094 is not None:
                return self._by_v094(self._v094, monotonic_ns, utc_ns)
            return self._multipath(monotonic_ns, utc_ns)
        except OSError as error:
            if error.errno not in (_FELL_BACK if self._v094 is None else _PLAIN_V094):
                return None
        try:
            tcp = abi.decode_tcp_info(self._socket.getsockopt(socket.IPPROTO_TCP, abi.TCP_INFO, abi.TCP_INFO_BYTES))
        except OSError:
            return None
        return Snapshot(monotonic_ns, utc_ns, False, (Flow("1", self._peer, tcp, self._port),), tcp.bytes_acked)

    def _multipath(self, monotonic_ns: int, utc_ns: int) -> Snapshot:
        """OSError with EOPNOTSUPP when the connection is none of Multipath TCP."""
        if self._full_info:
            try:
                return self._by_full_info(monotonic_ns, utc_ns)
            except OSError as error:
                if error.errno not in _NO_FULL_INFO:
                    raise
        info = abi.decode_mptcp_info(self._socket.getsockopt(abi.SOL_MPTCP, abi.MPTCP_INFO, abi.MPTCP_INFO_BYTES))
        self._full_info = False  # MPTCP_INFO answers and MPTCP_FULL_INFO does not: a kernel before 6.5
        return self._by_arrays(info, monotonic_ns, utc_ns)

    def _by_v094(self, info: V094Info, monotonic_ns: int, utc_ns: int) -> Snapshot:
        told = info.read()
        flows = tuple(
            Flow(
                self._number(s.local, s.remote),
                s.remote.host if s.remote else None,
                s.tcp,
                s.remote.port if s.remote else None,
            )
            for s in told.subflows
        )
        return Snapshot(monotonic_ns, utc_ns, True, flows, told.meta.bytes_acked)

    def _by_full_info(self, monotonic_ns: int, utc_ns: int) -> Snapshot:
        abi.full_info_request(self._header, *self._addresses, _ROOM)
        self._call(abi.MPTCP_FULL_INFO, self._header)
        full = abi.decode_full_info(self._header, self._subflows, self._tcp)
        flows = tuple(
            Flow(
                str(f.id) if f.id is not None else self._number(f.local, f.remote),
                f.remote.host if f.remote else None,
                f.tcp,
                f.remote.port if f.remote else None,
            )
            for f in full.subflows
            if not abi.unused(f.tcp, f.remote)
        )
        return Snapshot(monotonic_ns, utc_ns, not full.mptcp.fallback, flows, full.mptcp.bytes_acked)

    def _by_arrays(self, info: abi.MptcpInfo, monotonic_ns: int, utc_ns: int) -> Snapshot:
        tcp = bytearray(abi.ARRAY_HEADER_BYTES + _ROOM * abi.TCP_INFO_BYTES)
        abi.array_request(tcp, abi.TCP_INFO_BYTES)
        self._call(abi.MPTCP_TCPINFO, tcp)
        ends = bytearray(abi.ARRAY_HEADER_BYTES + _ROOM * abi.ADDRESSES_BYTES)
        abi.array_request(ends, abi.ADDRESSES_BYTES)
        self._call(abi.MPTCP_SUBFLOW_ADDRS, ends)
        flows = tuple(
            Flow(self._number(local, remote), remote.host if remote else None, one, remote.port if remote else None)
            # A subflow may come or go between the two calls; the pairs that both saw are right.
            for one, (local, remote) in zip(abi.decode_tcp_array(tcp), abi.decode_address_array(ends), strict=False)
            if not abi.unused(one, remote)
        )
        return Snapshot(monotonic_ns, utc_ns, not info.fallback, flows, info.bytes_acked)

    def _number(self, local: object, remote: object) -> str:
        """Ids for kernels that give none: by pair of addresses, in the order seen."""
        return self._numbers.setdefault((local, remote), str(len(self._numbers) + 1))

    def _call(self, option: int, buffer: bytearray) -> None:
        # socket.getsockopt cannot pass a buffer in, and these options read the caller's sizes from it.
        length = ctypes.c_uint32(len(buffer))
        place = (ctypes.c_char * len(buffer)).from_buffer(buffer)
        if _LIBC.getsockopt(self._socket.fileno(), abi.SOL_MPTCP, option, place, ctypes.byref(length)) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))


def _address(buffer: bytearray) -> int:
    return ctypes.addressof((ctypes.c_char * len(buffer)).from_buffer(buffer))


def _plain(host: str) -> str:
    """IPv4 addresses that a dual-stack socket shows mapped into IPv6, as IPv4."""
    return host.removeprefix("::ffff:") if host.startswith("::ffff:") and "." in host else host
