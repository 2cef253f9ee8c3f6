"""Bytes of a connection both ways without ever blocking in the kernel: while they wait the statistics are read and the session's end is
seen."""

from __future__ import annotations

import select
import time
from collections.abc import Callable
from typing import Literal

from tandem.stream import Stream, backlog
from tandem_server.endpoint.download import SAMPLE_PERIOD_S

_CHUNK_BYTES = 1 << 16

End = Literal["complete", "budget", "stalled", "stopped", "client gone"]


class Ended(Exception):  # noqa: N818  (an end, not always an error)
    """The connection's end, as its summary has it."""

    def __init__(self, end: End) -> None:
        super().__init__(end)
        self.end: End = end


class ByteStream:
    """Over ``stream``, of which ``begun`` has been read already. ``sent_bytes``: what ``write`` has given to the kernel."""

    def __init__(
        self, stream: Stream, begun: bytes, on_sample: Callable[[], None], stop: Callable[[], bool], stall_s: float
    ) -> None:
        self._stream, self.begun = stream, begun
        self._on_sample, self._stop, self._stall_s = on_sample, stop, stall_s
        self._next_sample_s = 0.0
        self.sent_bytes = 0
        stream.setblocking(False)

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
                return self._stream.recv(_CHUNK_BYTES)
            except BlockingIOError:
                self._await(select.POLLIN, until_s, sampled)
            except OSError as error:
                raise Ended("client gone") from error

    def write(self, content: bytes | memoryview) -> None:
        """All of it, to the kernel. Ended."""
        left = memoryview(content)
        until_s = time.monotonic() + self._stall_s
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
                    until_s = time.monotonic() + self._stall_s
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
                    self._on_sample()
                self._next_sample_s = now_s + SAMPLE_PERIOD_S
                if self._stop():
                    raise Ended("stopped")
            if now_s >= until_s:
                raise TimeoutError
            found = poll.poll(1000 * max(0.0, min(self._next_sample_s, until_s) - now_s))
            if found and found[0][1] & select.POLLRDHUP:
                # Its kernel may take data for a minute more, but nobody reads them (see ``download``).
                raise Ended("client gone")
            if found:
                return
