"""Who has no session gets less than was asked with, and nothing that was not asked for over a whole handshake."""

import contextlib
import socket

import pytest
from endpoint_on_loopback import head

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


def received(client):
    total = 0
    with contextlib.suppress(ConnectionResetError):
        while more := client.recv(65536):
            total += len(more)
    return total


def test_an_answer_without_a_session_is_small(endpoint):
    here = endpoint(head_s=2.0)
    for asked in WITHOUT_SESSION:
        with here.connect("tcp") as client:
            client.sendall(asked)
            client.shutdown(socket.SHUT_WR)
            told = received(client)
        assert told <= 400, asked
        # All the bytes of both directions with their headers: an attacker who could spoof a handshake would still gain less than this.
        segments_bytes = (HANDSHAKE_SEGMENTS + 1) * SEGMENT_BYTES
        assert (told + segments_bytes) / (len(asked) + segments_bytes) < 2.5, asked


@pytest.mark.parametrize("payload", [1, 1000, 1_000_000])
def test_with_a_session_no_more_payload_than_its_budget_comes(endpoint, payload):
    here = endpoint(session_bytes=payload)
    session = here.session()
    got = [here.get(f"/v1/download?{query}", session.id) for query in ("seconds=3000", "seconds=3000", "bytes=1")]
    assert [(status, len(body)) for status, _, body in got[:2]] == [(200, payload), (200, 0)]
    status, _, told = got[2]
    assert (status, "budget" in told["error"]) == (429, True)
