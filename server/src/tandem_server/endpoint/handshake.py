"""What this end saw of a connection's handshake, for whoami: a client compares it with what it saw itself."""

from __future__ import annotations

import errno
import socket
from pathlib import Path

from tandem import mptcp_abi as abi
from tandem.mptcp_abi import v094
from tandem.mptcp_abi.v094 import InfoReader, is_multipath
from tandem.stream import Stream

_NETSTAT = Path("/proc/thread-self/net/netstat")
_V094_COUNTERS = "/" / v094.FOLDER / "snmp"
_ROOM = 8


def seen(connection: Stream) -> dict[str, object]:
    """``multipath``: ``native``, ``fallback`` (it was Multipath TCP and is TCP now), ``none`` (accepted as TCP: MP_CAPABLE was missing
    from the SYN or from what followed our answer); ``handshake_rtt_ms``: the kernel's round-trip time, null when it has none yet;
    ``multipath_syns``: SYNs with MP_CAPABLE that this network namespace has had, null when unknown."""
    multipath = _multipath(connection)
    if multipath == "native" and v094.present():  # where TCP_INFO is the whole connection's, which has no round trips
        info = InfoReader(connection, _ROOM).read().subflows[0].tcp
    else:
        info = abi.decode_tcp_info(connection.getsockopt(socket.IPPROTO_TCP, abi.TCP_INFO, abi.TCP_INFO_BYTES))
    return {
        "multipath": multipath,
        "handshake_rtt_ms": None if info.rtt_us is None else info.rtt_us / 1000,
        "multipath_syns": multipath_syns(),
    }


def multipath_syns() -> int | None:
    """The kernel's counter ``MPCapableSYNRX``."""
    try:
        if v094.present():
            return v094.parse_counters(_V094_COUNTERS.read_text())["MPCapableSYNRX"]
        rows = [line.split() for line in _NETSTAT.read_text().splitlines() if line.startswith("MPTcpExt:")]
        names, values = rows
        return int(dict(zip(names, values, strict=True))["MPCapableSYNRX"])
    except (OSError, ValueError, KeyError):
        return None  # no Multipath TCP in this kernel


def _multipath(connection: Stream) -> str:
    if v094.present():  # which does not say that it was Multipath TCP and is no more
        return "native" if is_multipath(connection) else "none"
    if connection.getsockopt(socket.SOL_SOCKET, socket.SO_PROTOCOL) != abi.IPPROTO_MPTCP:
        return "none"
    try:
        raw = connection.getsockopt(abi.SOL_MPTCP, abi.MPTCP_INFO, abi.MPTCP_INFO_BYTES)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.ENOPROTOOPT):
            raise
        return "fallback"
    return "fallback" if abi.decode_mptcp_info(raw).fallback else "native"
