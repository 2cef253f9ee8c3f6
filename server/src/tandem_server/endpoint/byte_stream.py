"""Bytes of a connection both ways, plain or by TLS, without ever blocking in the kernel: while they wait the statistics are read and
the session's end is seen."""

from __future__ import annotations

import select
import socket
import ssl
import time
from collections.abc import Callable
from typing import Literal, Protocol

from tandem_server.endpoint.download import SAMPLE_PERIOD_S

_CHUNK_BYTES = 1 << 16

End = Literal["complete", "budget", "stalled", "stopped", "client gone"]


class Ended(Exception):  # noqa: N818  (an end, not always an error)
    """The connection's end, as its summary tells it."""

    def __init__(self, end: End) -> None:
        super().__init__(end)
        self.end: End = end


class ByteStream(Protocol):
    """What a replay reads requests from and writes answers to."""

    def read(self, within_s: float) -> bytes:
        """Some bytes; none at the end of what the peer sends. TimeoutError, Ended."""

    def write(self, content: bytes) -> None:
        """All of it. Ended."""


class Wire:
    """The connection itself. ``begun``: what has been read of it already. ``sent``: bytes given to the kernel."""

    def __init__(
        self,
        connection: socket.socket,
        begun: bytes,
        on_sample: Callable[[], None],
        stop: Callable[[], bool],
        stall_s: float,
    ) -> None:
        self._socket, self._begun = connection, begun
        self._on_sample, self._stop, self._stall_s = on_sample, stop, stall_s
        self._next_sample_s = 0.0
        self.sent = 0
        connection.setblocking(False)

    def first_byte(self, within_s: float) -> int | None:
        """The first byte that was not read yet, which stays; None at the end."""
        if not self._begun:
            self._begun = self.read(within_s)
        return self._begun[0] if self._begun else None

    def read(self, within_s: float) -> bytes:
        """See ``ByteStream``."""
        if self._begun:
            begun, self._begun = self._begun, b""
            return begun
        until_s = time.monotonic() + within_s
        while True:
            try:
                return self._socket.recv(_CHUNK_BYTES)
            except BlockingIOError:
                self._await(select.POLLIN, until_s)
            except OSError as error:
                raise Ended("client gone") from error

    def write(self, content: bytes) -> None:
        """See ``ByteStream``."""
        left = memoryview(content)
        until_s = time.monotonic() + self._stall_s
        while left:
            try:
                count = self._socket.send(left)
            except BlockingIOError:
                try:
                    self._await(select.POLLOUT, until_s)
                except TimeoutError:
                    raise Ended("stalled") from None
                continue
            except OSError as error:
                raise Ended("client gone") from error
            left = left[count:]
            self.sent += count
            until_s = time.monotonic() + self._stall_s

    def _await(self, event: int, until_s: float) -> None:
        poll = select.poll()
        poll.register(self._socket, event)
        while True:
            now_s = time.monotonic()
            if now_s >= self._next_sample_s:
                self._on_sample()
                self._next_sample_s = now_s + SAMPLE_PERIOD_S
                if self._stop():
                    raise Ended("stopped")
            if now_s >= until_s:
                raise TimeoutError
            if poll.poll(1000 * max(0.0, min(self._next_sample_s, until_s) - now_s)):
                return


class Secure:
    """TLS over a wire, from its server's side. Ended when the peer's TLS is none."""

    def __init__(self, wire: Wire, context: ssl.SSLContext, within_s: float) -> None:
        self._wire = wire
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                self._flush()
                self._more(within_s)
            except ssl.SSLError as error:
                self._flush()
                raise Ended("client gone") from error
            else:
                self._flush()
                return

    def read(self, within_s: float) -> bytes:
        """See ``ByteStream``."""
        while True:
            try:
                return self._tls.read(_CHUNK_BYTES)
            except ssl.SSLWantReadError:
                self._flush()
                self._more(within_s)
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                return b""
            except ssl.SSLError as error:
                raise Ended("client gone") from error

    def write(self, content: bytes) -> None:
        """See ``ByteStream``."""
        for start in range(0, len(content), _CHUNK_BYTES):
            try:
                self._tls.write(content[start : start + _CHUNK_BYTES])
            except ssl.SSLError as error:
                raise Ended("client gone") from error
            self._flush()

    def _flush(self) -> None:
        if self._outgoing.pending:
            self._wire.write(self._outgoing.read())

    def _more(self, within_s: float) -> None:
        received = self._wire.read(within_s)
        if received:
            self._incoming.write(received)
        else:
            self._incoming.write_eof()
