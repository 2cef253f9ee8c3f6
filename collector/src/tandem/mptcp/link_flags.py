"""Flags of a network interface beyond the sixteen that ioctl reaches, by rtnetlink(7). Reading needs nothing, changing CAP_NET_ADMIN.

Not from /sys, which may show another network namespace's interfaces.
"""

from __future__ import annotations

import errno
import os
import socket
import struct

from tandem.mptcp.netlink import NetlinkError, error_of, messages

_HEADER = struct.Struct("=IHHII")  # length, type, flags, sequence, port
_LINK = struct.Struct("=BxHiII")  # family, type, index, flags, which of the flags to change
_NEW_LINK, _GET_LINK, _SET_LINK = 16, 18, 19
_REQUEST, _ACKNOWLEDGE = 1, 4


def change_request(index: int, flags: int, mask: int) -> bytes:
    """RTM_SETLINK: the bits of ``mask`` as in ``flags``, of the interface with this index."""
    return _message(_SET_LINK, _REQUEST | _ACKNOWLEDGE, index, flags, mask)


def read_request(index: int) -> bytes:
    """RTM_GETLINK."""
    return _message(_GET_LINK, _REQUEST, index, 0, 0)


def _message(kind: int, how: int, index: int, flags: int, mask: int) -> bytes:
    body = _LINK.pack(socket.AF_UNSPEC, 0, index, flags, mask)
    return _HEADER.pack(_HEADER.size + len(body), kind, how, 1, 0) + body


def flags_of(answer: bytes) -> int | None:
    """The flags in the answer to ``read_request``; None when the interface has gone. NetlinkError when it is no such answer."""
    for kind, content in messages(answer):
        if kind == _NEW_LINK and len(content) >= _LINK.size:
            return int(_LINK.unpack_from(content)[3])
    if error_of(answer):
        return None
    raise NetlinkError("an answer without an interface")


def read(interface: str) -> int | None:
    """Its flags; None when there is no such interface."""
    try:
        return flags_of(_asked(read_request(socket.if_nametoindex(interface))))
    except OSError:
        return None


def change(interface: str, flags: int, mask: int) -> None:
    """Set the bits of ``mask`` as in ``flags``; OSError when there is no such interface, or it is not permitted. A kernel that does not
    know a bit leaves it as it is, without a word."""
    try:
        index = socket.if_nametoindex(interface)
    except OSError as error:
        raise OSError(errno.ENODEV, os.strerror(errno.ENODEV)) from error
    code = error_of(_asked(change_request(index, flags, mask)))
    if code:
        raise OSError(code, os.strerror(code))


def _asked(request: bytes) -> bytes:
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as asking:
        asking.bind((0, 0))
        asking.send(request)
        return asking.recv(1 << 16)
