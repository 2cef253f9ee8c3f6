"""A request's head in, an answer out, over a connection that may block for a while."""

from __future__ import annotations

import errno
import json
import socket
import time
from http import HTTPStatus

from tandem.stream import Stream
from tandem.stream.tls import TlsError
from tandem_server.endpoint.request import HEAD_LIMIT_BYTES, BadRequest

_GOODBYE_S = 2.0
_TLS_HELLO = b"\x16\x03"


def receive_head(connection: Stream, within_s: float) -> tuple[bytes, bytes]:
    """The bytes up to and with the empty line, and those that came after it; empty both when the peer closed without a byte.

    TimeoutError, BadRequest (too long, TLS), ConnectionError (closed within)."""
    deadline_s = time.monotonic() + within_s
    head = b""
    while b"\r\n\r\n" not in head:
        if len(head) > HEAD_LIMIT_BYTES:
            raise BadRequest(431, f"the head is longer than {HEAD_LIMIT_BYTES} bytes")
        left_s = deadline_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        connection.settimeout(left_s)
        more = connection.recv(HEAD_LIMIT_BYTES)
        if not more and not head:
            return b"", b""
        if not more:
            raise ConnectionError("closed before the request was whole")
        head += more
        if head.startswith(_TLS_HELLO):
            raise BadRequest(400, "this port speaks no TLS")
    connection.settimeout(within_s)
    head, empty, begun = head.partition(b"\r\n\r\n")
    return head + empty, begun


def head_alone(connection: Stream, within_s: float) -> bytes:
    """A head that nothing follows."""
    head, begun = receive_head(connection, within_s)
    if begun:
        raise BadRequest(400, "something follows the head")
    return head


def head_of(status: int, kind: str, length: int | None) -> bytes:
    """An answer's head, after which the connection is closed."""
    lines = [
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
        f"Content-Type: {kind}",
        *([] if length is None else [f"Content-Length: {length}"]),
        "Cache-Control: no-store",
        "Connection: close",
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("ascii")


def answer(connection: Stream, status: int, body: dict[str, object]) -> None:
    """A whole answer, and the end of the connection. OSError when the peer goes away or does not take it within 2 s."""
    content = json.dumps(body).encode()
    connection.settimeout(_GOODBYE_S)
    connection.sendall(head_of(status, "application/json", len(content)) + content)
    goodbye(connection)


def goodbye(connection: Stream) -> None:
    """Close our side and wait a moment for the peer's: closing at once with bytes unread would reset the answer away."""
    try:
        connection.shutdown(socket.SHUT_WR)
    except OSError as error:
        if error.errno == errno.ENOTCONN:
            return  # the peer has reset it: a client that stopped reading by its own clock does
        raise
    deadline_s = time.monotonic() + _GOODBYE_S
    unread = HEAD_LIMIT_BYTES
    while unread > 0 and (left_s := deadline_s - time.monotonic()) > 0:
        connection.settimeout(left_s)
        try:
            more = connection.recv(HEAD_LIMIT_BYTES)
        except (TimeoutError, TlsError):
            return  # the answer has gone out: how the peer takes its leave is its own affair
        if not more:
            return
        unread -= len(more)
