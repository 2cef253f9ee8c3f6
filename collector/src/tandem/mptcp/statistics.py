"""Read one connection's statistics from the kernel: the whole connection and each subflow, in one call where it can.

MPTCP_FULL_INFO since Linux 6.5; before, MPTCP_TCPINFO with MPTCP_SUBFLOW_ADDRS; TCP_INFO after a fallback and for plain TCP. The
v0.9x kernel has its own way: ``kernel_v094``.
"""

from __future__ import annotations

import errno
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

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


# ---------------------------------------------------------------------------------------------------------------------
# From samples of one connection to ``sample`` lines, with the fields of ``connection`` and ``subflow`` records, and
# to totals by subflow.
#
# Pure: samples in, plain values out. A subflow that closed keeps its last counters, which the kernel forgets.


class PathName(NamedTuple):
    """A path as records name it."""

    path: str | None
    operator: str | None


End = Literal["receiver", "sender"]
NameOf = Callable[[SubflowSample], PathName]
"""Which path a subflow runs over, told from its addresses."""


@dataclass(slots=True)
class SubflowTotal:
    """A subflow over the whole connection, alive or closed.

    ``bytes``: received (or, at a sender, acknowledged) when last seen; ``bytes_sent``: as the kernel counts, None where it does
    not. ``established_ns``: CLOCK_MONOTONIC of the first sample
    that showed it established, None if none did. ``handshake_rtt_ms``: the kernel's RTT at that sample, which at a receiver is
    the handshake's. ``rtt_ms``: every sample's RTT (at a receiver the kernel's receiver-side estimate). ``local_port``, ``remote``: our
    end's port, the peer's host.
    """

    subflow: str
    name: PathName
    bytes: int = 0
    bytes_sent: int | None = None
    established_ns: int | None = None
    handshake_rtt_ms: float | None = None
    rtt_ms: list[float] = field(default_factory=list)
    local_port: int | None = None
    remote: str | None = None

    @property
    def rtt_ms_median(self) -> float | None:
        """Median of ``rtt_ms``; None without one."""
        return _median(self.rtt_ms)


class Series:
    """Takes the samples of one connection in order. ``end``: which counter is the goodput's, ours as receiver or as sender."""

    def __init__(self, name_of: NameOf, end: End = "receiver") -> None:
        self._name_of = name_of
        self._end = end
        self._previous_ns: int | None = None
        self._previous_payload = 0
        self.totals: dict[str, SubflowTotal] = {}
        self.fallback = False
        self.token: int | None = None
        """By which the kernel knows the connection; None for plain TCP."""

    def add(self, sample: ConnectionSample, payload_bytes: int) -> dict[str, Any]:
        """``sample`` as the content of a line: ``monotonic_ns``; ``connection`` with the fields of ``schema.metrics.CONNECTION``;
        ``subflows`` with those of ``schema.metrics.SUBFLOW``, absent ones left out. ``payload_bytes`` is what the application has read (or
        written) so far."""
        elapsed = None if self._previous_ns is None else (sample.monotonic_ns - self._previous_ns) / 1e9
        self.fallback = self.fallback or sample.fallback
        if sample.mptcp is not None:
            self.token = sample.mptcp.token
        rows = [self._subflow(s, sample.monotonic_ns, elapsed) for s in sample.subflows]
        goodput = _rate(payload_bytes - self._previous_payload, elapsed)
        connection = {
            "bytes": payload_bytes,
            "subflows": sample.alive,
            "fallback": self.fallback,
            "goodput_bit_per_s": goodput,
        }
        self._previous_ns, self._previous_payload = sample.monotonic_ns, payload_bytes
        return {"monotonic_ns": sample.monotonic_ns, "connection": _present(connection), "subflows": rows}

    def note(self, sample: ConnectionSample) -> None:
        """Only see which subflows are established, between two rows."""
        for subflow in sample.subflows:
            self._total(subflow, sample.monotonic_ns)

    def _total(self, sample: SubflowSample, now: int) -> SubflowTotal:
        total = self.totals.get(sample.id)
        if total is None:
            total = self.totals[sample.id] = SubflowTotal(sample.id, self._name_of(sample))
        elif total.name.path is None:
            total.name = self._name_of(sample)  # an address may not have been known while the subflow was connecting
        if sample.local is not None and sample.local.port:
            total.local_port = sample.local.port
        if sample.remote is not None:
            total.remote = sample.remote.host
        if total.established_ns is None and sample.established:
            total.established_ns = now
            total.handshake_rtt_ms = _ms(sample.tcp.rtt_us)
        return total

    def _subflow(self, sample: SubflowSample, now: int, elapsed: float | None) -> dict[str, Any]:
        tcp = sample.tcp
        total = self._total(sample, now)
        count = tcp.bytes_received if self._end == "receiver" else tcp.bytes_acked
        gained = None if count is None else max(0, count - total.bytes)
        total.bytes = max(total.bytes, count or 0)
        if tcp.bytes_sent is not None:
            total.bytes_sent = max(total.bytes_sent or 0, tcp.bytes_sent)
        rtt = _ms(tcp.rcv_rtt_us if self._end == "receiver" else tcp.rtt_us)
        if rtt is not None:
            total.rtt_ms.append(rtt)
        fields = {
            "goodput_bit_per_s": _rate(gained, elapsed),
            "bytes_received": tcp.bytes_received,
            "bytes_sent": tcp.bytes_sent,
            "bytes_acked": tcp.bytes_acked,
            "bytes_retrans": tcp.bytes_retrans,
            "rtt_ms": _ms(tcp.rtt_us),
            "rtt_min_ms": _ms(tcp.min_rtt_us),
            "rcv_rtt_ms": _ms(tcp.rcv_rtt_us),
            "cwnd_segments": tcp.snd_cwnd_segments,
            "notsent_bytes": tcp.notsent_bytes,
            "delivery_rate_bit_per_s": None if tcp.delivery_rate is None else tcp.delivery_rate * 8.0,
            "retransmits_segments": tcp.total_retrans_segments,
            "rcv_ooo_packets": tcp.rcv_ooo_packets,
        }
        return {"subflow": sample.id, "path": total.name.path, "operator": total.name.operator, **_present(fields)}

    def ordered(self) -> list[SubflowTotal]:
        """All subflows in the order in which they were established; those that never were come last."""
        return sorted(
            self.totals.values(), key=lambda t: (t.established_ns is None, t.established_ns or 0, _number(t.subflow))
        )


def shares(totals: Sequence[SubflowTotal]) -> list[float]:
    """Each subflow's part of all bytes, 0 to 1; all 0 when nothing was carried."""
    whole = sum(t.bytes for t in totals)
    return [t.bytes / whole if whole else 0.0 for t in totals]


def _median(values: Sequence[float]) -> float | None:
    # As of the module statistics, whose loading (fractions, decimal, random) takes longer than a whole run's samples.
    if not values:
        return None
    ordered, middle = sorted(values), len(values) // 2
    return ordered[middle] if len(values) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def _number(subflow: str) -> int:
    return int(subflow) if subflow.isdigit() else 0


def _ms(us: int | None) -> float | None:
    return None if us is None else us / 1000


def _rate(gained: int | None, elapsed: float | None) -> float | None:
    return None if gained is None or not elapsed else gained * 8 / elapsed


def _present(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
