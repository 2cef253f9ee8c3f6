"""Reads a connection's statistics from the kernel: per subflow for Multipath TCP, one subflow for TCP and after fallback."""

from __future__ import annotations

import errno
import socket
import time
from dataclasses import dataclass, replace

from tandem import mptcp_abi as abi
from tandem.mptcp_abi import Memory, Numbers, getsockopt, v094
from tandem.mptcp_abi.v094 import InfoReader
from tandem.stream import Stream, TlsStream

_ROOM = 8
"""Subflows read at most; the kernel's own limit is 8 (MPTCP_PM_ADDR_MAX)."""

_FELL_BACK = (errno.EOPNOTSUPP, errno.ENOPROTOOPT)
_PLAIN_V094 = (errno.EINVAL,)
_NO_FULL_INFO = (errno.EOPNOTSUPP, errno.ENOPROTOOPT, errno.EINVAL)


@dataclass(frozen=True, slots=True)
class Flow:
    """One subflow now. ``id`` is unique within the connection; ``remote`` and ``port`` are the peer's as seen here, ``local`` is which of
    our addresses it came to."""

    id: str
    remote: str | None
    tcp: abi.TcpInfo
    port: int | None = None
    local: str | None = None


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
        self._header = Memory(abi.FULL_INFO_BYTES)
        self._subflows = Memory(_ROOM * abi.SUBFLOW_INFO_BYTES)
        self._tcp = Memory(abi.ARRAY_HEADER_BYTES + _ROOM * abi.TCP_INFO_BYTES)
        self._ends = Memory(abi.ARRAY_HEADER_BYTES + _ROOM * abi.ADDRESSES_BYTES)
        self._numbers = Numbers()
        self._full_info = True
        self._v094 = InfoReader(connection, _ROOM) if v094.present() else None

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

    def _by_v094(self, reader: InfoReader, monotonic_ns: int, utc_ns: int) -> Snapshot:
        info = reader.read()
        flows = tuple(_flow(self._numbers.of(s.local, s.remote), s.local, s.remote, s.tcp) for s in info.subflows)
        return Snapshot(monotonic_ns, utc_ns, True, flows, info.meta.bytes_acked)

    def _by_full_info(self, monotonic_ns: int, utc_ns: int) -> Snapshot:
        abi.full_info_request(self._header.bytes, self._subflows.address, self._tcp.address, _ROOM)
        size = self._call(abi.MPTCP_FULL_INFO, self._header)
        full = abi.decode_full_info(self._header.bytes[:size], self._subflows.bytes, self._tcp.bytes)
        flows = tuple(
            _flow(str(f.id) if f.id is not None else self._numbers.of(f.local, f.remote), f.local, f.remote, f.tcp)
            for f in full.subflows
            if not abi.unused(f.tcp, f.remote)
        )
        return Snapshot(monotonic_ns, utc_ns, not full.mptcp.fallback, flows, full.mptcp.bytes_acked)

    def _by_arrays(self, info: abi.MptcpInfo, monotonic_ns: int, utc_ns: int) -> Snapshot:
        abi.array_request(self._tcp.bytes, abi.TCP_INFO_BYTES)
        self._call(abi.MPTCP_TCPINFO, self._tcp)
        abi.array_request(self._ends.bytes, abi.ADDRESSES_BYTES)
        self._call(abi.MPTCP_SUBFLOW_ADDRS, self._ends)
        infos, ends = abi.decode_tcp_array(self._tcp.bytes), abi.decode_address_array(self._ends.bytes)
        flows = tuple(
            _flow(self._numbers.of(local, remote), local, remote, one)
            # A subflow may come or go between the two calls; the pairs that both saw are right.
            for one, (local, remote) in zip(infos, ends, strict=False)
            if not abi.unused(one, remote)
        )
        return Snapshot(monotonic_ns, utc_ns, not info.fallback, flows, info.bytes_acked)

    def _call(self, option: int, memory: Memory) -> int:
        return getsockopt(self._socket, abi.SOL_MPTCP, option, memory, len(memory.bytes))


def _flow(number: str, local: abi.Address | None, remote: abi.Address | None, tcp: abi.TcpInfo) -> Flow:
    host, port = (None, None) if remote is None else (remote.host, remote.port)
    return Flow(number, host, tcp, port, None if local is None else local.host)


def _plain(host: str) -> str:
    """IPv4 addresses that a dual-stack socket shows mapped into IPv6, as IPv4."""
    return host.removeprefix("::ffff:") if host.startswith("::ffff:") and "." in host else host
