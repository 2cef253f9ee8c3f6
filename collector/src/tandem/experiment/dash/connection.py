"""The measured connection of a play: opened, kept from segment to segment, opened anew when it broke (``Link``); and GET over it: each
body into one buffer, counted and timed; what must be looked at is kept (``Fetcher``).

Every answer is bounded: the head (``http_head.LONGEST``), the body, the time without a byte, the deadline. A server that lies about
lengths, cuts, stalls or never ends its head is a FetchError.
"""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from tandem.experiment import http_head
from tandem.experiment.base import Output, Stop, StoppedError
from tandem.experiment.control import Session, describe
from tandem.experiment.dash.mpd import Resource
from tandem.experiment.dash.mpd_xml import ByteRange
from tandem.experiment.measured_connection import PathNames, Sampler, both_families, connect
from tandem.experiment.parameters import ConnectionParameters, parameter
from tandem.experiment.results import environment
from tandem.mptcp import sockets
from tandem.mptcp.statistics import Series
from tandem.mptcp_abi.reader import Reader, StatisticsError
from tandem.stream import Stream, wake

LONGEST_BODY = 1 << 30
"""Of a segment, in bytes: 15 s of 500 Mbit/s."""
_BUFFER_BYTES = 1 << 20
_WAKE_S = 0.25
_REASON_BYTES = 4096
_CLOSES = re.compile(rb"\r\nconnection:[ \t]*(?:[^\r\n]*,[ \t]*)?close[ \t]*(?:,[^\r\n]*)?\r\n", re.IGNORECASE)
_OLD = b"HTTP/1.0"


class FetchError(Exception):
    """A request failed. ``again``: the same may succeed over another connection. ``retry``: it may in another run."""

    def __init__(self, reason: str, *, again: bool, received: int = 0, retry: bool | None = None) -> None:
        super().__init__(reason)
        self.again, self.received = again, received
        self.retry = again if retry is None else retry


def past_deadline(received: int = 0) -> FetchError:
    return FetchError("deadline passed", again=False, received=received, retry=True)


def check(stop: Stop, deadline_ns: int, received: int = 0) -> None:
    """StoppedError when the run is to stop, FetchError when its time is over."""
    if stop.requested:
        raise StoppedError
    if time.monotonic_ns() > deadline_ns:
        raise past_deadline(received)


@dataclass(frozen=True, slots=True)
class Fetched:
    """One body. Times are CLOCK_MONOTONIC ns: the request's sending, the first and the last byte of the body (of the head when it is
    empty). ``content``: the body where it was to be kept, else empty. ``closes``: no other answer comes over this connection."""

    size_bytes: int
    requested_ns: int
    first_byte_ns: int
    last_byte_ns: int
    content: bytes
    closes: bool


Taker = Callable[[int | None, memoryview], None]
"""Gets an answer as it comes, of each piece the whole body's length (None: not said) and its bytes, whose buffer is used again."""


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

    def get(
        self, request: bytes, part: ByteRange | None, keep: int | None = None, taker: Taker | None = None
    ) -> Fetched:
        """Send ``request``, take the answer. ``keep``: return the body, which may have so many bytes; else it is only counted.
        ``taker`` gets it as it comes. FetchError; StoppedError when the run is to stop; what ``taker`` raises."""
        self._nothing_left_over()
        requested = time.monotonic_ns()
        try:
            if self._socket.send(request) != len(request):
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
        over = length is not None and len(body) > length
        body = body[:length]
        kept = bytearray(body) if keep is not None else bytearray()
        received = len(body)
        last_byte = first_byte
        if received:
            self._on_bytes(received)
            if taker is not None:
                taker(length, memoryview(body))
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
                taker(length, memoryview(self._buffer)[:count])
            if received > (LONGEST_BODY if keep is None else keep):
                raise FetchError(f"more than {received - 1} bytes", again=False, received=received)
        if length is not None and received != length:
            raise FetchError(f"closed after {received} of {length} bytes", again=True, received=received)
        # What came beyond the length is nobody's answer: the connection ends with this one.
        closes = over or length is None or raw.startswith(_OLD) or _CLOSES.search(raw) is not None
        return Fetched(received, requested, first_byte, last_byte, bytes(kept), closes)

    def _length(self, head: http_head.Head, part: ByteRange | None, keep: int | None, body: bytes) -> int | None:
        """How long the body is; FetchError when it is not what was requested."""
        if head.status != (200 if part is None else 206):
            if head.status in (200, 206):
                raise FetchError(f"HTTP {head.status}: byte ranges are not served", again=False)
            again = head.status in http_head.WORTH_RETRYING
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
            check(self._stop, self._deadline_ns, received)
            try:
                return self._socket.recv_into(self._buffer, size)
            except BlockingIOError:
                if time.monotonic_ns() - heard > self._stall_s * 1e9:
                    stalled = f"stalled: no byte for {self._stall_s:g} s"
                    raise FetchError(stalled, again=True, received=received) from None
            except OSError as error:
                raise FetchError(self._gone(error), again=True, received=received) from error

    @staticmethod
    def _gone(error: OSError) -> str:
        return "closed" if isinstance(error, BrokenPipeError) else describe(error)


_PAUSE_S = 0.5
"""Before another connection is tried: a path that comes and goes is not hammered."""


@dataclass(frozen=True, slots=True)
class LinkParameters(ConnectionParameters):
    """Of a play's connections, checked."""

    # fmt: off
    attempts: int = parameter("for each request, over connections of its own", "1", default=3, minimum=1, maximum=10)
    stall_s: float = parameter("without a byte for so long a request has failed", "s", default=10.0, minimum=0.5, maximum=600)
    # fmt: on


class Link:
    """One play's connections, one at a time, each kept from segment to segment. ``connects``: how many were opened; all but the first are
    reconnects. ``received``: payload so far, of every kind and attempt. ``with link:`` closes it at the end."""

    def __init__(
        self, parameters: LinkParameters, session: Session, deadline_ns: int, output: Output, stop: Stop
    ) -> None:
        self._p, self._session, self.deadline_ns = parameters, session, deadline_ns
        self._output, self._stop = output, stop
        self._names = PathNames(parameters.paths)
        self._connected: sockets.Connected | None = None
        self._fetcher: Fetcher | None = None
        self._sampler: Sampler | None = None
        self._reader: Reader | None = None
        self.received = self.connects = 0
        self.connect_ms: float | None = None
        self.tls_ms: float | None = None
        self.series: list[Series] = []
        self.environment: dict[str, Any] = environment(parameters)

    @property
    def host(self) -> str:
        return self._p.measurement.authority

    @property
    def root(self) -> str:
        return f"{self._p.measurement.scheme}://{self.host}"

    def check(self) -> None:
        """StoppedError when the run is to stop, FetchError when its time is over."""
        check(self._stop, self.deadline_ns)

    def get(self, resource: Resource, keep: int | None = None, taker: Taker | None = None) -> Fetched:
        """Fetch, with as many attempts as the parameters allow; FetchError when the last failed. ``keep``, ``taker``: as of
        ``Fetcher.get``; what a taker has got cannot be taken back, so a request whose answer had begun is not made again."""
        attempt = 0
        while True:
            attempt += 1
            head = self._request(resource)  # signed anew: it may be another connection's
            reused = self._fetcher is not None and self._fetcher.used
            try:
                fetched = (self._fetcher or self._open()).get(head, resource.range, keep, taker)
            except FetchError as error:
                self.close()
                # A kept connection that the server ended in the meantime is no failed attempt: the request never reached it.
                if reused and error.again and error.received == 0 and not str(error).startswith("stalled"):
                    attempt -= 1
                passed_on = taker is not None and error.received > 0
                late = attempt >= self._p.attempts or time.monotonic_ns() > self.deadline_ns
                if passed_on or late or not error.again:
                    raise
                if not reused:
                    self._stop.wait(_PAUSE_S)
                continue
            if fetched.closes:
                self.close()
            return fetched

    def _request(self, resource: Resource) -> bytes:
        """The bytes to send; FetchError for a URL elsewhere: measured is the path to this server, and no other is spoken to."""
        try:
            parts = urlsplit(resource.url)
            if f"{parts.scheme}://{parts.netloc}" != self.root:
                raise FetchError(f"{resource.url[:120]!r} is not on {self.root}", again=False)
            target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            if not target.isascii() or not target.isprintable() or " " in target:
                raise ValueError(f"{target[:80]!r} cannot be requested")
            headers = {"X-Tandem-Session": self._session.claim(target), "Accept-Encoding": "identity"}
            if resource.range is not None:
                headers["Range"] = f"bytes={resource.range.first}-{resource.range.last}"
            return http_head.request(target, self.host, headers, close=False)
        except ValueError as error:
            raise FetchError(f"a URL of the MPD: {error}", again=False) from error

    def _open(self) -> Fetcher:
        p = self._p
        options = p.options.here(sends=False, both_families=both_families(p.kind, p.paths))
        patience_s = min(p.connect_timeout_s, max(0.1, (self.deadline_ns - time.monotonic_ns()) / 1e9))
        self.connects += 1
        try:
            with self._stop.interruptible():
                connected = connect(p, p.kind, p.primary, patience_s, options)
        except OSError as error:
            raise FetchError(f"connect: {describe(error)}", again=True) from error
        if self.connect_ms is None:
            self.connect_ms, self.tls_ms = connected.connect_ms, connected.tls_ms
        series = Series(self._names.of)
        self.series.append(series)
        self._connected = connected
        self._reader = Reader(connected.socket)
        arm = {"kind": p.kind, "path": p.primary.name}
        expected, made = len(p.carrying), connected.socket
        self._sampler = Sampler(made, series, lambda: self.received, self._output, p.sample_hz, expected, arm)
        self._sampler.start()
        self._fetcher = Fetcher(connected.stream, p.stall_s, self.deadline_ns, self._stop, self._count)
        return self._fetcher

    def _count(self, size: int) -> None:
        self.received += size

    def by_path(self) -> dict[str, int] | None:
        """What the kernel has received over each path of the open connection; None when none is open or it does not say."""
        if self._reader is None:
            return None
        try:
            sample = self._reader.read()
        except StatisticsError:
            return None
        found: dict[str, int] = {}
        for subflow in sample.subflows:
            path = self._names.of(subflow).path
            if path is not None and subflow.tcp.bytes_received is not None:
                found[path] = found.get(path, 0) + subflow.tcp.bytes_received
        return found

    def close(self) -> None:
        """Close the connection, with a last sample. Nothing when none is open."""
        if self._connected is None:
            return
        if self._sampler is not None:
            self._sampler.stop()
        self.environment = environment(self._p, self._connected.socket)
        self._connected.socket.close()
        self._connected = self._fetcher = self._sampler = self._reader = None

    def __enter__(self) -> Link:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()  # whatever happens: its sampler is a thread
