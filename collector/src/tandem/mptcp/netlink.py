"""Netlink, as much of it as the probe needs: messages and attributes taken apart, sockets that receive what changes, an interface's flags.

Layouts: ``linux/netlink.h``, ``linux/genetlink.h``, ``linux/rtnetlink.h``; numbers in the machine's own byte order, everything
aligned to 4 bytes. Parsers are pure, take what comes from a kernel, and raise NetlinkError only.
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import struct
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

_HEADER = struct.Struct("=IHHII")  # length, type, flags, sequence, port
_ATTRIBUTE = struct.Struct("=HH")  # length with this header, type
_GENERIC = struct.Struct("=BBH")  # command, version, reserved
_TYPE_MASK = 0x3FFF  # without NLA_F_NESTED and NLA_F_NET_BYTEORDER
_NESTED = 0x8000
_REQUEST, _ACKNOWLEDGE = 1, 4
_ERROR, _GENERIC_CONTROL = 2, 0x10
_GET_FAMILY = 3
_FAMILY_ID, _FAMILY_NAME, _GROUPS = 1, 2, 7
_GROUP_NAME, _GROUP_ID = 1, 2
_SOL_NETLINK, _ADD_MEMBERSHIP = 270, 1
_NETLINK_GENERIC = 16
_NEWNET = 0x40000000

_ROUTE_GROUPS = 1 | 0x10 | 0x40 | 0x80 | 0x100 | 0x400 | 1 << 18
"""RTMGRP_LINK, IPv4: IFADDR, ROUTE, RULE; IPv6: IFADDR, ROUTE; RTNLGRP_IPV6_RULE."""


class NetlinkError(ValueError):
    """The bytes are not what a kernel writes."""


def messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Type and content of each message."""
    at = 0
    while at < len(data):
        if len(data) - at < _HEADER.size:
            raise NetlinkError(f"{len(data) - at} bytes where a message's header begins")
        length, kind, _, _, _ = _HEADER.unpack_from(data, at)
        if length < _HEADER.size or length > len(data) - at:
            raise NetlinkError(f"a message of {length} bytes in {len(data) - at}")
        yield kind, data[at + _HEADER.size : at + length]
        at += _aligned(length)


def attributes(data: bytes) -> dict[int, bytes]:
    """Content by type; of a type that occurs twice, the last."""
    return dict(_each_attribute(data))


def _each_attribute(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(data):
        if len(data) - at < _ATTRIBUTE.size:
            raise NetlinkError(f"{len(data) - at} bytes where an attribute's header begins")
        length, kind = _ATTRIBUTE.unpack_from(data, at)
        if length < _ATTRIBUTE.size or length > len(data) - at:
            raise NetlinkError(f"an attribute of {length} bytes in {len(data) - at}")
        yield kind & _TYPE_MASK, data[at + _ATTRIBUTE.size : at + length]
        at += _aligned(length)


def generic(content: bytes) -> tuple[int, dict[int, bytes]]:
    """Command and attributes of a generic netlink message's content."""
    if len(content) < _GENERIC.size:
        raise NetlinkError(f"{len(content)} bytes where a generic header begins")
    return _GENERIC.unpack_from(content)[0], attributes(content[_GENERIC.size :])


def number(content: bytes | None) -> int | None:
    """An unsigned number of the machine's byte order, whatever its size; None when absent."""
    if content is None:
        return None
    if len(content) not in (1, 2, 4, 8):
        raise NetlinkError(f"a number of {len(content)} bytes")
    return int.from_bytes(content, sys.byteorder)


def group_of(answer: bytes, group: str) -> tuple[int, int]:
    """The family's message type and the number of its multicast ``group``, from the answer to ``family_request``. LookupError when
    the kernel has no such family or group."""
    for kind, content in messages(answer):
        if kind == _ERROR:
            raise LookupError(f"no such family (errno {-struct.unpack_from('=i', content + bytes(4))[0]})")
        _, described = generic(content)
        for _, entry in _each_attribute(described.get(_GROUPS, b"")):
            entry_attributes = attributes(entry)
            if entry_attributes.get(_GROUP_NAME, b"").rstrip(b"\0") == group.encode():
                family, found = number(described.get(_FAMILY_ID)), number(entry_attributes.get(_GROUP_ID))
                if family is not None and found is not None:
                    return family, found
    raise LookupError(f"no group {group}")


def attribute(kind: int, content: bytes) -> bytes:
    length = _ATTRIBUTE.size + len(content)
    return _ATTRIBUTE.pack(length, kind) + content + bytes(_aligned(length) - length)


def nested(kind: int, content: bytes) -> bytes:
    """An attribute made of attributes."""
    return attribute(kind | _NESTED, content)


def request(family: int, command: int, content: bytes, *, acknowledge: bool = False) -> bytes:
    """A generic netlink request; ``content``: its attributes. With ``acknowledge`` the kernel answers by an errno in any case."""
    body = _GENERIC.pack(command, 1, 0) + content
    flags = _REQUEST | (_ACKNOWLEDGE if acknowledge else 0)
    return _HEADER.pack(_HEADER.size + len(body), family, flags, 1, 0) + body


def family_request(family: str) -> bytes:
    """CTRL_CMD_GETFAMILY."""
    return request(_GENERIC_CONTROL, _GET_FAMILY, attribute(_FAMILY_NAME, family.encode() + b"\0"))


def error_of(answer: bytes) -> int:
    """The errno with which the kernel acknowledged a request, 0 for success; NetlinkError when it did not."""
    for kind, content in messages(answer):
        if kind == _ERROR and len(content) >= 4:
            return int(-struct.unpack_from("=i", content)[0])
    raise NetlinkError("an answer without an acknowledgement")


_LINK = struct.Struct("=BxHiII")  # family, type, index, flags, which of the flags changed, or are to change
_NEW_LINK, _GET_LINK, _SET_LINK = 16, 18, 19
_PROMISCUOUS = 0x100


def only_watched(data: bytes) -> bool:
    """Whether rtnetlink tells of nothing but that a capture on an interface began or ended (IFF_PROMISC): no path changes by it."""
    return all(
        kind == _NEW_LINK and len(content) >= _LINK.size and _LINK.unpack_from(content)[4] == _PROMISCUOUS
        for kind, content in messages(data)
    )


def link_request(index: int, flags: int = 0, mask: int = 0) -> bytes:
    """RTM_SETLINK: the bits of ``mask`` as in ``flags``, of the interface with this index; RTM_GETLINK with an empty ``mask``."""
    body = _LINK.pack(socket.AF_UNSPEC, 0, index, flags, mask)
    kind, how = (_SET_LINK, _REQUEST | _ACKNOWLEDGE) if mask else (_GET_LINK, _REQUEST)
    return _HEADER.pack(_HEADER.size + len(body), kind, how, 1, 0) + body


def flags_of(answer: bytes) -> int | None:
    """The flags in the answer to a ``link_request``; None when the interface has gone. NetlinkError when it is no such answer."""
    for kind, content in messages(answer):
        if kind == _NEW_LINK and len(content) >= _LINK.size:
            return int(_LINK.unpack_from(content)[3])
    if error_of(answer):
        return None
    raise NetlinkError("an answer without an interface")


def read_link_flags(interface: str) -> int | None:
    """All 32 flags of an interface, of which ioctl shows sixteen and /sys perhaps another network namespace's; None when there is no
    such interface."""
    try:
        return flags_of(_answer(link_request(socket.if_nametoindex(interface))))
    except OSError:
        return None


def change_link_flags(interface: str, flags: int, mask: int) -> None:
    """Set the bits of ``mask`` as in ``flags``. Takes CAP_NET_ADMIN; OSError without it, or when there is no such interface. A kernel that
    does not know a bit leaves it as it is, without a word."""
    try:
        index = socket.if_nametoindex(interface)
    except OSError as error:
        raise OSError(errno.ENODEV, os.strerror(errno.ENODEV)) from error
    code = error_of(_answer(link_request(index, flags, mask)))
    if code:
        raise OSError(code, os.strerror(code))


def _answer(request: bytes) -> bytes:
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as asking:
        asking.bind((0, 0))
        asking.send(request)
        return asking.recv(1 << 16)


def _aligned(length: int) -> int:
    return (length + 3) & ~3


class Subscription:
    """A socket that receives what changes. Not for two threads at once."""

    def __init__(self, listening: socket.socket) -> None:
        self.socket = listening
        listening.setblocking(False)

    def join(self, group: int) -> None:
        self.socket.setsockopt(_SOL_NETLINK, _ADD_MEMBERSHIP, group)

    def fileno(self) -> int:
        return self.socket.fileno()

    def read(self) -> tuple[list[bytes], bool]:
        """What was received, and whether something was missed, because the socket's buffer was full."""
        received, missed = [], False
        while True:
            try:
                received.append(self.socket.recv(1 << 16))
            except BlockingIOError:
                return received, missed
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise
                missed = True

    def close(self) -> None:
        self.socket.close()


def subscribe_routes(namespace: Path | None = None) -> Subscription:
    """Links, addresses, routes and rules that change, here or in another network namespace (which takes CAP_SYS_ADMIN)."""
    listening = socket_in(namespace, lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE))
    try:
        listening.bind((0, _ROUTE_GROUPS))
    except OSError:
        listening.close()
        raise
    return Subscription(listening)


def generic_socket(family: str, group: str) -> tuple[socket.socket, int, int]:
    """A socket of generic netlink, the family's message type and the number of its multicast ``group``. LookupError when the kernel has no
    such family or group, OSError when it refuses."""
    made = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_GENERIC)
    try:
        made.bind((0, 0))
        made.send(family_request(family))
        return made, *group_of(made.recv(1 << 16), group)
    except BaseException:
        made.close()
        raise


def command(generic: socket.socket, family: int, number: int, content: bytes) -> None:
    """Have the family do it; OSError with the kernel's errno when it refuses."""
    generic.send(request(family, number, content, acknowledge=True))
    code = error_of(generic.recv(1 << 16))
    if code:
        raise OSError(code, os.strerror(code))


def socket_in(namespace: Path | None, make: Callable[[], socket.socket]) -> socket.socket:
    """A socket made in ``namespace``, where it stays, by a thread that goes there and ends."""
    if namespace is None:
        return make()
    made: list[socket.socket] = []
    refused: list[OSError] = []

    def go() -> None:
        try:
            with namespace.open() as file:
                if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), _NEWNET) != 0:
                    code = ctypes.get_errno()
                    raise OSError(code, os.strerror(code))
            made.append(make())
        except OSError as error:
            refused.append(error)

    thread = threading.Thread(target=go, name="namespace")
    thread.start()
    thread.join()
    if refused:
        raise refused[0]
    return made[0]
