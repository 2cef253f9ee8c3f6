"""Between a player that knows only a URL and the measured connection: an HTTP server on loopback, for that player alone.

Each request goes out over ``Link`` (its session, primary path and statistics) and the answer goes back as it comes, piece by piece, so that
the player's own estimate of throughput sees the network's rhythm. One request at a time.
"""

from __future__ import annotations

import re
import selectors
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass

from tandem.experiment.base import Stop, StoppedError
from tandem.experiment.dash.fetch import Fetched, past_deadline
from tandem.experiment.dash.link import Link
from tandem.experiment.dash.model import ByteRange, Resource

_HEAD_BYTES = 16384
_SEND_BUFFER_BYTES = 1 << 16
"""Small, so that what the player has not taken does not look like taken."""
_WAKE_S = 0.1
_REQUEST = re.compile(rb"GET (/[!-~]{0,4000}) HTTP/1\.[01]\r\n")
_RANGE = re.compile(rb"\r\nrange:[ \t]*bytes=([0-9]{1,15})-([0-9]{0,15})[ \t]*\r\n", re.IGNORECASE)


class GoneError(Exception):
    """The player no longer takes this answer."""


class RequestError(ValueError):
    """The player asked in a way that is not understood; one line."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One request: path and query, and the bytes wanted (None: all)."""

    target: str
    part: ByteRange | None


def parse(head: bytes) -> Asked:
    """A request's head, with its empty line. Pure; RequestError."""
    line = _REQUEST.match(head)
    if line is None:
        raise RequestError(f"no GET request: {head[:60]!r}")
    part = None
    found = _RANGE.search(head)
    if found is not None:
        first, last = int(found[1]), found[2]
        if last:
            if int(last) < first:
                raise RequestError(f"a range that ends before it begins: {found[0]!r}")
            part = ByteRange(first, int(last))
        elif first:
            raise RequestError(f"a range without an end: {found[0]!r}")
    return Asked(line[1].decode("ascii"), part)


class Relay:
    """``keep(asked)``: how much of the body the caller wants to see, None: nothing. ``before`` and ``after`` are told of each request."""

    def __init__(
        self,
        link: Link,
        stop: Stop,
        keep: Callable[[Asked], int | None],
        before: Callable[[Asked], None],
        after: Callable[[Asked, Fetched], None],
    ) -> None:
        self._link, self._stop = link, stop
        self._keep, self._before, self._after = keep, before, after
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._heads: dict[socket.socket, bytes] = {}
        self._out: socket.socket | None = None
        self._head = b""

    @property
    def url(self) -> str:
        """Of its root, without a slash at the end."""
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def step(self) -> None:
        """Serve what waits, or wait for at most a tenth of a second. FetchError, StoppedError, and what ``after`` raises."""
        for key, _ in self._selector.select(_WAKE_S):
            if key.fileobj is self._listener:
                connection, _ = self._listener.accept()
                connection.setblocking(False)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
                self._heads[connection] = b""
                self._selector.register(connection, selectors.EVENT_READ)
            elif isinstance(key.fileobj, socket.socket):
                self._read(key.fileobj)

    def _read(self, connection: socket.socket) -> None:
        try:
            piece = connection.recv(_HEAD_BYTES)
        except BlockingIOError:
            return
        except OSError:
            piece = b""
        head = self._heads[connection] + piece
        if not piece or len(head) > _HEAD_BYTES:
            self._drop(connection)
            return
        end = head.find(b"\r\n\r\n")
        self._heads[connection] = head if end < 0 else head[end + 4 :]
        if end >= 0:
            self._serve(connection, parse(head[: end + 4]))

    def _serve(self, connection: socket.socket, asked: Asked) -> None:
        self._before(asked)
        self._out = connection
        try:
            place = Resource(f"http://{self._link.host}{asked.target}", asked.part)
            fetched = self._link.get(place, self._keep(asked), self)
            self.piece(memoryview(b""))  # the head of an answer without a body
        except GoneError:
            self._link.close()  # the rest of the answer is still on its way over the measured connection
            self._drop(connection)
            return
        finally:
            self._out = None
        self._after(asked, fetched)

    def begin(self, length: int | None, part: ByteRange | None) -> None:
        """The answer's head has come (``Link.get``). It goes on with the first of the body: until then the request may be made again."""
        status = "200 OK" if part is None else "206 Partial Content"
        lines = [f"HTTP/1.1 {status}", *([] if length is None else [f"Content-Length: {length}"])]
        if part is not None:
            lines.append(f"Content-Range: bytes {part.first}-{part.last}/*")
        self._head = ("\r\n".join(lines) + "\r\n\r\n").encode()

    def piece(self, content: memoryview) -> None:
        """A piece of it has come: on to the player, at the player's pace. GoneError, StoppedError, FetchError past the deadline."""
        head, self._head = self._head, b""
        if head:
            self._send(memoryview(head))
        self._send(content)

    def _send(self, content: memoryview) -> None:
        connection = self._out
        while content and connection is not None:
            if self._stop.requested:
                raise StoppedError
            if time.monotonic_ns() > self._link.deadline_ns:
                raise past_deadline()
            try:
                content = content[connection.send(content) :]
            except BlockingIOError:
                with selectors.DefaultSelector() as room:
                    room.register(connection, selectors.EVENT_WRITE)
                    room.select(_WAKE_S)
            except OSError as error:
                raise GoneError from error

    def _drop(self, connection: socket.socket) -> None:
        self._selector.unregister(connection)
        del self._heads[connection]
        connection.close()

    def close(self) -> None:
        """Close every connection and the server."""
        for connection in list(self._heads):
            self._drop(connection)
        self._selector.close()
        self._listener.close()
