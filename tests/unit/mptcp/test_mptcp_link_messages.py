"""What rtnetlink tells of a link: a capture that begins or ends is no change of a path."""

from __future__ import annotations

import struct

import pytest

from tandem.mptcp.netlink import NetlinkError, only_watched

NEW_LINK, DELETE_LINK, NEW_ADDRESS = 16, 17, 20
UP, RUNNING, PROMISCUOUS = 0x1, 0x40, 0x100


def message(kind: int, changed: int, flags: int = UP | RUNNING) -> bytes:
    """As the kernel writes it: header, ifinfomsg, one attribute (IFLA_IFNAME)."""
    body = struct.pack("=BxHiII", 0, 1, 7, flags, changed) + struct.pack("=HH", 9, 3) + b"wwan\0" + bytes(3)
    return struct.pack("=IHHII", 16 + len(body), kind, 0, 0, 0) + body


CAPTURE = message(NEW_LINK, PROMISCUOUS, UP | RUNNING | PROMISCUOUS)


@pytest.mark.parametrize("told", [CAPTURE, CAPTURE + message(NEW_LINK, PROMISCUOUS)])
def test_only_captures_began_or_ended(told: bytes) -> None:
    assert only_watched(told)


@pytest.mark.parametrize(
    "told",
    [
        message(NEW_LINK, UP),
        message(NEW_LINK, UP | PROMISCUOUS),
        message(NEW_LINK, 0),
        message(NEW_LINK, 0xFFFFFFFF),
        message(DELETE_LINK, PROMISCUOUS),
        message(NEW_ADDRESS, PROMISCUOUS),
        CAPTURE + message(NEW_LINK, RUNNING),
        struct.pack("=IHHII", 20, NEW_LINK, 0, 0, 0) + bytes(4),
    ],
)
def test_anything_else_may_change_a_path(told: bytes) -> None:
    assert not only_watched(told)


def test_what_no_kernel_writes_is_refused() -> None:
    with pytest.raises(NetlinkError):
        only_watched(CAPTURE[:-1])
