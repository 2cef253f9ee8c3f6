"""Sending a body: when the last byte was acknowledged, and every way in which a server can spoil it."""

import itertools
import socket
import threading
import time
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.hostile_json import said
from support.scripted_endpoint import Endpoint
from tandem.experiment import http_head
from tandem.experiment.base import Stop
from tandem.experiment.control import parsed
from tandem.experiment.http_head import request
from tandem.experiment.transfer import Transfer, Upload, seconds


def send(
    endpoint: Endpoint,
    size: int | None = None,
    duration_s: float | None = None,
    stall_s: float = 60.0,
    deadline_s: float = 120.0,
    stop: Stop | None = None,
):
    up = Upload()
    headers = {"Content-Length": str(size)} if size is not None else {}
    head = request(f"/v1/upload?bytes={size}", "x", headers, "POST")
    with socket.create_connection(endpoint.measurement.getsockname()) as connection:
        deadline_ns = time.monotonic_ns() + int(deadline_s * 1e9)
        failure = up.run(connection, head, size, duration_s, stall_s, deadline_ns, stop or Stop())
    return up, failure


def test_so_many_bytes_are_timed_to_their_last_acknowledgement(endpoint):
    for size in (1, 70_000, 3_000_001):
        before = time.monotonic_ns()
        up, failure = send(endpoint, size)
        assert failure is None
        assert (up.sent, up.acked, up.received) == (size, size, size)
        assert before <= up.begun_ns < up.acked_ns < time.monotonic_ns()
        assert up.resolution_s >= 0
        assert up.receiver_s > 0
        assert up.acked_in_time is None


def test_a_timed_body_counts_what_was_acknowledged_in_time(endpoint, monkeypatch):
    """By a clock that goes on by five milliseconds a look, however long a look takes."""
    looks = itertools.count(time.monotonic_ns(), 5_000_000)
    clock = SimpleNamespace(monotonic_ns=lambda: next(looks), sleep=time.sleep)
    monkeypatch.setattr("tandem.experiment.transfer.time", clock)
    endpoint.behaviour.rate = 5e6
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
        ("deaf", 100_000, "stalled: nothing heard for 0.5 s", True),
        ("short", 0, "the server counted 4999999 of 5000000 bytes", True),
        ("refuse", 0, 'HTTP 403 {"error": "as told"}', False),
        ("early", 0, "answered before the body was whole", False),
        ("nonsense", 0, "an answer without the bytes received: b']nope'", False),
    ],
)
def test_a_server_that_misbehaves_is_a_failure(endpoint, how, after, reason, retry):
    endpoint.behaviour.upload, endpoint.behaviour.after = how, after
    _, failure = send(endpoint, 5_000_000, stall_s=0.5 if how == "deaf" else 60.0)
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


def test_the_deadline_or_being_told_to_stop_ends_it(endpoint):
    endpoint.behaviour.upload = "deaf"
    up, failure = send(endpoint, 50_000_000, deadline_s=0.3)
    assert failure == {"reason": "deadline passed", "retry": True}
    assert up.acked_ns is None
    endpoint.behaviour.rate = 1e5
    stop = Stop()
    threading.Timer(0.2, stop.request).start()
    _, failure = send(endpoint, 50_000_000, stop=stop)
    assert failure["reason"] == "stopped"


def test_what_is_no_time_and_what_no_result_may_hold_is_not_taken_from_a_server():
    for told in (None, "1", True, 0, -1, float("nan"), float("inf"), 1e12, [1]):
        assert seconds(told) is None, told
    assert seconds(2) == 2.0
    for raw in (b"", b"{", b"\xff", b'{"a": NaN}', b"[Infinity]", b"[" * 200_000):
        assert parsed(raw) is None, raw[:9]
    assert parsed(b'{"a": [1, null]}') == {"a": [1, None]}


HEAD = b"HTTP/1.1 200 OK\r\n"


def read(
    server_says: bytes, *, expected_bytes: int | None = None, expected_s: float | None = None, stall_s: float = 60.0
):
    """A transfer from a server that says this and then nothing more; what came of it, and the failure."""
    ours, theirs = socket.socketpair()
    transfer = Transfer()
    with ours, theirs:
        theirs.sendall(server_says)
        deadline_ns = time.monotonic_ns() + 120 * 10**9
        failure = transfer.run(ours, b"GET", expected_bytes, expected_s, stall_s, 0.0, deadline_ns, Stop())
    return transfer, failure


def test_a_timed_download_ends_with_its_outage_or_when_it_is_given_up():
    transfer, failure = read(HEAD + b"\r\n" + b"x" * 1000, expected_s=0.5)
    assert failure is None
    assert transfer.received == 1000
    assert transfer.first_byte_ns is not None
    assert transfer.last_byte_ns == transfer.first_byte_ns
    assert transfer.over_ns == transfer.first_byte_ns + 500_000_000
    transfer, failure = read(HEAD + b"\r\n" + b"x", expected_s=5.0, stall_s=0.3)
    assert "stalled" in failure["reason"]
    assert transfer.over_ns is not None
    assert transfer.last_byte_ns is not None
    assert transfer.over_ns - transfer.last_byte_ns > 300_000_000
    transfer, failure = read(HEAD + b"Content-Length: 3\r\n\r\nabc", expected_bytes=3)
    assert (failure, transfer.received, transfer.over_ns) == (None, 3, None)
    assert transfer.last_byte_ns is not None


def test_told_to_stop_before_any_answer():
    for sent in (b"", b"HTTP/1.1 2"):
        ours, theirs = socket.socketpair()
        stop = Stop()
        with ours, theirs:
            theirs.sendall(sent)
            threading.Timer(0.1, stop.request).start()
            failure = Transfer().run(ours, b"GET", 10, None, 60.0, 0.0, time.monotonic_ns() + 12 * 10**10, stop)
        assert failure["reason"] == "stopped"


GOOD = b"HTTP/1.1 200 OK\r\nContent-Type: x\r\ncontent-LENGTH: 12\r\nConnection: close\r\n\r\n"


def test_a_head_is_waited_for_and_no_line_break_enters_a_request():
    assert {http_head.parse(GOOD[:at]) for at in range(len(GOOD))} == {None}
    assert http_head.parse(GOOD + b"\r\n\r\nbody") == http_head.Head(200, 12, len(GOOD))
    assert http_head.parse(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n") == http_head.Head(200, None, 38)
    with pytest.raises(ValueError, match="line break"):
        http_head.request("/", "host", {"X": "a\r\nY: b"})


def test_what_is_not_understood_is_refused():
    fields = [
        b"Content-Length: -1",
        b"Content-Length: 1\r\nContent-Length: 2",
        b"Transfer-Encoding: chunked",
        b"no colon",
    ]
    rows = [b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/2 200 OK\r\n\r\n", b"HTTP/1.1 2000 OK\r\n\r\n"]
    rows += [b"HTTP/1.1 200 OK\r\n%s\r\n\r\n" % field for field in (*fields, b"X: " + b"x" * http_head.LONGEST)]
    assert [raw for raw in rows if not said(http_head.HeadError, http_head.parse, raw)] == []


@given(st.binary(max_size=200) | st.binary(max_size=200).map(lambda b: b"HTTP/1.1 " + b + b"\r\n\r\n"))
def test_any_bytes_are_a_head_or_refused(raw):
    try:
        head = http_head.parse(raw)
    except http_head.HeadError:
        return
    assert head is None or 0 < head.size <= len(raw)


@given(st.integers(100, 599), st.binary(max_size=400))
def test_a_refusal_is_one_short_line_whatever_its_body_holds(status, body):
    told = http_head.refusal(status, body)
    assert told.startswith(f"HTTP {status}")
    assert told.isprintable()
    assert told == told.strip()
    assert len(told) <= 9 + 120
