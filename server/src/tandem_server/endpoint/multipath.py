"""The two kernels' ways of Multipath TCP at this end: the stock one has a protocol of its own for it (IPPROTO_MPTCP), the out-of-tree
v0.9x kernel an option of TCP sockets. The latter's were made after its public source; the endpoint has not run on it.

They speak different versions of the protocol: a probe of one kind gets plain TCP from a server of the other.
"""

from __future__ import annotations

import ctypes
import os
import socket
from collections.abc import Callable

from tandem.mptcp_abi import IPPROTO_MPTCP, v094
from tandem.stream import Stream

_LIBC = ctypes.CDLL(None, use_errno=True)
GetSockOpt = Callable[..., int]
MEND = "sysctl net.mptcp.enabled=1 on Linux 5.6 or later (net.mptcp.mptcp_enabled=1 on the v0.94 kernel)"


def open_socket(family: socket.AddressFamily, *, multipath: bool) -> socket.socket:
    """A stream socket of Multipath TCP, or of TCP alone; OSError when the kernel has none. On the v0.9x kernel with mptcp_enabled=1
    every TCP socket is one of Multipath TCP, so TCP alone is asked for too, and refused only where there is no Multipath TCP."""
    if not v094.present():
        return socket.socket(family, socket.SOCK_STREAM, IPPROTO_MPTCP if multipath else socket.IPPROTO_TCP)
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.IPPROTO_TCP, v094.MPTCP_ENABLED, int(multipath))
    except OSError:
        if multipath:
            made.close()
            raise
    return made


class V094Info:
    """Reads one connection of the v0.9x kernel again and again; at most ``room`` subflows. ``getsockopt``: as libc's."""

    def __init__(self, connection: Stream, room: int, getsockopt: GetSockOpt = _LIBC.getsockopt) -> None:
        self._socket, self._room, self._getsockopt = connection, room, getsockopt
        self._header, self._meta = bytearray(v094.INFO_BYTES), bytearray(v094.META_BYTES)
        self._tcp, self._ends = bytearray(room * v094.TCP_INFO_BYTES), bytearray(room * v094.ENDS_BYTES)
        meta, tcp, ends = (ctypes.addressof(_place(b)) for b in (self._meta, self._tcp, self._ends))
        self._places = (meta, tcp, ends)

    def read(self) -> v094.Info:
        """Connection and subflows now; OSError with EINVAL when the connection is plain TCP."""
        v094.info_request(self._header, *self._places, self._room)
        length = ctypes.c_uint32(len(self._header))
        place = _place(self._header)
        if (
            self._getsockopt(self._socket.fileno(), socket.IPPROTO_TCP, v094.MPTCP_INFO, place, ctypes.byref(length))
            != 0
        ):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return v094.decode_info(self._header, self._meta, self._tcp, self._ends)


def _place(buffer: bytearray) -> ctypes.Array[ctypes.c_char]:
    return (ctypes.c_char * len(buffer)).from_buffer(buffer)
