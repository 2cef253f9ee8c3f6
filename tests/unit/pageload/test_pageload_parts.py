"""A page as the server tells it, parameters of loads, and the relay: what it takes of SOCKS5, where it lets connections go."""

import contextlib
import socket
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from page_server import SESSION, PageServer, page, request

from tandem.devtools.pipe import Event
from tandem.experiment.pageload.browser_load import Counts
from tandem.experiment.pageload.carrier import Carrier
from tandem.experiment.pageload.page import PageError, read
from tandem.experiment.pageload.relay import Relay, SocksError, asking, connected, greeted
from tandem.experiment.parameters import ParameterError

ROW = {"method": "GET", "url": "https://a.test/x?y", "status": 200, "bytes": 5, "by": None, "after_load": False}
TLS = {"certificate": "-----BEGIN", "spki_sha256": "A" * 43 + "="}
TOLD = {"url": "https://a.test/x?y", "objects": [ROW], "tls": TLS}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=20,
)


def test_a_page_is_read():
    found = read("p", TOLD)
    (one,) = found.objects
    assert (one.target, one.origin.authority, one.bytes) == ("/x?y", "a.test", 5)
    assert found.spki_sha256 == TLS["spki_sha256"]


@pytest.mark.parametrize(
    "told",
    [
        {**TOLD, "tls": None},
        {**TOLD, "tls": {"certificate": "x", "spki_sha256": "--no-sandbox"}},
        {**TOLD, "objects": []},
        {**TOLD, "objects": [{**ROW, "by": 0}]},
        {**TOLD, "objects": [{**ROW, "by": -1}]},
        {**TOLD, "objects": [{**ROW, "url": "https://a b/"}]},
        {**TOLD, "objects": [{**ROW, "url": "https://a.test/\r\nX: y"}]},
        {**TOLD, "objects": [{**ROW, "method": "GET / HTTP/1.1\r\nX:"}]},
        {**TOLD, "url": "--load-extension=/x"},
        {**TOLD, "url": "file:///etc/passwd"},
    ],
)
def test_what_is_no_page_is_an_error(told):
    with pytest.raises(PageError):
        read("p", told)


@given(JSON)
def test_any_json_is_an_error(told):
    with pytest.raises(PageError):
        read("p", told)


@given(st.sampled_from(sorted(ROW)), JSON)
def test_any_value_of_an_object_is_taken_or_refused(key, value):
    try:
        found = read("p", {**TOLD, "objects": [{**ROW, key: value}]})
    except PageError as error:
        told = str(error)
        found = None
    else:
        told = ""
    assert "\n" not in told
    assert found is None or len(found.objects) == 1


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"pages": "a/b"}, "'pages'"),
        ({"pages": " , "}, "no name"),
        ({"pages": "a,b", "repetitions": 1000, "browser": "both"}, "more than 2000 loads"),
        ({"path": "z"}, "none of the paths"),
        ({"server": {"control": "https://h", "measurement": "https://h", "token_file": "x"}}, "token|TLS"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(tmp_path, more, why):
    with pytest.raises(ParameterError) as caught:
        request(9, tmp_path, **more)
    assert any(word in str(caught.value) for word in why.split("|"))


def test_pages_are_named_once_and_all_is_all(tmp_path):
    assert request(9, tmp_path, pages="b, a,b").names == ("b", "a")
    assert request(9, tmp_path, pages="all").names == ()


def event(method, **params):
    return Event(method, params, "S")


def test_requests_are_counted_as_the_browser_tells_them():
    counts = Counts()
    for one in (
        event("Page.loadEventFired"),
        event("Network.requestWillBeSent", requestId="1", request={"url": "http://a/"}),
        event(
            "Network.requestWillBeSent", requestId="1", request={"url": "http://b/"}, redirectResponse={"status": 302}
        ),
        event("Network.requestWillBeSent", requestId="2", request={"url": "data:x"}),
        event("Network.requestWillBeSent", requestId="3", request={"url": "http://a/3"}),
        event("Network.responseReceived", requestId="3", response={"headers": {"X-Tandem-Page": "miss"}}),
        event("Network.loadingFinished", requestId="1"),
        event("Network.loadingFinished", requestId="2"),
        event("Network.loadingFailed", requestId="3"),
        event("Page.loadEventFired"),
    ):
        counts.take(one)
    assert (counts.objects, counts.failed, counts.missed, counts.loaded) == (2, 1, 1, True)


@given(
    st.sampled_from(
        ["Page.loadEventFired", "Network.requestWillBeSent", "Network.responseReceived", "Network.loadingFinished"]
    ),
    JSON,
    JSON,
    JSON,
)
def test_any_event_is_taken(method, request_id, inner, at):
    counts = Counts()
    for name in ("Network.requestWillBeSent", method):
        counts.take(event(name, requestId=request_id, request=inner, response=inner, timestamp=at))
    assert counts.objects + counts.failed <= 2


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
