"""The object graph through the relay, against an endpoint that serves, stalls, cuts and lies."""

import threading
import time

import pytest
from page_server import SESSION, SWITCHED, PageServer, page, request

from tandem.experiment.pageload.carrier import Carrier, by_path
from tandem.experiment.pageload.graph_load import IN_ALL, PER_ORIGIN, GraphLoad
from tandem.experiment.pageload.relay import Relay

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
    assert by_path(carrier.carried)["a"] >= 6 * len(GOOD)


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


def stalls(connection, requests):
    requests()
    connection.sendall(GOOD[:-4])
    requests()


def cuts(connection, requests):
    requests()
    connection.sendall(GOOD[:-4])


def lies(connection, requests):
    requests()
    connection.sendall(GOOD + b"more than it said")


def endless(connection, requests):
    requests()
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    while True:
        connection.sendall(b"X: y\r\n" * 1000)


def nonsense(connection, requests):
    requests()
    connection.sendall(b"\0" * 50000)


def closes(_connection, requests):
    requests()


@pytest.mark.parametrize(
    ("script", "why"),
    [
        (stalls, "not all objects in time|timeout"),
        (cuts, "6 of 10 bytes|reset"),
        (endless, "no end of the head"),
        (nonsense, "not HTTP/1|no end of the head"),
        (closes, "closed|reset"),
        (lies, "reset|bytes"),
    ],
)
def test_a_document_that_does_not_come_is_the_loads_failure(load, script, why):
    found, _, _ = load(script, page(("http://a.test/", None)), seconds=1.0 if script is stalls else 60.0)
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
