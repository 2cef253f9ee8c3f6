"""Serves DASH content over one connection that is kept: ``GET /v1/content/NAME/FILE`` (docs/reference/endpoint-api.md), whole or a part."""

from __future__ import annotations

from collections.abc import Callable

from tandem_server.content.library import ContentError, Item, Library, media_type
from tandem_server.endpoint.byte_stream import ByteStream, End, Ended
from tandem_server.endpoint.download import Budget
from tandem_server.endpoint.http1 import (
    PROBES,
    BadRequest,
    Request,
    content_head,
    json_answer,
    read_head,
    receive_head,
)
from tandem_server.http.ranges import Part, byte_range

PREFIX = "/v1/content/"
KEPT_S = 90.0
"""So long a connection may wait for its next request: a player whose buffer is full requests more when a segment has been played."""
_CHUNK_BYTES = 1 << 20
_RANGES = ("Accept-Ranges", "bytes")


class ContentService:
    """One connection's requests. ``on_head``: so many bytes are no payload. ``head_s``: within which a head must be whole. After ``serve``,
    ``sent_bytes`` is the payload and ``requests`` their number."""

    def __init__(
        self, stream: ByteStream, library: Library, budget: Budget, on_head: Callable[[int], None], head_s: float
    ) -> None:
        self._stream, self._library, self._budget = stream, library, budget
        self._on_head, self._head_s = on_head, head_s
        self.sent_bytes = 0
        self.requests = 0

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
        if request.method != "GET" or not request.path.startswith(PREFIX):
            raise BadRequest(405, f"after the first, only GET {PREFIX}NAME/FILE")
        return request

    def _answer(self, request: Request) -> None:
        """BadRequest for what ends the connection; what does not is answered here."""
        if request.method != "GET" or request.query:
            raise BadRequest(400, "GET without a query")
        name = request.path.removeprefix(PREFIX)
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
