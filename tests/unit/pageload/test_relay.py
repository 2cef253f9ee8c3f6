"""The relay: what it takes of SOCKS5, where it lets connections go, and that it ends."""

import contextlib
import socket
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from page_server import SESSION, PageServer, page, request

from tandem.experiment.pageload.carrier import Carrier
from tandem.experiment.pageload.relay import Relay, SocksError, asking, connected, greeted

GRAPH = page(("http://a.test/", None), ("http://b.test:8080/x", 0))


BIG = bytes(range(256)) * 60_000
"""More than all buffers on the way hold."""


def talks_first(connection, _requests):
    """Reads nothing before it has said all."""
    connection.sendall(BIG)
    left = len(BIG)
    while left and (more := connection.recv(min(left, 1 << 20))):
        left -= len(more)
    connection.sendall(b"end")


@pytest.fixture
def relay(tmp_path):
    server = PageServer(talks_first)
    carrier = Carrier(request(server.port, tmp_path), SESSION, "p")
    made = Relay(carrier, GRAPH.origins, time.monotonic() + 3600)
    yield made
    made.close()
    carrier.close()
    server.close()


def through(relay, host, port):
    client = socket.create_connection(("127.0.0.1", relay.port), 60)
    client.sendall(asking(host, port))
    return client, connected(client)


def test_bytes_go_both_ways_at_once_and_the_endpoints_answer_is_not_among_them(relay):
    client, there = through(relay, "b.test", 8080)
    with client:
        assert there
        client.settimeout(120)  # of sendall it is the whole call's
        sender = threading.Thread(target=client.sendall, args=(BIG,))
        sender.start()
        got = bytearray()
        while len(got) < len(BIG) + 3:
            got += client.recv(1 << 20)
        sender.join()
    assert got == BIG + b"end"


@pytest.mark.parametrize(("host", "port"), [("update.test", 443), ("a.test", 443), ("b.test", 80), ("127.0.0.1", 80)])
def test_hosts_that_the_page_does_not_have_are_refused_and_counted(relay, host, port):
    client, there = through(relay, host, port)
    with client:
        assert not there
    assert relay.elsewhere == 1


def test_closing_ends_connections_that_wait(relay):
    client, there = through(relay, "a.test", 80)
    with client:
        assert there
        relay.close()
        with contextlib.suppress(ConnectionResetError):  # its end, or a reset
            while client.recv(1 << 20):
                pass


def test_a_browser_that_says_nothing_does_not_keep_it_open(relay):
    with socket.create_connection(("127.0.0.1", relay.port), 60) as client:
        client.sendall(b"\x05")
        relay.close()  # long before its time is up


@given(st.binary(max_size=60))
def test_any_greeting_is_a_host_or_an_error(raw):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(raw)
        theirs.shutdown(socket.SHUT_WR)
        ours.settimeout(60)
        try:
            host, port = greeted(ours)
        except (SocksError, OSError):
            return
        assert isinstance(host, str)
        assert 0 <= port < 65536


@pytest.mark.parametrize(
    ("kind", "address", "host"),
    [(1, bytes([10, 0, 0, 1]), "10.0.0.1"), (4, bytes(15) + b"\1", "::1"), (3, b"\x06A.TEST", "a.test")],
)
def test_every_kind_of_address_is_taken(kind, address, host):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b"\x05\x02\x00\x01" + bytes([5, 1, 0, kind]) + address + b"\x1f\x90")
        assert greeted(ours) == (host, 8080)
