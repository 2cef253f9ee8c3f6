"""A name's addresses by the path: its own servers, in bounded time, and the last good answer while nobody answers."""

import ipaddress
import socket
import socketserver
import ssl
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.hostile_json import said
from tandem.export.gateway import GatewayAddress, Link, LinkError
from tandem.mptcp import dns, names
from tandem.mptcp.names import Names, Resolvers


class Server(socketserver.UDPServer):
    """The DNS server of a path on the loopback: what ``known`` has; silent where it is None."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), socketserver.BaseRequestHandler)
        self.known: dict[str, bytes] | None = {"gateway.test": bytes([127, 0, 0, 9])}
        self.questions = 0
        threading.Thread(target=self.serve_forever, args=(0.01,)).start()

    def finish_request(self, request, client_address):
        self.questions += 1
        raw, told = request[0], dns.decode(request[0])
        if self.known is None:
            return
        address = self.known.get(told.name) if told.type == dns.A else None
        found = b"" if address is None else b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 60, 4) + address
        head = struct.pack(">6H", told.id, 0x8180, 1, bool(found), 0, 0)
        self.socket.sendto(head + raw[12 : raw.index(b"\0", 12) + 5] + found, client_address)


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as made:
        yield made
        made.shutdown()


class Stuck:
    """The machine's resolver over a dead path."""

    def __init__(self) -> None:
        self.asked, self.ends = 0, threading.Event()

    def __call__(self, _host: str, _family: int) -> list[str]:
        self.asked += 1
        self.ends.wait(60)
        return []


@pytest.fixture
def stuck() -> Iterator[Stuck]:
    made = Stuck()
    yield made
    made.ends.set()


def by_path(server: Server, stuck: Stuck, hosts: Path) -> Names:
    port = server.socket.getsockname()[1]
    return Names(lambda _interface: Resolvers(("127.0.0.1",), "parameter"), stuck, hosts, port)


def test_the_paths_own_server_is_asked_over_it_while_the_machines_resolver_is_stuck(
    server, stuck, tmp_path, monkeypatch
):
    found = by_path(server, stuck, tmp_path / "none")
    assert found.addresses("gateway.test", "lo") == ["127.0.0.9"]
    assert found.addresses("gateway.test", "lo", deadline_s=0.0) == ["127.0.0.9"]
    assert server.questions == 2, "A and AAAA, once"
    server.known = None
    monkeypatch.setattr(names, "FRESH_S", 0.0)
    assert found.addresses("gateway.test", "lo", deadline_s=0.05) == ["127.0.0.9"], "the last good answer"


def test_a_lookup_that_is_stuck_ends_at_its_deadline_and_is_begun_once(server, stuck, tmp_path):
    found = by_path(server, stuck, tmp_path / "none")
    for _ in range(5):
        with pytest.raises(OSError, match=r"gateway\.test: no answer to the question for its address within 0\.05 s"):
            found.addresses("gateway.test", None, deadline_s=0.05)
    assert stuck.asked == 1


def test_an_export_over_a_path_whose_name_nobody_tells_ends(stuck, tmp_path, monkeypatch):
    monkeypatch.setattr("socket.getaddrinfo", lambda host, *_more, **_named: stuck(host, 0))
    monkeypatch.setattr(names, "addresses", Names(hosts=tmp_path / "none").addresses)
    monkeypatch.setattr(names.Names.addresses, "__defaults__", (socket.AF_UNSPEC, 0.05))
    link = Link("a", lambda: None, GatewayAddress("gateway.test", 443, ssl.create_default_context(), "token"))
    ended: list[str] = []

    def ask() -> None:
        ended.append(said(LinkError, link.ask, "GET", "/v1/probe", b"", {}))

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(60)
    assert ended == ["gateway.test: no answer to the question for its address within 0.05 s"]


def test_addresses_and_names_that_everybody_knows_ask_nobody(server, stuck, tmp_path):
    hosts = tmp_path / "hosts"
    hosts.write_text("# c\n10.1.2.3 Server.test other # x\n2001:db8::1 server.test\n")
    found = by_path(server, stuck, hosts)
    assert found.addresses("192.0.2.7", "lo") == ["192.0.2.7"]
    with pytest.raises(OSError, match="family"):
        found.addresses("192.0.2.7", "lo", socket.AF_INET6)
    assert found.addresses("server.TEST", "lo") == ["10.1.2.3", "2001:db8::1"]
    assert found.addresses("server.test", "lo", socket.AF_INET6) == ["2001:db8::1"]
    assert (server.questions, stuck.asked) == (0, 0)


def test_a_resolver_that_breaks_is_told_and_asked_anew(tmp_path):
    asked: list[str] = []

    def system(host: str, _family: int) -> list[str]:
        asked.append(host)
        if len(asked) == 1:
            raise RuntimeError("no room for it")
        return ["192.0.2.1"]

    made = Names(system=system, hosts=tmp_path / "none")
    with pytest.raises(OSError, match="no room for it"):
        made.addresses("gateway.test", None, deadline_s=60)
    assert made.addresses("gateway.test", None, deadline_s=60) == ["192.0.2.1"]


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


def test_a_truncated_answer_keeps_what_is_whole():
    question = dns.query(1, "a.example", dns.A)
    whole = answer(question, [record(b"\xc0\x0c", dns.A, b"\1\2\3\4")], 0x8380)
    two_told = whole[:6] + b"\0\2" + whole[8:]
    message = dns.decode(two_told)
    assert message.truncated
    assert dns.addresses(message, "a.example", dns.A) == ("1.2.3.4",)
    with pytest.raises(dns.DnsError):
        dns.decode(two_told[:2] + b"\x81\x80" + two_told[4:])


def test_what_is_no_name_is_refused_and_circles_end():
    rows = ["", ".", "a..b", "-a.example", "a b", "ä.example", "x" * 64, "a." * 130, "a.example\0"]
    assert [text for text in rows if not said(dns.DnsError, dns.query, 1, text, dns.A)] == []
    question = dns.query(1, "a.example", dns.A)
    records = [record(b"\xc0\x0c", dns.CNAME, wire("b.example")), record(wire("b.example"), dns.CNAME, b"\xc0\x0c")]
    assert dns.addresses(dns.decode(answer(question, records)), "a.example", dns.A) == ()
    head = struct.pack(">6H", 1, 0x8180, 1, 0, 0, 0)
    for pointer in (b"\xc0\x0c", b"\xc0\x20", b"\x01a\xc0\x0c"):
        with pytest.raises(dns.DnsError):
            dns.decode(head + pointer + b"\0\1\0\1")
    assert dns.decode(head + b"\x03a.b\0\0\1\0\1").name != "a.b"


@given(NAME, st.lists(V4, max_size=3), st.integers(0, 400), st.integers(0, 255), st.booleans(), st.binary(max_size=120))
def test_any_bytes_and_any_changed_byte_are_a_message_or_an_error(name, addresses, at, value, cut, noise):
    assert "\n" not in said(dns.DnsError, dns.decode, noise)
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
