"""Replays a stored page over one connection: ``GET /v1/page/NAME`` with ``Upgrade: tandem-page`` (docs/reference/endpoint-api.md). What
follows the head is what a browser says to any of the page's origins, plain or by TLS, and is answered as they answered."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from tandem.stream import Stream, TlsStream
from tandem_server.content.page.index import PageError
from tandem_server.content.page.shelf import Opened, Shelf
from tandem_server.endpoint.byte_stream import ByteStream, End, Ended
from tandem_server.endpoint.desk import Grant
from tandem_server.endpoint.download import Budget
from tandem_server.endpoint.flows import FlowAccount, Labels
from tandem_server.endpoint.recorder import Recorder
from tandem_server.endpoint.request import BadRequest, Request
from tandem_server.endpoint.sampler import Sampler

PREFIX = "/v1/page/"
PROTOCOL = "tandem-page"
KEPT_S = 90.0
"""So long a connection may wait for its next request: longer than browsers keep one."""
_HEAD_S = 20.0
_LONGEST_HEAD = 65536
_LONGEST_BODY = 16 << 20
_CHUNK_BYTES = 1 << 18
_TLS_HANDSHAKE = b"\x16"
_LINE = re.compile(rb"([A-Z]{1,16}) ([!-~]{1,32768}) HTTP/1\.1\Z")
_LENGTH = re.compile(rb"[0-9]{1,12}\Z")
_BODILESS = (204, 205, 304)

SWITCHING = f"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: {PROTOCOL}\r\n\r\n".encode()


def open_page(shelf: Shelf, request: Request, connection: Stream) -> Opened:
    """The page that ``request`` names; BadRequest."""
    if isinstance(connection, TlsStream):
        raise BadRequest(400, "pages bring their own TLS: ask on the measurement port without")
    if request.headers.get("upgrade", "").lower() != PROTOCOL or request.query:
        raise BadRequest(400, f"a page takes Upgrade: {PROTOCOL}, and no query")
    name = request.path.removeprefix(PREFIX)
    try:
        opened = shelf.open(name)
    except (PageError, OSError) as error:
        raise BadRequest(503, f"page {name[:64]}: {error}"[:200]) from error
    if opened is None:
        raise BadRequest(404, f"no page {name}"[:200])
    return opened


@dataclass(frozen=True, slots=True)
class Asked:
    """One request of a browser, its body read and thrown away."""

    method: str
    target: str
    headers: dict[str, str]

    @property
    def closes(self) -> bool:
        """Whether it wants the connection closed afterwards."""
        return "close" in self.headers.get("connection", "").lower()


class Replay:
    """One connection. ``on_head``: so many bytes of what was sent are no payload. After ``serve``: ``sent_bytes`` of bodies, ``requests``,
    of which ``near`` were answered by the nearest query and ``missed`` not at all."""

    def __init__(self, opened: Opened, budget: Budget, on_head: Callable[[int], None]) -> None:
        self._opened, self._budget, self._on_head = opened, budget, on_head
        self.sent_bytes = self.requests = self.near = self.missed = 0
        self.secure = False

    def serve(self, stream: ByteStream, secured: Callable[[bytes], ByteStream]) -> End:
        """Answer until the client closes or is silent for ``KEPT_S``. ``secured``: TLS over the same connection, whose first bytes
        have been read; OSError."""
        try:
            stream.write(SWITCHING)
            if stream.peek(KEPT_S).startswith(_TLS_HANDSHAKE):
                if self._opened.tls is None:
                    return "client gone"  # nothing of this page is https
                stream, self.secure = secured(stream.begun), True
            else:
                self._on_head(len(SWITCHING))
            self._answer_all(stream)
        except Ended as ended:
            return ended.end
        except TimeoutError:
            return "complete"  # nothing more was asked for
        except OSError:
            return "client gone"
        return "complete"

    def _answer_all(self, stream: ByteStream) -> None:
        begun = b""
        while True:
            asked, begun = _read(stream, begun)
            if asked is None:
                return
            self.requests += 1
            self._answer(stream, asked)
            if asked.closes:
                return

    def _say(self, stream: ByteStream, head: bytes, body: bytes = b"") -> None:
        self._on_head(len(head))
        stream.write(head + body)

    def _answer(self, stream: ByteStream, asked: Asked) -> None:
        scheme = "https" if self.secure else "http"
        method = asked.headers.get("access-control-request-method") if asked.method == "OPTIONS" else None
        authority = asked.headers.get("host", "")
        match = self._opened.matcher.find(asked.method, scheme, authority, asked.target)
        if match is None and method is not None:
            # A preflight that was not stored, of an object that was: without an answer the browser would not ask for it.
            match = self._opened.matcher.find(method, scheme, authority, asked.target)
            if match is not None:
                self._say(stream, _preflight(asked, method))
                return
        if match is None:
            self.missed += 1
            self._say(stream, _head(404, [("X-Tandem-Page", "miss")], 0))
            return
        self.near += not match.exact
        one = self._opened.page.objects[match.number]
        try:
            body = self._opened.body(match.number)
        except (PageError, OSError) as error:
            self.missed += 1
            self._say(stream, _head(503, [("X-Tandem-Page", f"broken {type(error).__name__}")], 0))
            return
        bodiless = one.status in _BODILESS or one.status < 200
        # an interim answer alone would leave the browser waiting
        head = _head(one.status if one.status >= 200 else 204, list(one.headers), None if bodiless else len(body))
        if bodiless or asked.method == "HEAD":
            self._say(stream, head)
            return
        self._send(stream, head, body)

    def _send(self, stream: ByteStream, head: bytes, body: bytes) -> None:
        reserved = self._budget.take(len(body))
        if reserved < len(body):
            self._budget.give_back(reserved)
            self._say(stream, _head(429, [("X-Tandem-Page", "budget"), ("Connection", "close")], 0))
            raise Ended("budget")
        sent = 0
        try:
            # head and the body's beginning in one segment, as servers do
            self._say(stream, head, body[:_CHUNK_BYTES])
            sent = min(_CHUNK_BYTES, len(body))
            while sent < len(body):
                stream.write(body[sent : sent + _CHUNK_BYTES])
                sent = min(sent + _CHUNK_BYTES, len(body))
        finally:
            self.sent_bytes += sent
            self._budget.give_back(reserved - sent)


def serve(
    connection: Stream,
    begun: bytes,
    opened: Opened,
    session: Grant,
    labels: Labels,
    recorder: Recorder,
    stop: Callable[[], bool],
    stall_s: float,
) -> dict[str, Any]:
    """Replay over ``connection``, of which ``begun`` has been read; its summary."""
    account, samplers = FlowAccount(labels), [Sampler(connection)]

    def sample() -> None:
        snapshot = samplers[-1].read()
        if snapshot is not None:
            recorder.put(account.take(snapshot))

    def secured(begun: bytes) -> ByteStream:
        if opened.tls is None or isinstance(connection, TlsStream):
            raise ConnectionError("no TLS here")
        stream = TlsStream(connection, opened.tls)
        stream.handshake(_HEAD_S, begun)
        samplers.append(Sampler(stream))
        return ByteStream(stream, b"", sample, stop, stall_s)

    replay = Replay(opened, session, account.head)
    end = replay.serve(ByteStream(connection, begun, sample, stop, stall_s), secured)
    sample()
    connection.setblocking(True)
    return {
        **account.summary(),
        "bytes_sent": replay.sent_bytes,
        "requests": replay.requests,
        "near": replay.near,
        "missed": replay.missed,
        "page_tls": replay.secure,
        "end": end,
        "request_to_last_ack_s": None,
    }


def _read(stream: ByteStream, begun: bytes) -> tuple[Asked | None, bytes]:
    """The next request, and what came after it; None when there is no other. Ended for what is no request."""
    while b"\r\n\r\n" not in begun:
        if len(begun) > _LONGEST_HEAD:
            raise Ended("client gone")
        more = stream.read(KEPT_S if not begun else _HEAD_S)
        if not more:
            return None, b""
        begun += more
    head, _, rest = begun.partition(b"\r\n\r\n")
    first, *lines = head.split(b"\r\n")
    line = _LINE.match(first)
    headers = {}
    for one in lines:
        name, colon, value = one.partition(b":")
        if not colon:
            raise Ended("client gone")
        headers[name.decode("latin-1").lower()] = value.strip().decode("latin-1")
    length = headers.get("content-length", "0").encode("latin-1")
    if line is None or "transfer-encoding" in headers or not _LENGTH.match(length) or int(length) > _LONGEST_BODY:
        raise Ended("client gone")
    left, rest = int(length) - len(rest), rest[int(length) :]
    while left > 0:
        more = stream.read(_HEAD_S)
        if not more:
            return None, b""
        left, rest = left - len(more), more[left:]
    return Asked(line[1].decode("ascii"), line[2].decode("ascii"), headers), rest


def _preflight(asked: Asked, method: str) -> bytes:
    headers = [
        ("Access-Control-Allow-Origin", asked.headers.get("origin", "*")),
        ("Access-Control-Allow-Methods", method),
    ]
    wanted = asked.headers.get("access-control-request-headers")
    if wanted is not None:
        headers.append(("Access-Control-Allow-Headers", wanted))
    return _head(204, [*headers, ("Access-Control-Allow-Credentials", "true")], None)


def _head(status: int, headers: list[tuple[str, str]], length: int | None) -> bytes:
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = "Stored"
    lines = [f"HTTP/1.1 {status} {phrase}", *(f"{name}: {value}" for name, value in headers)]
    if length is not None:
        lines.append(f"Content-Length: {length}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
