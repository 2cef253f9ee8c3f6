"""What passes through to the socket below, for what is used in a socket's place."""

from __future__ import annotations

import socket
from typing import overload


class Over:
    """Over ``raw``, whose address, options, blocking and time-outs are its own."""

    def __init__(self, raw: socket.socket) -> None:
        self._raw = raw

    def fileno(self) -> int:
        """The socket's."""
        return self._raw.fileno()

    def getpeername(self) -> tuple[str, int]:
        """The socket's, the first two parts."""
        host, port = self._raw.getpeername()[:2]
        return str(host), int(port)

    @overload
    def getsockopt(self, level: int, option: int) -> int: ...

    @overload
    def getsockopt(self, level: int, option: int, size: int) -> bytes: ...

    def getsockopt(self, level: int, option: int, size: int = 0) -> bytes | int:
        """The socket's."""
        return self._raw.getsockopt(level, option, size) if size else self._raw.getsockopt(level, option)

    def setsockopt(self, level: int, option: int, value: int | bytes) -> None:
        """The socket's."""
        self._raw.setsockopt(level, option, value)

    def setblocking(self, blocking: bool) -> None:
        """The socket's."""
        self._raw.setblocking(blocking)

    def settimeout(self, seconds: float | None) -> None:
        """The socket's."""
        self._raw.settimeout(seconds)
