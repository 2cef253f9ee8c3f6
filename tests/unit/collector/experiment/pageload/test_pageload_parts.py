"""A page load's parts: the page as told, its parameters, the relay, and the object graph against a server that serves, cuts and lies."""

import contextlib
import socket
import socketserver
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.hostile_json import any_json, said
from tandem.devtools import Event
from tandem.experiment.control import Session
from tandem.experiment.pageload import EXPERIMENT
from tandem.experiment.pageload import read as read_request
from tandem.experiment.pageload.carrier import Carrier, Relay, SocksError, asking, connected, greeted
from tandem.experiment.pageload.loads import IN_ALL, PER_ORIGIN, Counts, GraphLoad
from tandem.experiment.pageload.page import PageError, read
from tandem.experiment.parameters import ParameterError, check
from tandem.experiment.results import carried

SWITCHED = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: tandem-page\r\n\r\n"


class PageServer(socketserver.ThreadingTCPServer):
    """An endpoint for the probe's side of a page load: takes ``GET /v1/page/…``, then says what a script says.

    ``script(connection, requests)`` is called for each connection after its head; ``requests()`` gives the next request's lines.
    ``heads``: those of the connections. ``switch``: what it answers to them."""

    request_queue_size, daemon_threads, block_on_close = 128, True, False

    def __init__(self, script, switch=SWITCHED):
        super().__init__(("127.0.0.1", 0), socketserver.BaseRequestHandler)
        self.script, self.switch, self.heads, self.port = script, switch, [], self.server_address[1]
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def finish_request(self, connection, _address):  # unbuffered: what follows the head is the script's
        with connection.makefile("rb", buffering=0) as lines, contextlib.suppress(OSError):

            def request():
                found = []
                while (line := lines.readline()) not in (b"\r\n", b""):
                    found.append(line.decode().rstrip())
                return found

            self.heads.append(request())
            connection.sendall(self.switch)
            self.script(connection, request)

    def close(self):
        self.shutdown()
        self.server_close()


def page(*objects, url="http://a.test/"):
    """As the control channel tells it; ``objects``: URL, by[, after_load]."""
    rows = [
        {"method": "GET", "url": u, "status": 200, "bytes": 10, "by": by, "after_load": bool(late)}
        for u, by, *late in objects
    ]
    return read("p", {"url": url, "objects": rows, "tls": None})


def request(port, tmp_path, **more):
    """Checked parameters of a load over loopback."""
    (tmp_path / "token").write_text("secret")
    given = {
        "run": "run-1",
        "kind": "tcp",
        "path": "a",
        "paths": [{"name": "a", "interface": "lo"}],
        "server": {
            "control": "http://127.0.0.1:9",
            "measurement": f"http://127.0.0.1:{port}",
            "token_file": str(tmp_path / "token"),
        },
        **more,
    }
    return read_request(check(EXPERIMENT.parameters, given))


SESSION = Session("s" * 8, bytes(32), "a")


ROW = {"method": "GET", "url": "https://a.test/x?y", "status": 200, "bytes": 5, "by": None, "after_load": False}
TLS = {"certificate": "-----BEGIN", "spki_sha256": "A" * 43 + "="}
TOLD = {"url": "https://a.test/x?y", "objects": [ROW], "tls": TLS}


def test_a_page_is_read_and_what_is_none_is_an_error():
    found = read("p", TOLD)
    (one,) = found.objects
    assert (one.target, one.origin.authority, one.bytes) == ("/x?y", "a.test", 5)
    assert found.spki_sha256 == TLS["spki_sha256"]
    changed = [{"by": 0}, {"by": -1}, {"url": "https://a b/"}, {"url": "https://a.test/\r\nX: y"}]
    changed += [{"method": "GET / HTTP/1.1\r\nX:"}]
    rows = [{"tls": None}, {"tls": {"certificate": "x", "spki_sha256": "--no-sandbox"}}, {"objects": []}]
    rows += [{"objects": [{**ROW, **change}]} for change in changed]
    rows += [{"url": "--load-extension=/x"}, {"url": "file:///etc/passwd"}]
    assert [row for row in rows if not said(PageError, read, "p", {**TOLD, **row})] == []


@given(any_json(20))
def test_any_json_is_an_error(told):
    assert said(PageError, read, "p", told)


@given(st.sampled_from(sorted(ROW)), any_json(20))
def test_any_value_of_an_object_is_taken_or_refused(key, value):
    found = []
    refusal = said(PageError, lambda: found.append(read("p", {**TOLD, "objects": [{**ROW, key: value}]})))
    assert "\n" not in refusal
    assert [len(page.objects) for page in found] == ([] if refusal else [1])


def test_pages_are_named_once_all_is_all_and_what_makes_no_sense_is_refused(tmp_path):
    assert request(9, tmp_path, pages="b, a,b").names == ("b", "a")
    assert request(9, tmp_path, pages="all").names == ()
    for more, why in (
        ({"pages": "a/b"}, "'pages'"),
        ({"pages": " , "}, "no name"),
        ({"pages": "a,b", "repetitions": 1000, "browser": "both"}, "more than 2000 loads"),
        ({"path": "z"}, "none of the paths"),
        ({"server": {"control": "https://h", "measurement": "https://h", "token_file": "x"}}, "token|TLS"),
    ):
        with pytest.raises(ParameterError, match=why):
            request(9, tmp_path, **more)


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
    any_json(20),
    any_json(20),
    any_json(20),
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


def test_hosts_that_the_page_does_not_have_are_refused_and_counted(relay):
    for count, (host, port) in enumerate((("update.test", 443), ("a.test", 443), ("b.test", 80), ("127.0.0.1", 80)), 1):
        client, there = through(relay, host, port)
        with client:
            assert not there
        assert relay.elsewhere == count


def test_closing_ends_connections_that_wait_also_of_a_browser_that_says_nothing(relay):
    """Long before their time is up."""
    client, there = through(relay, "a.test", 80)
    with client, socket.create_connection(("127.0.0.1", relay.port), 60) as silent:
        assert there
        silent.sendall(b"\x05")
        relay.close()
        with contextlib.suppress(ConnectionResetError):  # its end, or a reset
            while client.recv(1 << 20):
                pass


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


def test_every_kind_of_address_is_taken():
    hosts = {(1, bytes([10, 0, 0, 1])): "10.0.0.1", (4, bytes(15) + b"\1"): "::1", (3, b"\x06A.TEST"): "a.test"}
    for (kind, address), host in hosts.items():
        ours, theirs = socket.socketpair()
        with ours, theirs:
            theirs.sendall(b"\x05\x02\x00\x01" + bytes([5, 1, 0, kind]) + address + b"\x1f\x90")
            assert greeted(ours) == (host, 8080)


BODY = b"x" * 10
GOOD = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n" + BODY


@pytest.fixture
def load(tmp_path):
    """Load ``graph`` from ``server``; what came of it, with the carrier and the relay."""
    servers = []

    def run(script, graph, switch=SWITCHED, seconds=60.0, **more):
        server = PageServer(script, switch)
        servers.append(server)
        carrier = Carrier(request(server.port, tmp_path, **more), SESSION, "p")
        until_s = time.monotonic() + seconds
        relay = Relay(carrier, graph.origins, until_s + 3600)  # the load is over before the relay gives up
        try:
            found = GraphLoad(graph, relay.port, until_s, lambda: False).run()
        finally:
            relay.close()
            carrier.close()
        return found, server, carrier

    yield run
    for server in servers:
        server.close()


def serving(log=None):
    def script(connection, requests):
        while lines := requests():
            if log is not None:
                log.append(lines[0].split()[1])
            connection.sendall(GOOD)

    return script


def test_objects_are_asked_for_when_what_asked_for_them_has_come(load):
    log = []
    graph = page(
        ("http://a.test/", None),
        ("http://a.test/css", 0),
        ("http://b.test/js", 0),
        ("http://a.test/by-css", 1),
        ("http://b.test/by-js", 2),
        ("http://a.test/unknown", None),
        ("http://a.test/late", 0, True),
    )
    found, server, carrier = load(serving(log), graph)
    assert found.failure is None
    assert (found.objects, found.failed) == (6, 0)
    assert log[0] == "/"
    assert set(log) == {"/", "/css", "/js", "/by-css", "/by-js", "/unknown"}
    assert log.index("/css") < log.index("/by-css")
    assert log.index("/js") < log.index("/by-js")
    assert found.load_ms > 0
    assert all("Upgrade: tandem-page" in head for head in server.heads)
    claims = {line for head in server.heads for line in head if line.startswith("X-Tandem-Session: ssssssss ")}
    assert len(claims) == len(server.heads)  # each connection shows its own
    assert server.heads[0][0] == "GET /v1/page/p HTTP/1.1"
    assert sum(c.received for c in carrier.carried) == 6 * len(GOOD)
    assert carried(carrier.totals())["a"] >= 6 * len(GOOD)


def test_there_are_six_connections_an_origin_and_they_are_kept(load):
    graph = page(("http://a.test/", None), *((f"http://a.test/{n}", 0) for n in range(40)))
    found, _, carrier = load(serving(), graph)
    assert (found.failure, found.objects) == (None, 41)
    assert len(carrier.carried) <= PER_ORIGIN


def test_more_origins_than_connections_are_served_all_the_same(load):
    """None but the document is answered until as many ask as may at once: those, and the document's own, are all connections until then."""
    connections, asking, at_most, go_on = [], [], [], threading.Event()

    def script(connection, requests):
        connections.append(connection)
        while lines := requests():
            if not lines[0].startswith("GET / "):
                asking.append(lines)
                if len(asking) == IN_ALL:
                    at_most.append(len(connections))
                    go_on.set()
                go_on.wait(60)
            connection.sendall(GOOD)

    graph = page(("http://a.test/", None), *((f"http://h{n}.test/{m}", 0) for n in range(50) for m in range(2)))
    found, _, _ = load(script, graph, seconds=120.0)
    assert (found.failure, found.objects) == (None, 101)
    assert at_most[0] <= IN_ALL + 1


def answers(*pieces, rests=False):
    """Says this to a request, then closes, or ``rests``."""

    def script(connection, requests):
        requests()
        for piece in pieces:
            connection.sendall(piece)
        if rests:
            requests()

    return script


@pytest.mark.parametrize(
    ("script", "why", "seconds"),
    [
        (answers(GOOD[:-4], rests=True), "not all objects in time|timeout", 1.0),
        (answers(GOOD[:-4]), "6 of 10 bytes|reset", 60.0),
        (answers(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n" * 1_000_000), "no end of the head", 60.0),
        (answers(b"\0" * 50000), "not HTTP/1|no end of the head", 60.0),
        (answers(), "closed|reset", 60.0),
        (answers(GOOD + b"more than it said"), "reset|bytes", 60.0),
    ],
    ids=("stalls", "cuts", "endless", "nonsense", "closes", "lies"),
)
def test_a_document_that_does_not_come_is_the_loads_failure(load, script, why, seconds):
    found, _, _ = load(script, page(("http://a.test/", None)), seconds=seconds)
    assert found.failure is not None
    assert any(word in found.failure for word in why.split("|")), found.failure
    assert found.load_ms is None


def test_an_object_that_does_not_come_is_counted_and_the_load_goes_on(load):
    def script(connection, requests):
        while lines := requests():
            connection.sendall(GOOD if lines[0].split()[1] != "/cut" else GOOD[:-1])
            if "/cut" in lines[0]:
                return

    graph = page(
        ("http://a.test/", None), ("http://a.test/cut", 0), ("http://a.test/of-cut", 1), ("http://a.test/other", 0)
    )
    found, _, _ = load(script, graph)
    assert found.failure is None
    assert (found.objects, found.failed) == (2, 1)
