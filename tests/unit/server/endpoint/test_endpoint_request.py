"""The request head: read strictly, whatever arrives."""

import contextlib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tandem_server.endpoint.http1 import HEAD_LIMIT_BYTES, BadRequest, read_head, read_transfer

GOOD = b"GET /v1/download?bytes=5 HTTP/1.1\r\nHost: x\r\nX-Tandem-Session: abc\r\n\r\n"
TOKENS = [
    GOOD,
    *(one.encode() for one in ["GET", " ", "/v1/whoami", *"/?&%:x\n\r\0", "a=b", "HTTP/1.1", "\r\n", "Host"]),
]
PIECES = st.lists(st.sampled_from(TOKENS), max_size=15).map(b"".join)


def test_a_request_is_read_and_only_a_post_has_a_body():
    request = read_head(GOOD)
    assert (request.method, request.path, request.query) == ("GET", "/v1/download", {"bytes": "5"})
    assert request.headers == {"host": "x", "x-tandem-session": "abc"}
    post = GOOD.replace(b"GET", b"POST").replace(b"Host: x", b"Host: x\r\nContent-Length: 5")
    assert (read_head(post).body_bytes, read_head(GOOD).body_bytes) == (5, None)
    assert read_head(post).line == "POST /v1/download?bytes=5"


@given(
    st.one_of(st.binary(max_size=300), PIECES, PIECES.map(lambda p: b"GET / HTTP/1.1\r\nHost: x\r\n" + p + b"\r\n\r\n"))
)
@example(b"GET / HTTP/1.1\r\nHost:\r\n\r\n")
def test_any_bytes_are_a_request_or_refused(head):
    with contextlib.suppress(BadRequest):
        request = read_head(head)
        assert request.path.startswith("/")
        assert "host" in request.headers
        for text in (request.method, request.path, *request.query, *request.headers.values()):
            assert text.isascii()
            assert not set(text) & set("\r\n\0")


REFUSED = [
    (b"HTTP/1.1", b"HTTP/1.0", 505), (b"HTTP/1.1", b"HTTP/2.0", 505), (b"HTTP/1.1", b"http/1.1", 400),
    (b"GET ", b"GET  ", 400), (b"GET ", b"get ", 400), (b"/v1/download", b"http://x/v1/download", 400),
    (b"/v1/download", b"/v1/%64ownload", 400), (b"bytes=5", b"bytes=5&bytes=6", 400), (b"bytes=5", b"bytes", 400),
    (b"Host: x\r\n", b"", 400), (b"Host: x", b"Host: x\r\nHost: y", 400), (b"Host: x", b"Host : x", 400),
    (b"Host: x", b"Host: x\r\n folded", 400), (b"Host: x", b"Host: x\r\nContent-Length: 5", 400),
    (b"Host: x", b"Host: x\r\nContent-Length: +5", 400), (b"Host: x", b"Host: x\r\nContent-Length: 5, 5", 400),
    (b"Host: x", b"Host: x\r\nContent-Length: 5\r\nContent-Length: 5", 400),
    (b"GET /v1/download?bytes=5 HTTP/1.1", b"POST /v1/upload HTTP/1.1\r\nTransfer-Encoding: chunked", 400),
    (b"Host: x", b"Host: x\r\nTransfer-Encoding: chunked", 400), (b"Host: x", b"Host: \xff", 400),
    (b"abc", b"abc\r\nX-Tandem-Session: def", 400), (b"Host: x\r\n", b"Host: x\r\n" + b"A: b\r\n" * 64, 431),
    (b"abc", b"a" * HEAD_LIMIT_BYTES, 431), (b"\r\n\r\n", b"\n\n", 400),
]  # fmt: skip
NO_DOWNLOADS = [
    {},
    *({"bytes": text} for text in ("0", "-1", "05", "5.0", "1e9", "9" * 16)),
    *({"seconds": text} for text in ("0", "0.0", "nan", "1.0000", "-1")),
    {"bytes": "5", "seconds": "1"},
    {"bytes": "5", "x": "1"},
]


def status_of(read, asked):
    """With which it is refused; None: it is not."""
    try:
        read(asked)
    except BadRequest as refused:
        return refused.status
    return None


def test_what_is_not_exactly_right_is_refused():
    told = [(old, new, status_of(read_head, GOOD.replace(old, new))) for old, new, _ in REFUSED]
    assert told == REFUSED
    assert [query for query in NO_DOWNLOADS if status_of(read_transfer, query) != 400] == []


@given(st.integers(1, 10**15 - 1), st.integers(1, 99_999_999))
def test_every_size_and_time_in_range_is_understood(payload, milliseconds):
    assert read_transfer({"bytes": str(payload)}).payload_bytes == payload
    assert read_transfer({"seconds": f"{milliseconds / 1000:.3f}"}).seconds == pytest.approx(milliseconds / 1000)
