"""GET over one connection that is kept: each body into one buffer, counted and timed; what must be looked at is kept.

Every answer is bounded: the head (``http_head.LONGEST``), the body, the time without a byte, the deadline. A server that lies about
lengths, cuts, stalls or never ends its head is a FetchError.
"""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from tandem.experiment import http_head
from tandem.experiment.base import Stop, StoppedError
from tandem.experiment.control import Session, describe
from tandem.experiment.dash.model import ByteRange
from tandem.stream import Stream, wake

LONGEST_BODY = 1 << 30
"""Of a segment, in bytes: 15 s of 500 Mbit/s."""
_BUFFER_BYTES = 1 << 20
_WAKE_S = 0.25
_REASON_BYTES = 4096
_CLOSES = re.compile(rb"\r\nconnection:[ \t]*(?:[^\r\n]*,[ \t]*)?close[ \t]*(?:,[^\r\n]*)?\r\n", re.IGNORECASE)
_OLD = b"HTTP/1.0"
_WORTH_ASKING_AGAIN = (408, 429, 500, 502, 503, 504)


class FetchError(Exception):
    """A request failed. ``again``: the same may succeed over another connection. ``retry``: it may in another run."""

    def __init__(self, reason: str, *, again: bool, received: int = 0, retry: bool | None = None) -> None:
        super().__init__(reason)
        self.again, self.received = again, received
        self.retry = again if retry is None else retry


def past_deadline(received: int = 0) -> FetchError:
    """The run's time is over."""
    return FetchError("deadline passed", again=False, received=received, retry=True)


@dataclass(frozen=True, slots=True)
class Fetched:
    """One body. Times are CLOCK_MONOTONIC ns: the request's sending, the first and the last byte of the body (of the head when it is
    empty). ``content``: the body where it was to be kept, else empty. ``closes``: the server ends the connection with it."""

    size_bytes: int
    requested_ns: int
    first_byte_ns: int
    last_byte_ns: int
    content: bytes
    closes: bool


def request(path: str, host: str, session: Session, part: ByteRange | None) -> bytes:
    """The request; ValueError when the path, which comes from the MPD, holds what no request line may."""
    if not path.isascii() or not path.isprintable() or " " in path:
        raise ValueError(f"{path[:80]!r} cannot be asked for")
    lines = [
        f"GET {path} HTTP/1.1",
        f"Host: {host}",
        f"X-Tandem-Session: {session.claim(path)}",
        "Accept-Encoding: identity",
    ]
    if part is not None:
        lines.append(f"Range: bytes={part.first}-{part.last}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("ascii")


class Taker(Protocol):
    """Where an answer goes as it comes. After ``begin`` a request is not made again."""

    def begin(self, length: int | None, part: ByteRange | None) -> None:
        """Its head has come: a body of ``length`` bytes follows."""
        ...

    def piece(self, content: memoryview) -> None:
        """Some of the body. The buffer is used again afterwards."""
        ...


class Fetcher:
    """Over ``connection``, which is open. ``on_bytes`` hears of every piece of payload. Not for two threads."""

    def __init__(
        self, connection: Stream, stall_s: float, deadline_ns: int, stop: Stop, on_bytes: Callable[[int], None]
    ) -> None:
        self._socket, self._stall_s, self._deadline_ns, self._stop = connection, stall_s, deadline_ns, stop
        self._on_bytes = on_bytes
        self._buffer = bytearray(_BUFFER_BYTES)
        wake(connection, _WAKE_S, sending=True)
        self.used = False
        """An answer has come over this connection."""

    def get(self, asked: bytes, part: ByteRange | None, keep: int | None = None, taker: Taker | None = None) -> Fetched:
        """Send ``asked``, take the answer. ``keep``: return the body, which may have so many bytes; else it is only counted.
        ``taker`` gets it as it comes. FetchError; StoppedError when told to stop; what ``taker`` raises."""
        self._nothing_left_over()
        requested = time.monotonic_ns()
        try:
            if self._socket.send(asked) != len(asked):
                raise FetchError("the request could not be sent whole", again=True)
        except OSError as error:
            raise FetchError(self._gone(error), again=True) from error
        start = b""
        head: http_head.Head | None = None
        while head is None:
            count = self._receive(len(start))
            if count == 0:
                raise FetchError("closed before any answer" if not start else "closed within the head", again=True)
            first_byte = time.monotonic_ns()
            start += self._buffer[:count]
            try:
                head = http_head.parse(start)
            except http_head.HeadError as error:
                raise FetchError(str(error), again=False) from error
        raw, body = start[: head.size], start[head.size :]
        self.used = True
        length = self._length(head, part, keep, body)
        kept = bytearray(body) if keep is not None else bytearray()
        received = len(body)
        last_byte = first_byte
        if taker is not None:
            taker.begin(length, part)
        if received:
            self._on_bytes(received)
            if taker is not None:
                taker.piece(memoryview(body))
        while length is None or received < length:
            room = None if length is None else length - received
            count = self._receive(received, room)
            if count == 0:
                break
            last_byte = time.monotonic_ns()
            first_byte = first_byte if received else last_byte
            received += count
            self._on_bytes(count)
            if keep is not None:
                kept += self._buffer[:count]
            if taker is not None:
                taker.piece(memoryview(self._buffer)[:count])
            if received > (LONGEST_BODY if keep is None else keep):
                raise FetchError(f"more than {received - 1} bytes", again=False, received=received)
        if length is not None and received != length:
            what = (
                f"closed after {received} of {length} bytes" if received < length else "more than Content-Length says"
            )
            raise FetchError(what, again=True, received=received)
        closes = length is None or raw.startswith(_OLD) or _CLOSES.search(raw) is not None
        return Fetched(received, requested, first_byte, last_byte, bytes(kept), closes)

    def _length(self, head: http_head.Head, part: ByteRange | None, keep: int | None, body: bytes) -> int | None:
        """How long the body is; FetchError when it is not what was asked for."""
        if head.status != (200 if part is None else 206):
            if head.status in (200, 206):
                raise FetchError(f"HTTP {head.status}: byte ranges are not served", again=False)
            again = head.status in _WORTH_ASKING_AGAIN
            raise FetchError(http_head.refusal(head.status, self._rest(body, head.length)), again=again)
        if part is not None and head.length not in (None, part.length):
            raise FetchError(f"Content-Length {head.length}, asked for {part.length}", again=False)
        longest = LONGEST_BODY if keep is None else keep
        if head.length is not None and head.length > longest:
            raise FetchError(f"Content-Length {head.length}, more than {longest}", again=False)
        return part.length if part is not None else head.length

    def _nothing_left_over(self) -> None:
        """FetchError when the server has closed meanwhile, or sent more than it said: what follows would be no answer to us."""
        if not self.used:
            return
        try:
            more = self._socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError as error:
            raise FetchError(self._gone(error), again=True) from error
        raise FetchError("more than Content-Length says" if more else "closed", again=True)

    def _rest(self, body: bytes, length: int | None) -> bytes:
        """The whole of a short body that says why a request was refused, as far as it comes."""
        while len(body) < min(length or 0, _REASON_BYTES):
            try:
                count = self._receive(len(body))
            except FetchError:
                break
            if count == 0:
                break
            body += self._buffer[:count]
        return body

    def _receive(self, received: int, room: int | None = None) -> int:
        """Wait for bytes; 0 at the end of the stream. FetchError after ``stall_s`` without one, or past the deadline."""
        heard = time.monotonic_ns()
        size = len(self._buffer) if room is None else min(room, len(self._buffer))
        while True:
            if self._stop.requested:
                raise StoppedError
            if time.monotonic_ns() > self._deadline_ns:
                raise past_deadline(received)
            try:
                return self._socket.recv_into(self._buffer, size)
            except BlockingIOError:
                if time.monotonic_ns() - heard > self._stall_s * 1e9:
                    raise FetchError(
                        f"stalled: no byte for {self._stall_s:g} s", again=True, received=received
                    ) from None
            except OSError as error:
                raise FetchError(self._gone(error), again=True, received=received) from error

    @staticmethod
    def _gone(error: OSError) -> str:
        return "closed" if isinstance(error, BrokenPipeError) else describe(error)
