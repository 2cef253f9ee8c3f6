"""Sockets of the v0.9x kernel (``v094``), for both ends: made, and read. Made after its public source; it has not run there."""

from __future__ import annotations

import socket
from pathlib import Path

from tandem.mptcp_abi import v094
from tandem.mptcp_abi.calling import GetSockOpt, HasDescriptor, Memory, ask


class MultipathSocket(socket.socket):
    """A socket that was asked to be one of Multipath TCP. That kernel's sockets are all of TCP, and one whose handshake fell back
    looks as if nobody had asked."""

    __slots__ = ()


def open_socket(family: socket.AddressFamily, *, multipath: bool, root: Path = Path("/")) -> socket.socket:
    """A stream socket of Multipath TCP, or of TCP alone. With mptcp_enabled=1 every TCP socket is one of Multipath TCP, so plain TCP
    has to be asked for too. OSError when the kernel refuses; not for plain TCP where Multipath TCP is off, or its sysctls are hidden."""
    made = MultipathSocket(family, socket.SOCK_STREAM) if multipath else socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.IPPROTO_TCP, v094.MPTCP_ENABLED, int(multipath))
    except OSError:
        if multipath or _enabled(root) not in ("0", None):
            made.close()
            raise
    return made


def _enabled(root: Path) -> str | None:
    try:
        return (root / v094.ENABLED).read_text().strip()
    except OSError:
        return None


class InfoReader:
    """Reads MPTCP_INFO of one connection again and again; at most ``room`` subflows. ``getsockopt``: as libc's."""

    def __init__(self, connection: HasDescriptor, room: int, getsockopt: GetSockOpt | None = None) -> None:
        self._connection, self._room, self._getsockopt = connection, room, getsockopt
        self._header, self._meta = Memory(v094.INFO_BYTES), Memory(v094.META_BYTES)
        self._tcp, self._ends = Memory(room * v094.TCP_INFO_BYTES), Memory(room * v094.ENDS_BYTES)

    def read(self) -> v094.Info:
        """Connection and subflows now; OSError with EINVAL when the connection is plain TCP, AbiError when the answer is none."""
        header = self._header
        v094.info_request(header.bytes, self._meta.address, self._tcp.address, self._ends.address, self._room)
        ask(self._connection, socket.IPPROTO_TCP, v094.MPTCP_INFO, header, v094.INFO_BYTES, self._getsockopt)
        return v094.decode_info(header.bytes, self._meta.bytes, self._tcp.bytes, self._ends.bytes)
