"""The head of an HTTP answer on the measured connection."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.experiment import http_head

GOOD = b"HTTP/1.1 200 OK\r\nContent-Type: x\r\ncontent-LENGTH: 12\r\nConnection: close\r\n\r\n"


@given(st.integers(0, len(GOOD) - 1))
def test_a_head_in_pieces_is_waited_for(at):
    assert http_head.parse(GOOD[:at]) is None


@given(st.binary(max_size=50))
def test_the_body_begins_after_the_head(body):
    head = http_head.parse(GOOD + body)
    assert head == http_head.Head(200, 12, len(GOOD))


def test_without_a_length_the_body_ends_with_the_connection():
    assert http_head.parse(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n") == http_head.Head(200, None, 38)


@pytest.mark.parametrize(
    "raw",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/2 200 OK\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * http_head.LONGEST,
    ],
)
def test_what_is_not_understood_is_refused(raw):
    with pytest.raises(http_head.HeadError):
        http_head.parse(raw)


@given(st.binary(max_size=200) | st.binary(max_size=200).map(lambda b: b"HTTP/1.1 " + b + b"\r\n\r\n"))
def test_any_bytes_are_a_head_or_refused(raw):
    try:
        head = http_head.parse(raw)
    except http_head.HeadError:
        return
    assert head is None or 0 < head.size <= len(raw)


def test_a_line_break_cannot_enter_a_request():
    with pytest.raises(ValueError, match="line break"):
        http_head.request("/", "host", {"X": "a\r\nY: b"})


@given(st.integers(100, 599), st.binary(max_size=400))
def test_a_refusal_is_one_short_line_whatever_its_body_holds(status, body):
    told = http_head.refusal(status, body)
    assert told.startswith(f"HTTP {status}")
    assert told.isprintable()
    assert told == told.strip()
    assert len(told) <= 9 + 120
