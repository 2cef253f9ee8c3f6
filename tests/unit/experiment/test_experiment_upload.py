"""Sending a body: when the last byte was acknowledged, and every way in which a server can spoil it."""

import itertools
import socket
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from scripted_endpoint import Script, ScriptedEndpoint

from tandem.experiment.base import Stop
from tandem.experiment.control import parsed
from tandem.experiment.http_head import request
from tandem.experiment.upload import Upload, seconds


@pytest.fixture
def endpoint() -> Iterator[ScriptedEndpoint]:
    made = ScriptedEndpoint(Script())
    yield made
    made.close()


def send(
    endpoint: ScriptedEndpoint,
    size: int | None = None,
    duration_s: float | None = None,
    stall_s: float = 60.0,
    deadline_s: float = 120.0,
    stop: Stop | None = None,
):
    up = Upload()
    headers = {"Content-Length": str(size)} if size is not None else {}
    head = request(f"/v1/upload?bytes={size}", "x", headers, "POST")
    with socket.create_connection(endpoint.listeners[1].getsockname()) as connection:
        deadline_ns = time.monotonic_ns() + int(deadline_s * 1e9)
        failure = up.run(connection, head, size, duration_s, stall_s, deadline_ns, stop or Stop())
    return up, failure


@pytest.mark.parametrize("size", [1, 100, 70_000, 1_000_000, 3_000_001])
def test_so_many_bytes_are_timed_to_their_last_acknowledgement(endpoint, size):
    before = time.monotonic_ns()
    up, failure = send(endpoint, size)
    assert failure is None
    assert (up.sent, up.acked, up.received) == (size, size, size)
    assert before <= up.begun_ns < up.acked_ns < time.monotonic_ns()
    assert up.resolution_s >= 0
    assert up.receiver_s > 0
    assert up.acked_in_time is None


def test_a_slow_reader_shows_in_the_time_to_the_last_acknowledgement(endpoint):
    """Buffers of both ends hold some MB; what is above them waits for the reader."""
    endpoint.script.rate = 20e6
    up, failure = send(endpoint, 20_000_000)
    assert failure is None
    assert (up.acked_ns - up.begun_ns) / 1e9 > 0.3


def test_a_timed_body_counts_what_was_acknowledged_in_time(endpoint, monkeypatch):
    """By a clock that goes on by a millisecond a look, however long a look takes."""
    looks = itertools.count(time.monotonic_ns(), 1_000_000)
    clock = SimpleNamespace(monotonic_ns=lambda: next(looks), sleep=time.sleep)
    monkeypatch.setattr("tandem.experiment.upload.time", clock)
    endpoint.script.rate = 5e6
    up, failure = send(endpoint, duration_s=0.6)
    assert failure is None
    assert up.over_ns == up.begun_ns + 600_000_000
    assert 0 < up.acked_in_time <= up.sent
    assert up.received == up.sent
    assert up.acked_ns is None


@pytest.mark.parametrize(
    ("how", "after", "reason", "retry"),
    [
        ("reset", 500_000, "reset", True),
        ("close", 500_000, "", True),
        ("deaf", 100_000, "stalled: nothing heard for 0.5 s", True),
        ("silent", 0, "stalled: nothing heard for 0.5 s", True),
        ("short", 0, "the server counted 4999999 of 5000000 bytes", True),
        ("refuse", 0, 'HTTP 403 {"error": "as told"}', False),
        ("early", 0, "answered before the body was whole", False),
        ("nonsense", 0, "an answer without the bytes received: b']nope'", False),
        ("endless", 0, "no end of the head within 16384 bytes", False),
    ],
)
def test_a_server_that_misbehaves_is_a_failure(endpoint, how, after, reason, retry):
    endpoint.script.upload, endpoint.script.after = how, after
    _, failure = send(endpoint, 5_000_000, stall_s=0.5 if how in ("deaf", "silent") else 60.0)
    assert (reason in failure["reason"], failure["retry"]) == (True, retry), failure


def test_a_reset_that_a_write_meets_is_told_as_a_reset():
    """The kernel tells of it once, to the write; what is read after it is a plain end."""
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as first:
        peer, _ = listener.accept()

        class ResetInTheMidst(socket.socket):
            def sendmsg(self, *args):
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                peer.close()
                return super().sendmsg(*args)

        with ResetInTheMidst(fileno=first.detach()) as connection:
            deadline_ns = time.monotonic_ns() + 60 * 10**9
            failure = Upload().run(
                connection, request("/v1/upload", "x", {}, "POST"), 1000, None, 60.0, deadline_ns, Stop()
            )
    assert failure == {"reason": "reset", "retry": True}


def test_the_deadline_ends_it(endpoint):
    endpoint.script.upload = "deaf"
    up, failure = send(endpoint, 50_000_000, deadline_s=0.3)
    assert failure == {"reason": "deadline passed", "retry": True}
    assert up.acked_ns is None


def test_told_to_stop(endpoint):
    endpoint.script.rate = 1e5
    stop = Stop()
    threading.Timer(0.2, stop.request).start()
    _, failure = send(endpoint, 50_000_000, stop=stop)
    assert failure["reason"] == "stopped"


@pytest.mark.parametrize("told", [None, "1", True, 0, -1, float("nan"), float("inf"), 1e12, [1], {"s": 1}])
def test_what_is_no_time_is_none(told):
    assert (seconds(told), seconds(2)) == (None, 2.0)


@pytest.mark.parametrize("raw", [b"", b"{", b"\xff", b'{"a": NaN}', b"[Infinity]", b"[-Infinity]", b"[" * 200_000])
def test_what_no_result_may_hold_is_not_taken_from_a_server(raw):
    assert (parsed(raw), parsed(b'{"a": [1, null]}')) == (None, {"a": [1, None]})
