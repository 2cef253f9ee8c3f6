"""DHCP as far as it keeps an address: messages, and what is asked when."""

import contextlib
import ipaddress
import struct

from hypothesis import given
from hypothesis import strategies as st

from support.hostile_json import said
from tandem.mptcp.dhcp import LONGEST_S, Answer, DhcpError, Lease, discover, parse, request

MAC = bytes.fromhex("0c5b8f279a64")


def answer(
    kind: int, transaction: int = 1, address: str = "192.168.8.100", options: bytes = b"", mac: bytes = MAC
) -> bytes:
    """Bytes as a server sends them."""
    head = struct.pack("!BBBBIHH", 2, 1, 6, 0, transaction, 0, 0x8000)
    given = bytes(4) + ipaddress.IPv4Address(address).packed + bytes(8)
    return (
        head
        + given
        + mac.ljust(16, b"\0")
        + bytes(192)
        + b"\x63\x82\x53\x63"
        + bytes([53, 1, kind])
        + options
        + b"\xff"
    )


NONE = str(ipaddress.IPv4Address(0))
ROUTER = bytes([3, 4, 192, 168, 8, 1])
SERVER = bytes([54, 4, 192, 168, 8, 1])
FULL = ROUTER + SERVER + bytes([1, 4, 255, 255, 254, 0, 51, 4, 0, 0, 1, 0, 58, 4, 0, 0, 0, 100])


def test_an_answer_is_understood_and_what_is_none_a_named_error():
    told = Answer("given", 1, MAC, "192.168.8.100", 23, "192.168.8.1", "192.168.8.1", 256, 100)
    assert parse(answer(5, options=b"\0\0" + FULL)) == told
    assert parse(answer(6, address=NONE)).kind == "refused"
    bare = parse(answer(2))
    assert (bare.kind, bare.prefix, bare.router, bare.lease_s) == ("offer", 24, None, None)
    rows = [
        b"",
        answer(5)[:239],
        answer(5).replace(b"\x63\x82\x53\x63", b"cats"),
        answer(9),
        answer(5, address=NONE),
        answer(5, address="224.0.0.1"),
        answer(5, options=bytes([1, 4, 255, 0, 255, 0])),
        answer(5, options=bytes([3, 40, 1])),
        discover(1, MAC),
    ]
    assert [broken for broken in rows if not said(DhcpError, parse, broken)] == []


@given(st.binary(max_size=400))
def test_any_bytes_are_an_answer_or_a_named_error(data):
    for piece in (data, answer(5)[:240] + data):
        with contextlib.suppress(DhcpError):
            told = parse(piece)
            assert 0 <= told.prefix <= 32
            assert told.kind == "refused" or ipaddress.IPv4Address(told.address)


def options(question: bytes) -> dict[int, bytes]:
    found, at = {}, 240
    while question[at] != 255:
        found[question[at]] = question[at + 2 : at + 2 + question[at + 1]]
        at += 2 + question[at + 1]
    return found


def test_questions_have_what_servers_want():
    assert len(discover(7, MAC)) >= 300
    asked = request(0x01020304, MAC, "192.168.8.100", "192.168.8.1")
    assert (asked[:4], asked[4:8], asked[10:12], asked[28:34]) == (b"\1\1\6\0", b"\1\2\3\4", b"\x80\0", MAC)
    told = options(asked)
    assert (told[53], told[50], told[54]) == (b"\3", bytes([192, 168, 8, 100]), bytes([192, 168, 8, 1]))
    assert 54 not in options(request(1, MAC, "192.168.8.100", None))


def lease(address: str | None = "192.168.8.100") -> Lease:
    numbers = iter(range(1, 1000))
    return Lease(MAC, address, 0.0, lambda: next(numbers))


def kinds(made: Lease, until_s: float) -> list[tuple[float, int]]:
    """When nobody answers: what is asked, by DHCP's number of it."""
    asked = []
    while made.due_s < until_s:
        now = made.due_s
        asked.append((now, options(made.question(now))[53][0]))
    return asked


def test_the_address_is_asked_for_at_once_and_kept_and_asked_for_again_after_half_of_its_time():
    assert kinds(lease(), 40) == [(0, 3), (1, 3), (3, 1), (7, 1), (15, 1), (31, 1)]
    made = lease()
    made.question(0)
    given = made.take(parse(answer(5, options=FULL)), 1.0)
    assert (given.address, given.prefix, given.router) == ("192.168.8.100", 23, "192.168.8.1")
    assert made.due_s == 101
    assert options(made.question(101))[50] == bytes([192, 168, 8, 100])
    made.take(parse(answer(5, 2, options=bytes([51, 4, 0, 1, 0, 0]))), 102)
    assert made.due_s == 102 + LONGEST_S


def test_after_a_refusal_another_address_is_taken():
    made = lease()
    made.question(0)
    assert made.take(parse(answer(6, address=NONE)), 1) is None
    assert options(made.question(made.due_s))[53] == b"\1"
    assert made.take(parse(answer(2, 2, "192.168.9.7", FULL)), 2) is None
    assert made.due_s == 2
    asked = options(made.question(2))
    assert (asked[53], asked[50], asked[54]) == (b"\3", bytes([192, 168, 9, 7]), bytes([192, 168, 8, 1]))
    given = made.take(parse(answer(5, 2, "192.168.9.7", ROUTER)), 3)
    assert (given.address, given.prefix, given.router) == ("192.168.9.7", 24, "192.168.8.1")


def test_answers_to_others_are_passed_over_and_a_link_that_came_back_is_asked_at_once():
    made = lease()
    made.question(0)
    assert made.take(parse(answer(5, 99)), 1) is None
    assert made.take(parse(answer(5, 1, mac=bytes(6))), 1) is None
    assert made.due_s == 1
    made.take(parse(answer(5, options=FULL)), 1)
    made.again(50)
    assert made.due_s == 50
    assert options(made.question(50))[50] == bytes([192, 168, 8, 100])
