"""Connections that are kept (docs/reference/endpoint-api.md): DASH content, ``GET /v1/content/NAME/FILE``, whole or a part; and stored
pages, ``GET /v1/page/NAME`` with ``Upgrade: tandem-page``, where what follows the head is what a browser says to any of the page's origins,
plain or by TLS, and is answered as they answered. Bytes go both ways without ever blocking in the kernel: while they wait the statistics
are read and the session's end is seen."""

from __future__ import annotations

import select
import time
from typing import Literal

from tandem.stream import Stream, TlsStream, backlog
from tandem_server.content.library import ContentError, Item, Library, media_type
from tandem_server.content.page import Opened, PageError, PageStore
from tandem_server.endpoint.http1 import (
    BROWSERS,
    PROBES,
    BadRequest,
    Message,
    Request,
    content_head,
    head,
    json_answer,
    read_head,
    read_message,
    receive_head,
)
from tandem_server.endpoint.transfers import SAMPLE_PERIOD_S, Measured
from tandem_server.http.ranges import Part, byte_range

_READ_BYTES = 1 << 16

End = Literal["complete", "budget", "stalled", "stopped", "client gone"]


class Ended(Exception):  # noqa: N818  (an end, not always an error)
    """The connection's end, as its summary has it."""

    def __init__(self, end: End) -> None:
        super().__init__(end)
        self.end: End = end


class ByteStream:
    """Over a connection of which ``begun`` has been read already. ``sent_bytes``: what ``write`` has given to the kernel."""

    def __init__(self, measured: Measured, begun: bytes = b"") -> None:
        self._measured, self._stream, self.begun = measured, measured.stream, begun
        self._next_sample_s = 0.0
        self.sent_bytes = 0
        self._stream.setblocking(False)

    def peek(self, within_s: float, *, sampled: bool = True) -> bytes:
        """What comes next, which stays; nothing at the end. ``sampled``: read the statistics while it waits. TimeoutError, Ended."""
        self.begun = self.begun or self.read(within_s, sampled=sampled)
        if not sampled:
            self._next_sample_s = 0.0  # what follows begins with a reading
        return self.begun

    def read(self, within_s: float, *, sampled: bool = True) -> bytes:
        """Some bytes; none at the end of what the peer sends. TimeoutError, Ended."""
        if self.begun:
            begun, self.begun = self.begun, b""
            return begun
        until_s = time.monotonic() + within_s
        while True:
            try:
                return self._stream.recv(_READ_BYTES)
            except BlockingIOError:
                self._await(select.POLLIN, until_s, sampled)
            except OSError as error:
                raise Ended("client gone") from error

    def write(self, content: bytes | memoryview) -> None:
        """All of it, to the kernel. Ended."""
        left = memoryview(content)
        until_s = time.monotonic() + self._measured.stall_s
        try:
            while left or backlog(self._stream):
                self._await(select.POLLOUT | select.POLLRDHUP, until_s, sampled=True)
                try:
                    count = self._stream.send(left)
                except BlockingIOError:
                    continue  # the room that poll saw is gone again
                if count:
                    self.sent_bytes += count
                    left = left[count:]
                    until_s = time.monotonic() + self._measured.stall_s
        except TimeoutError:
            raise Ended("stalled") from None
        except OSError as error:
            raise Ended("client gone") from error

    def _await(self, events: int, until_s: float, sampled: bool) -> None:
        poll = select.poll()
        poll.register(self._stream, events)
        while True:
            now_s = time.monotonic()
            if now_s >= self._next_sample_s:
                if sampled:
                    self._measured.sample()
                self._next_sample_s = now_s + SAMPLE_PERIOD_S
                if self._measured.stop():
                    raise Ended("stopped")
            if now_s >= until_s:
                raise TimeoutError
            found = poll.poll(1000 * max(0.0, min(self._next_sample_s, until_s) - now_s))
            if found and found[0][1] & select.POLLRDHUP:
                # Its kernel may take data for a minute more, but nobody reads them (see ``download``).
                raise Ended("client gone")
            if found:
                return


CONTENT_PREFIX = "/v1/content/"
KEPT_S = 90.0
"""So long a connection may wait for its next request: a player whose buffer is full requests more when a segment has been played, and no
browser keeps one longer."""
_CHUNK_BYTES = 1 << 20
_RANGES = ("Accept-Ranges", "bytes")


class ContentService:
    """One connection's requests. ``head_s``: within which a head must be whole. After ``serve``, ``sent_bytes`` is the payload and
    ``requests`` their number."""

    def __init__(self, measured: Measured, library: Library, head_s: float) -> None:
        self._stream, self._library, self._head_s = ByteStream(measured), library, head_s
        self._budget, self._on_head = measured.budget, measured.account.head
        self.sent_bytes = self.requests = 0

    def serve(self, request: Request) -> End:
        """Answer ``request`` and those that follow it, until the client closes, wants the end or is silent for ``KEPT_S``."""
        session = _session(request)
        following: Request | None = request
        try:
            while following is not None:
                if _session(following) != session:
                    raise BadRequest(403, "another session than the connection began with")
                self.requests += 1
                self._answer(following)
                following = None if following.closes else self._next()
        except Ended as ended:
            return ended.end
        except OSError:
            return "client gone"
        except BadRequest as refusal:
            try:
                self._refuse(refusal, ("Connection", "close"))
            except Ended as ended:
                return ended.end
            return "budget" if refusal.status == 429 else "complete"
        return "complete"

    def _next(self) -> Request | None:
        """The next request; None when none came."""
        try:
            if not self._stream.peek(KEPT_S, sampled=False):
                return None
        except TimeoutError:
            return None
        except Ended as ended:
            if ended.end == "stopped":  # nothing was cut
                return None
            raise
        head, rest = receive_head(self._stream.read, PROBES, self._head_s, self._head_s)
        if rest:
            raise BadRequest(400, "something follows the head")
        request = read_head(head)
        if request.method != "GET" or not request.path.startswith(CONTENT_PREFIX):
            raise BadRequest(405, f"after the first, only GET {CONTENT_PREFIX}NAME/FILE")
        return request

    def _answer(self, request: Request) -> None:
        """BadRequest for what ends the connection; what does not is answered here."""
        if request.method != "GET" or request.query:
            raise BadRequest(400, "GET without a query")
        name = request.path.removeprefix(CONTENT_PREFIX)
        try:
            item = self._library.open(name)
        except (ContentError, OSError) as error:
            self._refuse(BadRequest(503, f"content {name}: {type(error).__name__}"[:200]))
            return
        if item is None:
            self._refuse(BadRequest(404, f"no content {name}"[:200]))
            return
        try:
            self._send_item(item, name, byte_range(request.headers.get("range", ""), item.size))
        finally:
            item.close()

    def _send_item(self, item: Item, name: str, part: Part) -> None:
        if part.status == 416:
            self._refuse(BadRequest(416, f"the file has {item.size} bytes"))
            return
        length = part.end - part.start
        reserved = self._budget.take(length)
        if reserved < length:
            self._budget.give_back(reserved)
            raise BadRequest(429, "not so many bytes are left of the session's budget")
        before = self.sent_bytes
        try:
            span = [("Content-Range", f"bytes {part.start}-{part.end - 1}/{item.size}")] if part.status == 206 else []
            head = content_head(part.status, media_type(name), length, _RANGES, *span)
            self._on_head(len(head))
            self._stream.write(head)
            self._send(item, part)
        finally:
            self._budget.give_back(reserved - (self.sent_bytes - before))

    def _send(self, item: Item, part: Part) -> None:
        offset, begun = part.start, self._stream.sent_bytes
        before = self.sent_bytes
        try:
            while offset < part.end:
                piece = item.read(offset, min(_CHUNK_BYTES, part.end - offset))
                if not piece:
                    raise ConnectionError("the file has become shorter")
                self._stream.write(piece)
                offset += len(piece)
        finally:
            self.sent_bytes = before + self._stream.sent_bytes - begun

    def _refuse(self, refusal: BadRequest, *more: tuple[str, object]) -> None:
        """An error as the other resources have it."""
        answer = json_answer(refusal.status, {"error": str(refusal)}, _RANGES, *more)
        self._on_head(len(answer))
        self._stream.write(answer)


def _session(request: Request) -> str:
    """The id that it shows: a connection that was admitted need not show again that it may."""
    return request.headers.get("x-tandem-session", "").partition(" ")[0]


PAGE_PREFIX = "/v1/page/"
PROTOCOL = "tandem-page"
_HEAD_S = 20.0
_LONGEST_BODY = 16 << 20
_PAGE_CHUNK_BYTES = 1 << 18
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
    name = request.path.removeprefix(PAGE_PREFIX)
    try:
        opened = pages.open(name)
    except (PageError, OSError) as error:
        raise BadRequest(503, f"page {name[:64]}: {error}"[:200]) from error
    if opened is None:
        raise BadRequest(404, f"no page {name}"[:200])
    return opened


class Replay:
    """One connection. After ``serve``: ``sent_bytes`` of bodies, ``requests``, of which ``near`` were answered by the nearest query and
    ``missed`` not at all; ``secure``: by TLS."""

    def __init__(self, measured: Measured, opened: Opened) -> None:
        self._measured, self._opened = measured, opened
        self._budget, self._on_head = measured.budget, measured.account.head
        self.sent_bytes = self.requests = self.near = self.missed = 0
        self.secure = False

    def serve(self, begun: bytes) -> End:
        """Answer until the client closes or is silent for ``KEPT_S``. ``begun`` has been read already."""
        stream = ByteStream(self._measured, begun)
        try:
            stream.write(SWITCHING)
            if stream.peek(KEPT_S).startswith(_TLS_HANDSHAKE):
                connection = self._measured.stream
                if self._opened.tls is None or isinstance(connection, TlsStream):
                    return "client gone"  # nothing of this page is https
                tls = TlsStream(connection, self._opened.tls)
                tls.handshake(_HEAD_S, stream.begun)
                self._measured.go_on_over(tls)
                stream, self.secure = ByteStream(self._measured), True
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
            self._say(stream, begin, body[:_PAGE_CHUNK_BYTES])
            sent = min(_PAGE_CHUNK_BYTES, len(body))
            while sent < len(body):
                stream.write(body[sent : sent + _PAGE_CHUNK_BYTES])
                sent = min(sent + _PAGE_CHUNK_BYTES, len(body))
        finally:
            self.sent_bytes += sent
            self._budget.give_back(reserved - sent)


def serve_content(measured: Measured, library: Library, request: Request, head_s: float) -> dict[str, object]:
    """Serve content from ``request`` on; the connection's summary."""
    service = ContentService(measured, library, head_s)
    return _summary(measured, service.serve(request), service)


def replay_page(measured: Measured, opened: Opened, begun: bytes) -> dict[str, object]:
    """Replay over a connection of which ``begun`` has been read; its summary."""
    replay = Replay(measured, opened)
    summary = _summary(measured, replay.serve(begun), replay)
    return summary | {"near": replay.near, "missed": replay.missed, "page_tls": replay.secure}


def _summary(measured: Measured, end: End, served: ContentService | Replay) -> dict[str, object]:
    measured.sample()
    return {
        **measured.account.summary(),
        "bytes_sent": served.sent_bytes,
        "requests": served.requests,
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
