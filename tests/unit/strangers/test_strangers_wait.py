"""Connections that want nothing but to be there: each ends by itself, and the newest gets in."""

import select
import time
from concurrent.futures import ThreadPoolExecutor

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


def asking(path, *lines):
    return "\r\n".join([f"POST {path} HTTP/1.1", "Host: x", *lines, "", ""]).encode()


def test_each_ends_by_itself(attacked):
    """All at the same time, at both ports: what never comes, and what comes byte by byte."""
    token = f"Authorization: Bearer {attacked.token}"

    def told(which, secured, first, more):
        with (attacked.tls if secured else attacked.plain)(which) as connection:
            if more:
                return trickled(connection, first, more)
            connection.sendall(first)
            return heard(connection)

    cases = [("gateway", True, b"GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\nGET /", b"x", [200])]
    for which, path in (("gateway", "/v1/records"), ("endpoint", "/v1/sessions")):
        cases += [
            (which, False, b"", b"", []),
            (which, False, b"\x16\x03\x01\x02\x00\x01", b"\x00", []),
            (which, True, b"", b"", []),
            (which, True, b"GET /v1/health HTTP/1.1\r\nX: ", b"x", []),
            # Told 401 at once; the body that still comes does not keep the connection.
            (which, True, asking(path, "Content-Length: 1000000"), b"x", [401, 429]),
            (which, True, asking(path, token, "Content-Length: 10"), b"", [408]),
        ]
    with ThreadPoolExecutor(len(cases)) as together:
        answers = list(together.map(lambda case: told(*case[:4]), cases))
    for (which, _, first, more, expected), answer in zip(cases, answers, strict=True):
        found = statuses(answer)
        # Of a stranger's body also the answer may be lost with the connection.
        right = found == expected if expected in ([200], [408]) else set(found) <= set(expected)
        assert (right, bool(answer) <= bool(expected)) == (True, True), (which, first, more, answer)


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
