"""The kernel's word of subflows: real messages of Linux 6.18, and any bytes at all."""

import socket
import struct

import pytest

from support.hostile_json import said
from tandem.mptcp import netlink, path_manager
from tandem.mptcp.netlink import (
    NetlinkError,
    Subscription,
    attributes,
    error_of,
    family_request,
    group_of,
    messages,
    only_watched,
)
from tandem.mptcp.path_manager import End, PmCommands, PmEvent, packed, parse

FAMILY = 28
CREATED = bytes.fromhex(
    "540000001c0000000000000000000000010100000800010092d78d730600020002000000080005000a47010108000700cb00710a"
    "06000900dd20000006000a0098f3000005000300000000000500040000000000"
)
SUBFLOW_CLOSED = bytes.fromhex(
    "6c0000001c00000000000000000000000b0100000800010092d78d730600020002000000080005000a47020108000700cb00710a"
    "06000900b201000006000a0098f300000500030066000000050004000000000005000b000000000008000f000300000005000c0068000000"
)
CLOSED = bytes.fromhex("1c0000001c0000000000000000000000030100000800010092d78d73")
SERVERS_CREATED = bytes.fromhex(
    "640000001c00000000000000000000000101000008000100cc4ec1c2050012000100000006000d0002000000060002000200000008000500"
    "cb00710a080007000a4701010600090098f3000006000a00dd20000005000300000000000500040000000000"
)
LISTENING = bytes.fromhex("2c0000001c00000000000000000000000f01000006000200020000000600090098f3000008000500cb00710a")
REAL = CREATED + SUBFLOW_CLOSED + CLOSED + SERVERS_CREATED + LISTENING
TOKEN = 0x738DD792


def test_what_linux_6_18_said_is_understood():
    assert parse(REAL, FAMILY) == [
        PmEvent("created", TOKEN, "10.71.1.1", "203.0.113.10", 56608, 39155, remote_id=0),
        PmEvent("subflow_closed", TOKEN, "10.71.2.1", "203.0.113.10", 45569, 39155, error=104, remote_id=0),
        PmEvent("closed", TOKEN),
        PmEvent("created", 0xC2C14ECC, "203.0.113.10", "10.71.1.1", 39155, 56608, server_side=True, remote_id=0),
    ]


def attribute(kind: int, content: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(content), kind) + content + bytes(-len(content) % 4)


def message(command: int, *told: tuple[int, bytes]) -> bytes:
    body = struct.pack("=BBH", command, 1, 0) + b"".join(attribute(kind, content) for kind, content in told)
    return struct.pack("=IHHII", 16 + len(body), FAMILY, 0, 0, 0) + body


def test_other_families_words_and_messages():
    token = (1, struct.pack("=I", 7))
    six, mapped, far = (socket.inet_pton(socket.AF_INET6, a) for a in ("2001:db8::5", "::ffff:192.0.2.9", "fd00:5::10"))
    (event,) = parse(message(2, token, (6, six), (8, mapped), (18, b"\0")), FAMILY)
    assert (event.local, event.remote, event.server_side) == ("2001:db8::5", "192.0.2.9", False)
    (event,) = parse(message(2, token, (13, struct.pack("=H", 2))), FAMILY)
    assert event.server_side is True, "the older word for it"
    (event,) = parse(message(6, token, (4, b"\x09"), (8, far), (10, b"\x21\x20")), FAMILY)
    assert event == PmEvent("announced", 7, None, "fd00:5::10", None, 8480, remote_id=9)
    assert parse(REAL, FAMILY + 1) == []
    assert parse(message(10) + message(200, (1, bytes(4))), FAMILY) == []
    (event,) = parse(message(2, token, (5, b"\1"), (7, bytes(7)), (9, b"\1")), FAMILY)
    assert event == PmEvent("established", 7), "addresses and ports of other sizes"


def framed(body: bytes) -> bytes:
    return struct.pack("=IHHII", 16 + len(body), FAMILY, 0, 0, 0) + body


def test_what_no_kernel_writes_is_a_named_error():
    cut = (
        REAL[:10],
        REAL[:-3],
        struct.pack("=IHHII", 15, FAMILY, 0, 0, 0),
        message(10, (1, bytes(3))),
        framed(b"\n\1\0"),
    )
    odd = (framed(b"\n\1\0\0" + end) for end in (b"\3\0", struct.pack("=HH", 2, 1), struct.pack("=HH", 40, 1)))
    assert [raw for raw in (*cut, *odd) if not said(NetlinkError, parse, raw, FAMILY)] == []


def test_the_family_is_found_in_the_controllers_answer():
    request = family_request("mptcp_pm")
    ((kind, content),) = messages(request)
    assert kind == 0x10
    assert attributes(content[4:]) == {2: b"mptcp_pm\0"}

    group = attribute(1, b"mptcp_pm_events\0") + attribute(2, struct.pack("=I", 9))
    groups = attribute(1, attribute(1, b"other\0") + attribute(2, struct.pack("=I", 8))) + attribute(2, group)
    body = struct.pack("=BBH", 1, 2, 0) + attribute(1, struct.pack("=H", 31)) + attribute(7, groups)
    answer = struct.pack("=IHHII", 16 + len(body), 0x10, 0, 1, 0) + body
    assert group_of(answer, "mptcp_pm_events") == (31, 9)
    with pytest.raises(LookupError, match="no group cats"):
        group_of(answer, "cats")
    refused = struct.pack("=IHHIIi", 36, 2, 0, 1, 0, -2) + bytes(16)
    with pytest.raises(LookupError, match="errno 2"):
        group_of(refused, "mptcp_pm_events")


def test_what_does_not_fit_into_the_sockets_buffer_is_told_as_missed():
    class Full:
        def __init__(self) -> None:
            self.answers: list[bytes | OSError] = [b"one", OSError(105, "No buffer space"), b"two", BlockingIOError()]

        def setblocking(self, _: bool) -> None:
            return

        def recv(self, _: int) -> bytes:
            answer = self.answers.pop(0)
            if isinstance(answer, OSError):
                raise answer
            return answer

    heard = Subscription(Full())  # type: ignore[arg-type]  a double of the socket
    assert heard.read() == ([b"one", b"two"], True)


def test_an_end_has_what_it_is_given_and_an_acknowledgement_is_an_errno(monkeypatch):
    told = attributes(packed(End("10.71.1.1", 80, 101, 3)))
    assert told == {
        1: struct.pack("=H", socket.AF_INET),
        3: socket.inet_aton("10.71.1.1"),
        2: b"\x65",
        5: struct.pack("=H", 80),
        7: struct.pack("=i", 3),
    }
    assert attributes(packed(End("fd00:2::1"))) == {
        1: struct.pack("=H", socket.AF_INET6),
        4: socket.inet_pton(socket.AF_INET6, "fd00:2::1"),
    }

    def answer(code: int) -> bytes:
        return struct.pack("=IHHIIi", 36, 2, 0, 1, 0, -code) + bytes(16)

    assert (error_of(answer(0)), error_of(answer(22))) == (0, 22)
    with pytest.raises(NetlinkError):
        error_of(struct.pack("=IHHII", 16, 28, 0, 1, 0))
    assert (netlink.flags_of(CAPTURE), netlink.flags_of(answer(19))) == (UP | RUNNING | PROMISCUOUS, None)
    with pytest.raises(NetlinkError, match="without an interface"):
        netlink.flags_of(answer(0))
    monkeypatch.setattr(path_manager, "FAMILY", "no_such_family")
    with pytest.raises(LookupError, match="no such family"):
        PmCommands()


NEW_LINK, DELETE_LINK, NEW_ADDRESS = 16, 17, 20
UP, RUNNING, PROMISCUOUS = 0x1, 0x40, 0x100


def link_message(kind: int, changed: int, flags: int = UP | RUNNING) -> bytes:
    """As the kernel writes it: header, ifinfomsg, one attribute (IFLA_IFNAME)."""
    body = struct.pack("=BxHiII", 0, 1, 7, flags, changed) + struct.pack("=HH", 9, 3) + b"wwan\0" + bytes(3)
    return struct.pack("=IHHII", 16 + len(body), kind, 0, 0, 0) + body


CAPTURE = link_message(NEW_LINK, PROMISCUOUS, UP | RUNNING | PROMISCUOUS)


def test_a_capture_that_begins_or_ends_is_no_change_of_a_path_and_anything_else_may_be_one():
    assert only_watched(CAPTURE)
    assert only_watched(CAPTURE + link_message(NEW_LINK, PROMISCUOUS))
    others = [(NEW_LINK, UP), (NEW_LINK, UP | PROMISCUOUS), (NEW_LINK, 0), (NEW_LINK, 0xFFFFFFFF)]
    others += [(DELETE_LINK, PROMISCUOUS), (NEW_ADDRESS, PROMISCUOUS)]
    told = [link_message(*one) for one in others] + [CAPTURE + link_message(NEW_LINK, RUNNING)]
    told.append(struct.pack("=IHHII", 20, NEW_LINK, 0, 0, 0) + bytes(4))
    assert [one for one in told if only_watched(one)] == []
    with pytest.raises(NetlinkError):
        only_watched(CAPTURE[:-1])
