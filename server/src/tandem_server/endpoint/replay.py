"""Replays a stored page over one connection: ``GET /v1/page/NAME`` with ``Upgrade: tandem-page`` (docs/reference/endpoint-api.md). What
follows the head is what a browser says to any of the page's origins, plain or by TLS, and is answered as they answered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tandem.stream import Stream, TlsStream
from tandem_server.content.page import Opened, PageError, PageStore
from tandem_server.endpoint.broker import BudgetLease
from tandem_server.endpoint.byte_stream import ByteStream, End, Ended
from tandem_server.endpoint.download import Budget
from tandem_server.endpoint.flows import FlowAccount, Labels
from tandem_server.endpoint.http1 import BROWSERS, BadRequest, Message, Request, head, read_message, receive_head
from tandem_server.endpoint.recorder import Recorder
from tandem_server.endpoint.sampler import Sampler

PREFIX = "/v1/page/"
PROTOCOL = "tandem-page"
KEPT_S = 90.0
"""So long a connection may wait for its next request: longer than browsers keep one."""
_HEAD_S = 20.0
_LONGEST_BODY = 16 << 20
_CHUNK_BYTES = 1 << 18
_TLS_HANDSHAKE = b"\x16"
_BODILESS = (204, 205, 304)
_EMPTY = ("Content-Length", 0)

SWITCHING = head(101, ("Connection", "Upgrade"), ("Upgrade", PROTOCOL))


def open_page(pages: PageStore, request: Request, connection: Stream) -> Opened:
    """The page that ``request`` names; BadRequest."""
    if isinstance(connection, TlsStream):
        raise BadRequest(400, "pages bring their own TLS: ask on the measurement port without")
    if request.headers.get("upgrade", "").lower() != PROTOCOL or request.query:
        raise BadRequest(400, f"a page takes Upgrade: {PROTOCOL}, and no query")
    name = request.path.removeprefix(PREFIX)
    try:
        opened = pages.open(name)
    except (PageError, OSError) as error:
        raise BadRequest(503, f"page {name[:64]}: {error}"[:200]) from error
    if opened is None:
        raise BadRequest(404, f"no page {name}"[:200])
    return opened


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
            return "complete"  # nothing more was requested
        except OSError:
            return "client gone"
        return "complete"

    def _answer_all(self, stream: ByteStream) -> None:
        begun = b""
        while True:
            request, begun = _read(stream, begun)
            if request is None:
                return
            self.requests += 1
            self._answer(stream, request)
            if request.closes:
                return

    def _say(self, stream: ByteStream, begin: bytes, body: bytes = b"") -> None:
        self._on_head(len(begin))
        stream.write(begin + body)

    def _answer(self, stream: ByteStream, request: Message) -> None:
        scheme = "https" if self.secure else "http"
        method = request.headers.get("access-control-request-method") if request.method == "OPTIONS" else None
        authority = request.headers.get("host", "")
        match = self._opened.matcher.find(request.method, scheme, authority, request.target)
        if match is None and method is not None:
            # A preflight that was not stored, of an object that was: without an answer the browser would not ask for it.
            match = self._opened.matcher.find(method, scheme, authority, request.target)
            if match is not None:
                self._say(stream, _preflight(request, method))
                return
        if match is None:
            self.missed += 1
            self._say(stream, head(404, ("X-Tandem-Page", "miss"), _EMPTY))
            return
        self.near += not match.exact
        one = self._opened.page.objects[match.number]
        try:
            body = self._opened.body(match.number)
        except (PageError, OSError) as error:
            self.missed += 1
            self._say(stream, head(503, ("X-Tandem-Page", f"broken {type(error).__name__}"), _EMPTY))
            return
        bodiless = one.status in _BODILESS or one.status < 200
        # an interim answer alone would leave the browser waiting
        length = [] if bodiless else [("Content-Length", len(body))]
        answer = head(one.status if one.status >= 200 else 204, *one.headers, *length)
        if bodiless or request.method == "HEAD":
            self._say(stream, answer)
            return
        self._send(stream, answer, body)

    def _send(self, stream: ByteStream, begin: bytes, body: bytes) -> None:
        reserved = self._budget.take(len(body))
        if reserved < len(body):
            self._budget.give_back(reserved)
            self._say(stream, head(429, ("X-Tandem-Page", "budget"), ("Connection", "close"), _EMPTY))
            raise Ended("budget")
        sent = 0
        try:
            # head and the body's beginning in one segment, as servers do
            self._say(stream, begin, body[:_CHUNK_BYTES])
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
    session: BudgetLease,
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


def _read(stream: ByteStream, begun: bytes) -> tuple[Message | None, bytes]:
    """The next request, its body read and thrown away, and what came after it; None when there is no other. Ended: it is none."""
    try:
        raw, rest = receive_head(stream.read, BROWSERS, KEPT_S, _HEAD_S, begun)
        if not raw:
            return None, b""
        message = read_message(raw, BROWSERS)
    except ConnectionError:  # closed within
        return None, b""
    except BadRequest as error:
        raise Ended("client gone") from error
    length = message.body_bytes or 0
    if length > _LONGEST_BODY:
        raise Ended("client gone")
    left, rest = length - len(rest), rest[length:]
    while left > 0:
        more = stream.read(_HEAD_S)
        if not more:
            return None, b""
        left, rest = left - len(more), more[left:]
    return message, rest


def _preflight(request: Message, method: str) -> bytes:
    headers = [
        ("Access-Control-Allow-Origin", request.headers.get("origin", "*")),
        ("Access-Control-Allow-Methods", method),
    ]
    wanted = request.headers.get("access-control-request-headers")
    if wanted is not None:
        headers.append(("Access-Control-Allow-Headers", wanted))
    return head(204, *headers, ("Access-Control-Allow-Credentials", "true"))
