"""Sockets of the v0.9x kernel (``v094``), for both ends: made, and read."""

from __future__ import annotations

import contextlib
import socket
from pathlib import Path
from typing import Protocol, overload

from tandem.mptcp_abi import v094
from tandem.mptcp_abi.calling import GetSockOpt, HasDescriptor, Memory, ask

_LOOPBACK_S = 2.0


class HasOptions(Protocol):
    """A socket, or what carries one."""

    @overload
    def getsockopt(self, level: int, option: int, /) -> int: ...

    @overload
    def getsockopt(self, level: int, option: int, size: int, /) -> bytes: ...


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


def named(connection: HasOptions, option: int) -> str | None:
    """What MPTCP_SCHEDULER or MPTCP_PATH_MANAGER says of an open connection; None when it says nothing."""
    try:
        raw = connection.getsockopt(socket.IPPROTO_TCP, option, v094.NAME_BYTES)
    except OSError:
        return None  # closed meanwhile
    return raw.split(b"\0")[0].decode("ascii", "replace") or None


def is_multipath(connection: HasOptions) -> bool:
    """Whether an open connection is one of Multipath TCP; OSError when it is closed."""
    return bool(connection.getsockopt(socket.IPPROTO_TCP, v094.MPTCP_ENABLED))


def in_force() -> dict[str, str]:
    """``scheduler`` and ``path_manager`` of connections that begin now, by a connection over loopback: the way that is left in a network
    namespace, where the sysctls are hidden. Empty where there is no such connection."""
    with contextlib.suppress(OSError), contextlib.ExitStack() as held:
        listener = held.enter_context(open_socket(socket.AF_INET, multipath=True))
        listener.bind(("127.0.0.1", 0))
        listener.listen(1)
        connection = held.enter_context(open_socket(socket.AF_INET, multipath=True))
        connection.settimeout(_LOOPBACK_S)
        connection.connect(listener.getsockname())
        held.enter_context(listener.accept()[0])
        if is_multipath(connection):
            options = {"scheduler": v094.MPTCP_SCHEDULER, "path_manager": v094.MPTCP_PATH_MANAGER}
            return {what: name for what, option in options.items() if (name := named(connection, option))}
    return {}
