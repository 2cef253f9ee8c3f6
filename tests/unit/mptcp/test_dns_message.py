"""The DNS codec: what it writes it understands, what others write it reads, and nothing makes it fail otherwise than by DnsError."""

import ipaddress
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.mptcp import dns_message as dns

LABEL = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?", fullmatch=True)
NAME = st.lists(LABEL, min_size=1, max_size=5).map(".".join)
V4 = st.integers(0, 2**32 - 1).map(lambda n: str(ipaddress.IPv4Address(n)))
V6 = st.integers(0, 2**128 - 1).map(lambda n: str(ipaddress.IPv6Address(n)))


def wire(name: str) -> bytes:
    return b"".join(bytes([len(x)]) + x.encode() for x in name.split(".")) + b"\0"


def record(owner: bytes, kind: int, data: bytes, class_: int = 1) -> bytes:
    return owner + struct.pack(">HHIH", kind, class_, 300, len(data)) + data


def answer(question: bytes, records: list[bytes], flags: int = 0x8180) -> bytes:
    """An answer to a query of ours, without its OPT."""
    return (
        struct.pack(">6H", int.from_bytes(question[:2], "big"), flags, 1, len(records), 0, 0)
        + question[12:-11]
        + b"".join(records)
    )


@given(st.integers(0, 65535), NAME, st.sampled_from([dns.A, dns.AAAA]))
def test_a_query_asks_what_was_to_be_asked(number, name, kind):
    asked = dns.decode(dns.query(number, name, kind))
    assert (asked.id, asked.name, asked.type, asked.response) == (number, name, kind, False)


@given(NAME, st.lists(V4, max_size=8, unique=True))
def test_addresses_in_the_answers_order(name, addresses):
    question = dns.query(7, name, dns.A)
    records = [record(b"\xc0\x0c", dns.A, ipaddress.IPv4Address(a).packed) for a in addresses]
    assert dns.addresses(dns.decode(answer(question, records)), name, dns.A) == tuple(addresses)


@given(NAME, NAME, V6)
def test_an_alias_leads_to_the_address_and_a_stranger_does_not(name, alias, address):
    question = dns.query(7, name, dns.AAAA)
    data = ipaddress.IPv6Address(address).packed
    whole = answer(question, [record(b"\xc0\x0c", dns.CNAME, wire(alias)), record(wire(alias), dns.AAAA, data)])
    assert dns.addresses(dns.decode(whole), name, dns.AAAA) == (address,)
    stranger = answer(question, [record(wire("x." + alias), dns.AAAA, data)])
    assert dns.addresses(dns.decode(stranger), name, dns.AAAA) == ((address,) if "x." + alias == name else ())


def test_aliases_in_a_circle_end():
    question = dns.query(1, "a.example", dns.A)
    records = [record(b"\xc0\x0c", dns.CNAME, wire("b.example")), record(wire("b.example"), dns.CNAME, b"\xc0\x0c")]
    assert dns.addresses(dns.decode(answer(question, records)), "a.example", dns.A) == ()


def test_a_pointer_to_itself_or_forward_is_refused():
    head = struct.pack(">6H", 1, 0x8180, 1, 0, 0, 0)
    for pointer in (b"\xc0\x0c", b"\xc0\x20", b"\x01a\xc0\x0c"):
        with pytest.raises(dns.DnsError):
            dns.decode(head + pointer + b"\0\1\0\1")


def test_a_truncated_answer_keeps_what_is_whole():
    question = dns.query(1, "a.example", dns.A)
    whole = answer(question, [record(b"\xc0\x0c", dns.A, b"\1\2\3\4")], 0x8380)
    two_told = whole[:6] + b"\0\2" + whole[8:]
    message = dns.decode(two_told)
    assert message.truncated
    assert dns.addresses(message, "a.example", dns.A) == ("1.2.3.4",)
    with pytest.raises(dns.DnsError):
        dns.decode(two_told[:2] + b"\x81\x80" + two_told[4:])


def test_a_dot_within_a_label_is_not_another_name():
    head = struct.pack(">6H", 1, 0x8180, 1, 0, 0, 0)
    assert dns.decode(head + b"\x03a.b\0\0\1\0\1").name != "a.b"


@pytest.mark.parametrize(
    "text", ["", ".", "a..b", "-a.example", "a b", "ä.example", "x" * 64, "a." * 130, "a.example\0"]
)
def test_what_is_no_name_is_refused(text):
    with pytest.raises(dns.DnsError):
        dns.query(1, text, dns.A)


@given(st.binary(max_size=120))
def test_any_bytes_are_a_message_or_an_error(raw):
    said = ""
    try:
        dns.decode(raw)
    except dns.DnsError as error:
        said = str(error)
    assert "\n" not in said


@given(NAME, st.lists(V4, max_size=3), st.integers(0, 400), st.integers(0, 255), st.booleans())
def test_any_changed_byte_is_a_message_or_an_error(name, addresses, at, value, cut):
    question = dns.query(7, name, dns.A)
    records = [record(b"\xc0\x0c", dns.A, ipaddress.IPv4Address(a).packed) for a in addresses]
    raw = bytearray(answer(question, records))
    at %= len(raw)
    raw[at] = value
    try:
        message = dns.decode(bytes(raw[:at] if cut else raw))
    except dns.DnsError:
        return
    for found in dns.addresses(message, message.name, dns.A):
        ipaddress.IPv4Address(found)
