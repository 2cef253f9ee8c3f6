"""Clients that mean no good: each is cut in time, and the endpoint serves the next one as if nothing had been."""

import contextlib
import socket
import threading
import time

import pytest
from endpoint_on_loopback import head, read_answer, request

RESET = b"\1\0\0\0\0\0\0\0"


@pytest.fixture
def here(endpoint):
    started = endpoint(head_s=0.5, stall_s=0.5, connections_per_address=64)
    yield started
    session = started.session()
    assert len(started.get("/v1/download?bytes=5000", session.id)[2]) == 5000
    assert started.sessions.end(session.id, "probe-1").summaries[0]["end"] == "complete"


def quiet(here):
    """Wait until no connection is left."""
    deadline = time.monotonic() + 10
    while here.acceptor._by_address:
        assert time.monotonic() < deadline, here.acceptor._by_address
        time.sleep(0.01)


def test_a_head_that_drips_is_given_its_time_and_no_more(here):
    started = time.monotonic()
    with here.connect("tcp") as client:
        status = None
        with contextlib.suppress(ConnectionError):
            for byte in request("/v1/whoami") * 20:
                client.sendall(bytes([byte]))
                time.sleep(0.02)
                if time.monotonic() - started > 0.6:
                    break
            status = read_answer(client)[0]
    assert status in (408, None)
    assert time.monotonic() - started < 5
    quiet(here)


def test_a_connection_that_says_nothing_ends(here):
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(here.connect(kind)) for kind in ("tcp", "mptcp") * 8]
        for client in clients:
            assert read_answer(client)[0] == 408
    quiet(here)


def test_resets_at_every_point_leave_nothing_behind(here):
    session = here.session("any")
    upload = head("POST", "/v1/upload?bytes=100000", session.id, "Content-Length: 100000")
    for kind in ("tcp", "mptcp"):
        for sent in (
            b"",
            b"GET /v1",
            request("/v1/whoami"),
            request("/v1/download?seconds=60", session.id),
            upload + b"x",
        ):
            with here.connect(kind) as client:
                client.sendall(sent)
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    quiet(here)
    assert session.live == 0
    ended = here.sessions.end(session.id, "probe-1")
    assert {c["end"] for c in ended.summaries} <= {"client gone", "stalled"}


def test_readers_that_never_read_hold_nobody_up(here):
    session = here.session("any")
    with contextlib.ExitStack() as stack:
        for kind in ("tcp", "mptcp"):
            client = stack.enter_context(here.connect(kind))
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.sendall(request("/v1/download?bytes=100000000", session.id))
        assert here.get("/v1/whoami")[0] == 200
        quiet(here)
    assert {c["end"] for c in session.summaries} == {"stalled"}


def test_bodies_without_end_are_cut_while_others_are_served(here):
    session = here.sessions.open("probe-1", "run-1", "any", None, {}, None, None, budget_bytes=3_000_000)

    def flood():
        with here.connect("tcp") as client, contextlib.suppress(ConnectionError):
            client.sendall(head("POST", "/v1/upload?seconds=30", session.id))
            while True:
                client.sendall(b"x" * 100_000)

    threads = [threading.Thread(target=flood) for _ in range(3)]
    for thread in threads:
        thread.start()
    assert here.get("/v1/whoami")[0] == 200
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()
    quiet(here)
    assert session.used_bytes == sum(c["bytes_received"] for c in session.summaries) == 3_000_000


def test_requests_in_a_row_are_not_served(here):
    """One request a connection: what follows a head is refused, or belongs to a body."""
    with here.connect("tcp") as client:
        client.sendall(request("/v1/whoami") * 3)
        assert read_answer(client)[0] == 400
    quiet(here)
