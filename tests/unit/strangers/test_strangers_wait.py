"""Connections that want nothing but to be there: each ends by itself, and the newest gets in."""

import select
import time

import pytest
from attacked import PATIENCE_S, PER_ADDRESS, STRANGERS, heard, statuses

BOTH = pytest.mark.parametrize("which", ["gateway", "endpoint"])
pytestmark = pytest.mark.usefixtures("meanwhile")


def trickled(connection, first, more):
    """Say ``first``, then ``more`` byte by byte, as long as the server stays; what it said."""
    told = b""
    try:
        connection.sendall(first)
        connection.settimeout(0.2)
        for _ in range(300):
            try:
                said = connection.recv(65536)
                if not said:
                    return told
                told += said
            except TimeoutError:
                connection.sendall(more)
    except OSError:
        return told
    raise AssertionError("the server listened to single bytes for a minute")


@BOTH
def test_a_handshake_that_never_comes(attacked, which):
    with attacked.plain(which) as connection:
        assert heard(connection) == b""


@BOTH
def test_a_handshake_that_comes_byte_by_byte(attacked, which):
    with attacked.plain(which) as connection:
        assert trickled(connection, b"\x16\x03\x01\x02\x00\x01", b"\x00") == b""


@BOTH
def test_a_request_that_never_comes(attacked, which):
    with attacked.tls(which) as connection:
        assert heard(connection) == b""


@BOTH
def test_a_head_that_comes_byte_by_byte(attacked, which):
    with attacked.tls(which) as connection:
        assert trickled(connection, b"GET /v1/health HTTP/1.1\r\nX: ", b"x") == b""


def test_a_second_head_that_comes_byte_by_byte(attacked):
    with attacked.tls() as connection:
        told = trickled(connection, b"GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\nGET /", b"x")
        assert statuses(told) == [200]


@BOTH
def test_a_strangers_body_that_comes_byte_by_byte(attacked, which):
    """It is told 401 at once; the body that still comes does not keep the connection."""
    path = {"gateway": "/v1/records", "endpoint": "/v1/sessions"}[which]
    with attacked.tls(which) as connection:
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n".encode()
        assert set(statuses(trickled(connection, head, b"x"))) <= {401, 429}


@BOTH
def test_a_probes_body_that_never_comes(attacked, which):
    path = {"gateway": "/v1/records", "endpoint": "/v1/sessions"}[which]
    with attacked.tls(which) as connection:
        head = (
            f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {attacked.token}\r\nContent-Length: 10\r\n\r\n"
        )
        connection.sendall(head.encode())
        assert statuses(heard(connection)) == [408]


def alive(connections):
    """Those that the server has not ended."""
    watch = select.poll()
    for one in connections:
        watch.register(one, select.POLLIN | select.POLLRDHUP)
    ended = {number for number, _ in watch.poll(0)}
    return [one for one in connections if one.fileno() not in ended]


def awaited_alive(connections, most):
    """Wait until no more than so many are left."""
    deadline = time.monotonic() + PATIENCE_S
    while len(left := alive(connections)) > most:
        assert time.monotonic() < deadline, len(left)
        select.select(left, [], [], 0.05)
    return left


@BOTH
@pytest.mark.parametrize("addresses", [1, 50])
def test_strangers_have_their_share_and_the_newest_gets_in(attacked, which, addresses):
    bound = PER_ADDRESS if addresses == 1 else STRANGERS
    crowd = [attacked.plain(which, f"127.0.1.{1 + i % addresses}") for i in range(bound * 3)]
    try:
        with attacked.tls(which, "127.0.1.1") as newest:
            newest.sendall(b"GET /v1/health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            assert statuses(heard(newest)) == [{"gateway": 200, "endpoint": 404}[which]]
        awaited_alive(crowd, bound)
    finally:
        for one in crowd:
            one.close()
