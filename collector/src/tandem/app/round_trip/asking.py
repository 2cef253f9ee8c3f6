"""The socket of one path: questions out, answers in with the kernel's stamp."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from dataclasses import dataclass

from tandem.stream.arrival import arrival_ns, stamp

_LONGEST = 2048


@dataclass(frozen=True, slots=True)
class Way:
    """Where questions leave and where they go. ``address``: the interface's own, which the kernel binds a connected socket to: with
    another one it takes another socket."""

    interface: str
    address: str | None
    server: tuple[str, int]


@dataclass(frozen=True, slots=True)
class Heard:
    """One datagram and its arrival, CLOCK_MONOTONIC ns."""

    raw: bytes
    arrived_ns: int


class Asking:
    """By one thread. ``refused`` is set when the server's host said that nobody listens there (ICMP), until somebody takes it back."""

    def __init__(self) -> None:
        self._way: Way | None = None
        self._socket: socket.socket | None = None
        self.refused = False

    def fileno(self) -> int:
        """For select; -1 while there is no socket."""
        return -1 if self._socket is None else self._socket.fileno()

    def send(self, raw: bytes, way: Way) -> bool:
        """Send over ``way``; False when this machine could not: no interface, no address, no route."""
        try:
            made = self._made(way)
            try:
                made.send(raw)
            except ConnectionRefusedError:  # the answer to an earlier one, told now; this one was not sent
                self.refused = True
                made.send(raw)
        except OSError:
            self.close()  # an interface that comes back is another one
            return False
        return True

    def hear(self) -> Iterator[Heard]:
        """What lies there."""
        while self._socket is not None:
            try:
                raw, ancillary, _, _ = self._socket.recvmsg(_LONGEST, 256)
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno == errno.ECONNREFUSED:
                    self.refused = True
                    continue
                self.close()
                return
            yield Heard(raw, arrival_ns(ancillary))

    def close(self) -> None:
        """Give the socket up; what is under way to it is not heard."""
        if self._socket is not None:
            self._socket.close()
        self._socket = self._way = None

    def _made(self, way: Way) -> socket.socket:
        if self._socket is not None and self._way == way:
            return self._socket
        self.close()
        made = socket.socket(socket.AF_INET6 if ":" in way.server[0] else socket.AF_INET, socket.SOCK_DGRAM)
        try:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, way.interface.encode() + b"\0")
            stamp(made)
            made.setblocking(False)
            made.connect(way.server)
        except OSError:
            made.close()
            raise
        self._socket, self._way = made, way
        return made
