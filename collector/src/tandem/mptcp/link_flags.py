"""Flags of a network interface beyond the sixteen that ioctl reaches: read from /sys, changed by rtnetlink (CAP_NET_ADMIN)."""

from __future__ import annotations

import os
import socket
import struct
from pathlib import Path

from tandem.mptcp.netlink import error_of

_HEADER = struct.Struct("=IHHII")  # length, type, flags, sequence, port
_LINK = struct.Struct("=BxHiII")  # family, type, index, flags, which of the flags to change
_SET_LINK, _REQUEST, _ACKNOWLEDGE = 19, 1, 4


def change_request(index: int, flags: int, mask: int) -> bytes:
    """RTM_SETLINK: the bits of ``mask`` as in ``flags``, of the interface with this index (rtnetlink(7))."""
    body = _LINK.pack(socket.AF_UNSPEC, 0, index, flags, mask)
    return _HEADER.pack(_HEADER.size + len(body), _SET_LINK, _REQUEST | _ACKNOWLEDGE, 1, 0) + body


def read(interface: str, root: Path = Path("/")) -> int | None:
    """Its flags; None when there is no such interface."""
    try:
        return int((root / "sys/class/net" / interface / "flags").read_text(), 16)
    except OSError:
        return None


def change(interface: str, flags: int, mask: int) -> None:
    """Set the bits of ``mask`` as in ``flags``; OSError when there is no such interface, or it is not permitted. A kernel that does not
    know a bit leaves it as it is, without a word."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as asking:
        asking.bind((0, 0))
        asking.send(change_request(socket.if_nametoindex(interface), flags, mask))
        code = error_of(asking.recv(1 << 16))
    if code:
        raise OSError(code, os.strerror(code))
