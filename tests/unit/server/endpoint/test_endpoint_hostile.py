"""Clients that mean no good: each is cut in time, and the endpoint serves the next one as if nothing had been."""

import contextlib
import select
import socket

import pytest
from endpoint_on_loopback import head, heard, read_answer, request, wait_until

RESET = b"\1\0\0\0\0\0\0\0"


@pytest.fixture
def attacked(endpoint):
    """Starts an endpoint; in the end no connection is left at it, and it serves."""
    started = []

    def start(**limits):
        started.append(endpoint(**limits))
        return started[-1]

    yield start
    (here,) = started
    wait_until(lambda: not here.limiter.unauthenticated, "a connection is left")
    session = here.session()
    assert len(here.get("/v1/download?bytes=5000", session.id)[2]) == 5000
    assert here.ended(session)["end"] == "complete"


def test_a_head_that_drips_and_none_at_all_are_given_their_time_and_no_more(attacked):
    here = attacked(head_s=1.0)
    with contextlib.ExitStack() as stack:
        silent = [stack.enter_context(here.connect(kind)) for kind in ("tcp", "mptcp") * 8]
        drips = stack.enter_context(here.connect("tcp"))
        status = None
        with contextlib.suppress(ConnectionError):
            drips.sendall(request("/v1/whoami")[:-2])
            for _ in range(3000):  # a minute of one more header that never ends
                drips.sendall(b"x")
                if select.select([drips], [], [], 0.02)[0]:
                    break
            status = read_answer(drips)[0]
        assert status in (408, None)
        assert {read_answer(client)[0] for client in silent} == {408}


def test_resets_at_every_point_leave_nothing_behind(attacked):
    here = attacked()
    session = here.session("any")
    upload = head("POST", "/v1/upload?bytes=100000", session.id, "Content-Length: 100000")
    download = request("/v1/download?seconds=60", session.id)
    for kind in ("tcp", "mptcp"):
        for sent in (b"", b"GET /v1", request("/v1/whoami"), download, upload + b"x"):
            with here.connect(kind) as client:
                client.sendall(sent)
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    wait_until(lambda: not here.limiter.unauthenticated)
    assert session.live == 0
    assert {c["end"] for c in session.summaries} <= {"client gone"}


def test_readers_that_never_read_hold_nobody_up(attacked):
    here = attacked(stall_s=0.5)
    session = here.session("any")
    with contextlib.ExitStack() as stack:
        for kind in ("tcp", "mptcp"):
            stack.enter_context(here.downloading(session, "bytes=100000000", kind, receive_buffer=4096))
        assert here.get("/v1/whoami")[0] == 200
        wait_until(lambda: len(session.summaries) == 2)
    assert {c["end"] for c in session.summaries} == {"stalled"}
    assert session.used_bytes == sum(c["bytes_sent"] for c in session.summaries) < 200_000_000


def test_requests_in_a_row_are_not_served(attacked):
    """One request a connection: what follows a head is refused, or belongs to a body."""
    assert attacked().exchange(request("/v1/whoami") * 3, "tcp")[0] == 400


# --- who has no session gets less than was asked with, and nothing that was not asked for over a whole handshake

WITHOUT_SESSION = [
    b"GET /v1/whoami HTTP/1.1\r\nHost:x\r\n\r\n",
    head("GET", "/v1/download?bytes=999999999999999"),
    head("GET", "/v1/download?seconds=99999", "0" * 32),
    head("POST", "/v1/upload?bytes=5", "x", "Content-Length: 5") + b"12345",
    head("POST", "/v1/upload?seconds=5"),
    head("GET", "/" + "a" * 1999),
    b"GET / HTTP/1.0\r\n\r\n",
    b"\r\n\r\n",
    b"\0" * 9000,
]
SEGMENT_BYTES = 40
"""IPv4 and TCP without options, of each segment."""
HANDSHAKE_SEGMENTS = 3
"""SYN, ACK and FIN: what a client sends besides its request, at least; the endpoint answers as many."""


def test_an_answer_without_a_session_is_small(endpoint):
    here = endpoint(head_s=2.0)
    for asked in WITHOUT_SESSION:
        with here.connect("tcp") as client:
            client.sendall(asked)
            client.shutdown(socket.SHUT_WR)
            told = len(heard(client))
        assert told <= 400, asked
        # Of both directions with their headers: an attacker who could spoof a handshake would still gain less than this.
        segments_bytes = (HANDSHAKE_SEGMENTS + 1) * SEGMENT_BYTES
        assert (told + segments_bytes) / (len(asked) + segments_bytes) < 2.5, asked


def test_with_a_session_no_more_payload_than_its_budget_comes(endpoint):
    here = endpoint(session_bytes=1000)
    session = here.session()
    first, second = (here.get("/v1/download?seconds=3000", session.id) for _ in range(2))
    assert (first[0], len(first[2]), second[0], len(second[2])) == (200, 1000, 200, 0)
    status, _, told = here.get("/v1/download?bytes=1", session.id)
    assert (status, "budget" in told["error"]) == (429, True)
