"""Reading a body: what counts as the end of it, and how long it took."""

import socket
import threading
import time

import pytest

from tandem.experiment.base import Stop
from tandem.experiment.transfer import Transfer

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


def test_an_outage_at_the_end_of_a_timed_download_counts():
    transfer, failure = read(HEAD + b"\r\n" + b"x" * 1000, expected_s=0.5)
    assert failure is None
    assert transfer.received == 1000
    assert transfer.first_byte_ns is not None
    assert transfer.last_byte_ns == transfer.first_byte_ns
    assert transfer.over_ns == transfer.first_byte_ns + 500_000_000


def test_a_timed_download_that_stalls_lasts_until_it_is_given_up():
    transfer, failure = read(HEAD + b"\r\n" + b"x", expected_s=5.0, stall_s=0.3)
    assert "stalled" in failure["reason"]
    assert transfer.over_ns is not None
    assert transfer.last_byte_ns is not None
    assert transfer.over_ns - transfer.last_byte_ns > 300_000_000


def test_a_download_of_bytes_ends_with_the_last_of_them():
    transfer, failure = read(HEAD + b"Content-Length: 3\r\n\r\nabc", expected_bytes=3)
    assert (failure, transfer.received, transfer.over_ns) == (None, 3, None)
    assert transfer.last_byte_ns is not None


@pytest.mark.parametrize("sent", [b"", b"HTTP/1.1 2"])
def test_told_to_stop_before_any_answer(sent: bytes):
    ours, theirs = socket.socketpair()
    stop = Stop()
    with ours, theirs:
        theirs.sendall(sent)
        threading.Timer(0.1, stop.request).start()
        failure = Transfer().run(ours, b"GET", 10, None, 60.0, 0.0, time.monotonic_ns() + 12 * 10**10, stop)
    assert failure["reason"] == "stopped"
