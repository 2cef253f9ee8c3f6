"""A body sent piece by piece: slowly if it has to be, broken off at once, and ended early when the answer comes before its end."""

from __future__ import annotations

import select
import socket
import ssl
import struct
import time
from collections.abc import Callable, Iterable

from tandem.export.gateway import Bound

_LOOK_S = 0.2
"""How often is asked whether it is to be broken off."""
_SO_MAX_PACING_RATE = 47
_UNSENT_BYTES, _LEAST_UNSENT_BYTES = 64 * 1024, 8 * 1024


class Interrupted(Exception):  # noqa: N818  no error: somebody said so
    """It was broken off, by its owner's wish."""


class Outgoing:
    """``length`` bytes out of ``pieces``. ``stopped`` is asked five times a second and says whether to break off: then the connection is
    reset, so that nothing of what the kernel still holds goes out. ``silent_s``: how long a connection may take nothing, or leave the
    whole body without an answer."""

    def __init__(
        self, length: int, pieces: Iterable[bytes], stopped: Callable[[], bool], silent_s: float = 15.0
    ) -> None:
        self._length, self._pieces, self._stopped, self._silent_s = length, pieces, stopped, silent_s
        self._looked_s = time.monotonic()

    def send(self, connection: Bound, method: str, url: str, headers: dict[str, str]) -> bool:
        """See ``gateway.Streamed``; Interrupted when ``stopped`` said so."""
        # What comes before the first answer may be TLS's own (session tickets); afterwards it is an answer.
        early = connection.answered
        connection.putrequest(method, url, skip_accept_encoding=True)
        for name, value in {**headers, "Content-Length": str(self._length)}.items():
            connection.putheader(name, value)
        connection.endheaders()
        sock = connection.sock
        waited_s = sock.gettimeout()
        sock.settimeout(0)
        try:
            for piece in self._pieces:
                if not self._put(sock, piece, early=early):
                    _reset_when_closed(sock)
                    return False
            self._await(sock)
            return True
        except Interrupted:
            _reset_when_closed(sock)
            raise
        finally:
            sock.settimeout(waited_s)

    def _put(self, sock: socket.socket, piece: bytes, *, early: bool) -> bool:
        """False when an answer came first."""
        rest, since_s = memoryview(piece), time.monotonic()
        while rest:
            try:
                rest = rest[sock.send(rest) :]
                since_s = time.monotonic()
                self._look()
                continue
            except (ssl.SSLWantWriteError, ssl.SSLWantReadError, BlockingIOError):
                pass
            readable, _, _ = select.select([sock] if early else [], [sock], [], _LOOK_S)
            if readable:
                return False
            self._look()
            if time.monotonic() - since_s > self._silent_s:
                raise TimeoutError("the connection takes nothing")
        return True

    def _await(self, sock: socket.socket) -> None:
        until_s = time.monotonic() + self._silent_s
        while not select.select([sock], [], [], _LOOK_S)[0]:
            self._look()
            if time.monotonic() > until_s:
                raise TimeoutError("no answer")

    def _look(self) -> None:
        now_s = time.monotonic()
        if now_s - self._looked_s >= _LOOK_S:
            self._looked_s = now_s
            if self._stopped():
                raise Interrupted


def _reset_when_closed(sock: socket.socket) -> None:
    """What the kernel still holds does not go out then."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def paced(rate_bit_per_s: int | None) -> Callable[[socket.socket], None]:
    """What makes a socket send at ``rate_bit_per_s`` at most (None: as fast as it can), evenly, as the kernel paces packets; and
    hold back little that was not sent yet, so that a break finds little underway."""

    def tune(sock: socket.socket) -> None:
        unsent = _UNSENT_BYTES
        if rate_bit_per_s is not None:
            sock.setsockopt(
                socket.SOL_SOCKET, _SO_MAX_PACING_RATE, struct.pack("@I", min(rate_bit_per_s // 8, 2**32 - 2))
            )
            unsent = max(_LEAST_UNSENT_BYTES, min(unsent, rate_bit_per_s // 8 // 4))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, unsent)

    return tune
