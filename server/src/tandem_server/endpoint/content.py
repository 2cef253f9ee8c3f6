"""Serves DASH content over one connection that is kept: ``GET /v1/content/NAME/FILE`` (docs/reference/endpoint-api.md), whole or a part."""

from __future__ import annotations

import json
import re
import select
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Literal

from tandem.stream import Stream, backlog
from tandem_server.content.library import ContentError, Item, Library, media_type
from tandem_server.endpoint.download import SAMPLE_PERIOD_S, Budget
from tandem_server.endpoint.request import BadRequest, Request, read_head

PREFIX = "/v1/content/"
KEPT_S = 90.0
"""So long a connection may wait for its next request: a player whose buffer is full asks when a segment has been played."""
_CHUNK_BYTES = 1 << 20
_LOOK_S = 0.25
_RANGE = re.compile(r"bytes=(?:([0-9]{1,15})-([0-9]{1,15})?|-([0-9]{1,15}))\Z")

End = Literal["complete", "budget", "stalled", "stopped", "client gone"]


class Part:
    """Which bytes of a file are answered, and with which status. BadRequest 416 when the file has none of them."""

    def __init__(self, asked: str | None, size: int) -> None:
        self.first, self.last, self.ranged, self.size = 0, size - 1, False, size
        match = _RANGE.match(asked) if asked is not None else None
        if match is None:
            return  # several ranges, or another unit: the whole is a right answer too (RFC 9110, 14.2)
        first, last, suffix = match.groups()
        if suffix is not None:
            self.first = max(0, size - int(suffix))
        else:
            self.first = int(first)
            self.last = min(self.last, int(last)) if last is not None else self.last
        if self.first > self.last or self.first >= size:
            raise BadRequest(416, f"the file has {size} bytes")
        self.ranged = True

    @property
    def length(self) -> int:
        """How many bytes."""
        return self.last - self.first + 1


class ContentService:
    """One connection's requests. ``receive``: read the next request's head, empty when the client
    has closed (OSError, BadRequest). ``on_sample``: read the statistics
    now. ``on_head``: so many bytes are no payload. After ``serve``, ``sent_bytes`` is the payload and ``requests`` their number."""

    def __init__(
        self,
        connection: Stream,
        library: Library,
        budget: Budget,
        receive: Callable[[], bytes],
        on_sample: Callable[[], None],
        on_head: Callable[[int], None],
        stop: Callable[[], bool],
        stall_s: float,
    ) -> None:
        self._socket, self._library, self._budget, self._receive = connection, library, budget, receive
        self._on_sample, self._on_head, self._stop, self._stall_s = on_sample, on_head, stop, stall_s
        self._poll = select.poll()
        self._poll.register(connection, select.POLLOUT | select.POLLRDHUP)
        self.sent_bytes = 0
        self.requests = 0

    def serve(self, request: Request) -> End:
        """Answer ``request`` and those that follow it, until the client closes, asks for the end or is silent for ``KEPT_S``."""
        session = _session(request)
        end: End = "complete"
        try:
            while True:
                self.requests += 1
                end = self._answer(request)
                if end != "complete" or "close" in request.headers.get("connection", "").lower():
                    break
                following = self._next()
                if following is None:
                    break
                if _session(following) != session:
                    raise BadRequest(403, "another session than the connection began with")
                request = following
        except BadRequest as refusal:
            end = self._refuse(refusal, closing=True)
        except OSError:
            end = "client gone"
        self._on_sample()
        return end

    def _next(self) -> Request | None:
        """The next request; None when none came."""
        waiting = select.poll()
        waiting.register(self._socket, select.POLLIN)
        until_s = time.monotonic() + KEPT_S
        while not waiting.poll(1000 * _LOOK_S):
            if self._stop() or time.monotonic() > until_s:
                return None
        head = self._receive()
        if not head:
            return None
        request = read_head(head)
        if request.method != "GET" or not request.path.startswith(PREFIX):
            raise BadRequest(405, f"after the first, only GET {PREFIX}NAME/FILE")
        return request

    def _answer(self, request: Request) -> End:
        if request.method != "GET" or request.query:
            return self._refuse(BadRequest(400, "GET without a query"), closing=True)
        name = request.path.removeprefix(PREFIX)
        try:
            item = self._library.open(name)
            if item is None:
                raise BadRequest(404, f"no content {name}"[:200])
        except BadRequest as refusal:
            return self._refuse(refusal)
        except (ContentError, OSError) as error:
            return self._refuse(BadRequest(503, f"content {name}: {type(error).__name__}"[:200]))
        try:
            return self._send_item(item, name, request.headers.get("range"))
        except BadRequest as refusal:
            return self._refuse(refusal)
        finally:
            item.close()

    def _send_item(self, item: Item, name: str, asked: str | None) -> End:
        part = Part(asked, item.size)
        reserved = self._budget.take(part.length)
        if reserved < part.length:
            self._budget.give_back(reserved)
            return self._refuse(BadRequest(429, "not so many bytes are left of the session's budget"), closing=True)
        sent_before = self.sent_bytes
        try:
            more = [f"Content-Range: bytes {part.first}-{part.last}/{part.size}"] if part.ranged else []
            head = _head(206 if part.ranged else 200, media_type(name), part.length, more)
            self._on_head(len(head))
            return self._send(head, item, part)
        finally:
            self._budget.give_back(reserved - (self.sent_bytes - sent_before))

    def _refuse(self, refusal: BadRequest, *, closing: bool = False) -> End:
        """An error as the other resources tell it; "budget" for 429, so that the connection ends."""
        body = json.dumps({"error": str(refusal)}).encode()
        more = ["Connection: close"] if closing else []
        answer = _head(refusal.status, "application/json", len(body), more) + body
        self._on_head(len(answer))
        end = self._send(answer, None, None)
        if refusal.status == 429:
            return "budget"
        return end

    def _send(self, head: bytes, item: Item | None, part: Part | None) -> End:
        """Send ``head`` and the part, without ever blocking in the kernel."""
        self._socket.setblocking(False)
        pending: memoryview = memoryview(head)
        offset = part.first if part is not None else 0
        ends = part.last + 1 if part is not None else 0
        payload = False
        progress_s = next_sample_s = time.monotonic()
        while True:
            now_s = time.monotonic()
            if now_s >= next_sample_s:
                self._on_sample()
                next_sample_s = now_s + SAMPLE_PERIOD_S
                if self._stop():
                    return "stopped"
            if now_s - progress_s > self._stall_s:
                return "stalled"
            given = item is None or offset >= ends
            if not pending and given and not backlog(self._socket):
                return "complete"
            if not pending and item is not None and not given:
                pending = memoryview(item.read(offset, min(_CHUNK_BYTES, ends - offset)))
                if not pending:
                    raise ConnectionError("the file has become shorter")
                offset += len(pending)
                payload = True
            events = self._poll.poll(1000 * max(0.0, next_sample_s - now_s))
            if not events:
                continue
            if events[0][1] & (select.POLLRDHUP | select.POLLERR | select.POLLHUP):
                return "client gone"
            try:
                count = self._socket.send(pending)
            except BlockingIOError:
                continue  # the room that poll saw is gone again
            pending = pending[count:]
            progress_s = now_s
            if payload:
                self.sent_bytes += count


def _session(request: Request) -> str:
    """The id that it tells: a connection that was admitted need not show again that it may."""
    return request.headers.get("x-tandem-session", "").partition(" ")[0]


def _head(status: int, kind: str, length: int, more: list[str]) -> bytes:
    lines = [
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
        f"Content-Type: {kind}",
        f"Content-Length: {length}",
        "Accept-Ranges: bytes",
        "Cache-Control: no-store",
        *more,
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("ascii")
