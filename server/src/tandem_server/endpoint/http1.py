"""HTTP/1.1 at the measurement listener (RFC 9112), plain or over TLS 1.3: one reader of requests, one writer of answers, and what a request
wants and shows for it. What is not exactly as expected is refused, never guessed at."""

from __future__ import annotations

import errno
import json
import re
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

from tandem.stream import Stream, TlsStream
from tandem.stream.tls import TlsError, strict

HEAD_LIMIT_BYTES = 8192
_GOODBYE_S = 2.0
_TLS_HELLO = b"\x16\x03"
_LENGTH = re.compile(r"(?:0|[1-9][0-9]{0,14})\Z")
_TARGET = re.compile(r"(/[A-Za-z0-9/._-]*)(?:\?([A-Za-z0-9=&._-]*))?\Z")
_PARAMETER = re.compile(r"([a-z_]{1,32})=([A-Za-z0-9._-]{1,64})\Z")
_ONCE = ("host", "content-length", "transfer-encoding", "x-tandem-session", "x-tandem-path")


class BadRequest(ValueError):  # noqa: N818  (HTTP's own word)
    """The request is refused: ``status`` of HTTP and the reason."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


@dataclass(frozen=True, slots=True)
class Grammar:
    """What is taken from whom: ``line`` has the groups method, target, and the version's two digits; ``header`` name and value."""

    head_bytes: int
    headers: int
    line: re.Pattern[bytes]
    header: re.Pattern[bytes]


PROBES = Grammar(
    HEAD_LIMIT_BYTES,
    64,
    re.compile(rb"([A-Z]{1,16}) (/[!-~]{0,2000}) HTTP/([0-9])\.([0-9])\Z"),
    re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]{1,64}):[ \t]*([!-~](?:[ \t!-~]{0,4000}[!-~])?|)[ \t]*\Z"),
)
BROWSERS = Grammar(
    65536,
    1000,
    re.compile(rb"([A-Z]{1,16}) ([!-~]{1,32768}) HTTP/([0-9])\.([0-9])\Z"),
    re.compile(rb"([^:\r\n]*):([^\r\n]*)\Z"),
)


@dataclass(frozen=True, slots=True)
class Message:
    """Method, target, headers by lower-case name, and what Content-Length says, None without one."""

    method: str
    target: str
    headers: dict[str, str]
    body_bytes: int | None

    @property
    def closes(self) -> bool:
        """Whether the connection is to be closed afterwards."""
        return "close" in self.headers.get("connection", "").lower()


@dataclass(frozen=True, slots=True)
class Request(Message):
    """A probe's: ``path`` without query, ``query`` by name. Only a POST has a body."""

    path: str
    query: dict[str, str]

    @property
    def line(self) -> str:
        """Method and path with query, as requested."""
        return f"{self.method} {self.target.removesuffix('?')}"


def read_message(head: bytes, grammar: Grammar) -> Message:
    """Parse a request's head, including the empty line that ends it; BadRequest says what is wrong."""
    if len(head) > grammar.head_bytes:
        raise BadRequest(431, f"the head is longer than {grammar.head_bytes} bytes")
    if not head.endswith(b"\r\n\r\n"):
        raise BadRequest(400, "the head does not end in an empty line")
    first, *lines = head[:-4].split(b"\r\n")
    line = grammar.line.match(first)
    if line is None:
        raise BadRequest(400, "the request line is not METHOD /PATH HTTP/1.1")
    if (line[3], line[4]) != (b"1", b"1"):
        raise BadRequest(505, "only HTTP/1.1 is spoken here")
    if len(lines) > grammar.headers:
        raise BadRequest(431, f"more than {grammar.headers} headers")
    headers: dict[str, str] = {}
    for text in lines:
        match = grammar.header.match(text)
        if match is None:
            raise BadRequest(400, "a header is not NAME: VALUE in printable ASCII")
        name, value = match[1].decode("latin-1").lower(), match[2].decode("latin-1").strip(" \t")
        if name in headers and name in _ONCE:
            raise BadRequest(400, f"header {name} twice")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    if "transfer-encoding" in headers:
        raise BadRequest(400, "Transfer-Encoding is not spoken here")
    length = headers.get("content-length")
    if length is not None and not _LENGTH.match(length):
        raise BadRequest(400, "Content-Length is no whole number below 10^15")
    method, target = line[1].decode("ascii"), line[2].decode("ascii")
    return Message(method, target, headers, None if length is None else int(length))


def read_head(head: bytes) -> Request:
    """A probe's request, with its target taken apart; BadRequest."""
    found = read_message(head, PROBES)
    if "host" not in found.headers:
        raise BadRequest(400, "no Host header")
    if found.body_bytes and found.method != "POST":
        raise BadRequest(400, "a request with a body")
    match = _TARGET.match(found.target)
    if match is None:
        raise BadRequest(400, "the target has characters that no resource here has")
    query: dict[str, str] = {}
    for part in match[2].split("&") if match[2] else ():
        parameter = _PARAMETER.match(part)
        if parameter is None or parameter[1] in query:
            raise BadRequest(400, "the query is not NAME=VALUE&…, each name once")
        query[parameter[1]] = parameter[2]
    return Request(found.method, found.target, found.headers, found.body_bytes, match[1], query)


def receive_head(
    read: Callable[[float], bytes], grammar: Grammar, wait_s: float, head_s: float, begun: bytes = b""
) -> tuple[bytes, bytes]:
    """The bytes up to and with the empty line, and those that came after it; empty both when the peer closed without a byte. ``read`` gets
    some within so many seconds (TimeoutError), none at the end; the first within ``wait_s``, from then on all within ``head_s``. ``begun``
    has been read already.

    TimeoutError, BadRequest (too long, TLS), ConnectionError (closed within)."""
    deadline_s = time.monotonic() + (head_s if begun else wait_s)
    while b"\r\n\r\n" not in begun:
        if len(begun) > grammar.head_bytes:
            raise BadRequest(431, f"the head is longer than {grammar.head_bytes} bytes")
        left_s = deadline_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        more = read(left_s)
        if not more and not begun:
            return b"", b""
        if not more:
            raise ConnectionError("closed before the request was whole")
        if not begun:
            deadline_s = time.monotonic() + head_s
        begun += more
        if begun.startswith(_TLS_HELLO):
            raise BadRequest(400, "this port speaks no TLS")
    head, empty, rest = begun.partition(b"\r\n\r\n")
    return head + empty, rest


def receive_first(connection: Stream, within_s: float) -> tuple[bytes, bytes]:
    """``receive_head`` of a probe, over a connection that may block for a while."""

    until_s = time.monotonic() + within_s  # for all of it, from here on

    def read(left_s: float) -> bytes:
        left_s = min(left_s, until_s - time.monotonic())
        if left_s <= 0:
            raise TimeoutError
        connection.settimeout(left_s)
        return connection.recv(HEAD_LIMIT_BYTES)

    found = receive_head(read, PROBES, within_s, within_s)
    connection.settimeout(within_s)
    return found


def head(status: int, *headers: tuple[str, object]) -> bytes:
    """An answer's head."""
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = "Stored"  # as a stored page's own
    lines = [f"HTTP/1.1 {status} {phrase}", *(f"{name}: {value}" for name, value in headers)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def content_head(status: int, kind: str, length: int | None, *more: tuple[str, object]) -> bytes:
    """Of an answer with a body. ``length`` None: it ends with the connection."""
    lengths = [] if length is None else [("Content-Length", length)]
    return head(status, ("Content-Type", kind), *lengths, ("Cache-Control", "no-store"), *more)


def json_answer(status: int, body: dict[str, object], *more: tuple[str, object]) -> bytes:
    """A whole answer, JSON."""
    content = json.dumps(body).encode()
    return content_head(status, "application/json", len(content), *more) + content


def answer(connection: Stream, status: int, body: dict[str, object]) -> None:
    """A whole answer, and the end of the connection. OSError when the peer goes away or does not take it within 2 s."""
    connection.settimeout(_GOODBYE_S)
    connection.sendall(json_answer(status, body, ("Connection", "close")))
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


_BYTES = re.compile(r"[1-9][0-9]{0,14}\Z")
_SECONDS = re.compile(r"[0-9]{1,5}(?:\.[0-9]{1,3})?\Z")
_CLAIM = re.compile(r"([0-9a-f]{32}) ([1-9][0-9]{0,9}) ([0-9a-f]{32})\Z")


@dataclass(frozen=True, slots=True)
class Transfer:
    """A requested download or upload: one of ``payload_bytes`` (1 to 10^15 − 1) and ``seconds`` (0.001 to 99999.999). ``many``: it is one
    of a browser's connections, of which a session may have more."""

    payload_bytes: int | None
    seconds: float | None
    many: bool = False


@dataclass(frozen=True, slots=True)
class Claim:
    """What a connection shows for its session: its id, the connection's number in it (1 to 9,999,999,999), and ``mac`` (32 hexadecimal
    digits) over ``signed``: the first request's ``line`` and both."""

    session: str
    number: int
    mac: str
    line: str

    @property
    def signed(self) -> bytes:
        """See above."""
        return f"{self.line}\n{self.session}\n{self.number}".encode()


def read_claim(request: Request) -> Claim:
    """From ``X-Tandem-Session``; BadRequest 403 when it is none."""
    match = _CLAIM.match(request.headers.get("x-tandem-session", ""))
    if match is None:
        raise BadRequest(403, "no session: X-Tandem-Session is ID NUMBER MAC; hint: a probe of before needs an update")
    session, number, mac = match.groups()
    return Claim(session, int(number), mac, request.line)


def read_transfer(query: dict[str, str]) -> Transfer:
    """``bytes=N`` or ``seconds=S`` of a download or an upload; BadRequest unless it is exactly one of them."""
    if query.keys() == {"bytes"}:
        if not _BYTES.match(query["bytes"]):
            raise BadRequest(400, f"bytes={query['bytes']} is no whole number from 1 to 999999999999999")
        return Transfer(int(query["bytes"]), None)
    if query.keys() == {"seconds"}:
        if not _SECONDS.match(query["seconds"]) or float(query["seconds"]) <= 0:
            raise BadRequest(400, f"seconds={query['seconds']} is no time from 0.001 to 99999.999")
        return Transfer(None, float(query["seconds"]))
    raise BadRequest(400, "ask for bytes=N or for seconds=S, and for nothing else")


LEAST_HELLO_BYTES = 200
"""Of the first record. The answer has the certificate and is 900 bytes: who sends less would get more than three times that back."""

_HEADER_BYTES = 5
_HANDSHAKE = 0x16
_ILLEGAL = bytes.fromhex("15030300020228")
"""An alert: fatal, handshake_failure (RFC 8446, 6.2)."""


def tls_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """For ``accept_tls``; OSError (ssl.SSLError is one) when the files are none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.num_tickets = 0  # nobody resumes here, and they would be counted among the first bytes of an answer
    context.load_cert_chain(certificate, key)
    return strict(context)


def accept_tls(connection: socket.socket, context: ssl.SSLContext, within_s: float) -> tuple[TlsStream, float]:
    """The stream, and how long the handshake took in ms, from the first bytes' arrival.

    BadRequest, to be answered in the clear, to who speaks HTTP without TLS; TlsError for anything else; TimeoutError."""
    deadline_s = time.monotonic() + within_s
    begun = b""
    while len(begun) < _HEADER_BYTES:
        left_s = deadline_s - time.monotonic()
        if left_s <= 0:
            raise TlsError("TLS: no handshake in time")
        connection.settimeout(left_s)
        try:
            more = connection.recv(4096)
        except TimeoutError:
            raise TlsError("TLS: no handshake in time") from None
        if not more:
            raise TlsError("TLS: closed before the handshake")
        begun += more
        if begun[:1].isalpha():
            raise BadRequest(400, "this port speaks TLS: ask by https")
        if begun[0] != _HANDSHAKE:
            raise TlsError("TLS: what came is no handshake")
    if int.from_bytes(begun[3:5], "big") < LEAST_HELLO_BYTES:
        connection.send(_ILLEGAL)
        raise TlsError(f"TLS: a hello below {LEAST_HELLO_BYTES} bytes")
    stream = TlsStream(connection, context)
    try:
        return stream, stream.handshake(max(0.001, deadline_s - time.monotonic()), begun)
    except TimeoutError:
        raise TlsError("TLS: no handshake in time") from None
