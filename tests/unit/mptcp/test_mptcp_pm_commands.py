"""Orders as the kernel reads them: taken apart by the parser of what the kernel writes, and refused by a kernel that has none such."""

import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.mptcp import netlink, pm_commands
from tandem.mptcp.netlink import NetlinkError, attributes, error_of, messages, nested, request
from tandem.mptcp.pm_commands import End, PmCommands, packed


def test_an_end_has_what_it_is_given():
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


@given(st.binary(max_size=20), st.integers(1, 99), st.integers(1, 20))
def test_a_request_is_one_message(content, command, kind):
    ((family, body),) = messages(request(28, command, nested(kind, content), acknowledge=True))
    assert (family, body[:2]) == (28, bytes([command, 1]))
    assert netlink.generic(body) == (command, {kind: content})


def test_an_acknowledgement_is_an_errno():
    def answer(code: int) -> bytes:
        return struct.pack("=IHHIIi", 36, 2, 0, 1, 0, -code) + bytes(16)

    assert (error_of(answer(0)), error_of(answer(22))) == (0, 22)
    with pytest.raises(NetlinkError):
        error_of(struct.pack("=IHHII", 16, 28, 0, 1, 0))


def test_a_kernel_without_the_family_takes_no_orders(monkeypatch):
    monkeypatch.setattr(pm_commands, "FAMILY", "no_such_family")
    with pytest.raises(LookupError, match="no such family"):
        PmCommands()
