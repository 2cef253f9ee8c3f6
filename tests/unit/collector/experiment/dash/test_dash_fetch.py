"""An answer as the player takes it off its connection."""

import socket
import time

import pytest

from tandem.experiment.base import Stop
from tandem.experiment.dash.connection import Fetcher, FetchError

ASK = b"GET /x HTTP/1.1\r\n\r\n"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n"


def fetched(there_sends: bytes, heard: list[int]):
    """What ``Fetcher.get`` makes of an answer that is all there before it is asked for; then its end."""
    here, there = socket.socketpair()
    with here, there:
        there.sendall(there_sends)
        there.shutdown(socket.SHUT_WR)
        fetcher = Fetcher(here, 1.0, time.monotonic_ns() + 10**10, Stop(), heard.append)
        return fetcher.get(ASK, None, keep=100)


@pytest.mark.parametrize(("beyond", "closes"), [(b"", False), (b"HTTP/1.1 200 OK", True)])
def test_bytes_that_come_with_the_head_beyond_the_length_are_no_body_and_end_the_connection(beyond, closes):
    heard = []
    answer = fetched(HEAD + b"body" + beyond, heard)
    assert (answer.content, answer.size_bytes, sum(heard), answer.closes) == (b"body", 4, 4, closes)


def test_a_body_that_ends_early_is_a_failure():
    with pytest.raises(FetchError, match="closed after 2 of 4 bytes"):
        fetched(HEAD + b"bo", [])
