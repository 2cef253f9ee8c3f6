"""A modem's AT port as an abstract Unix socket: how ModemManager's test interface reaches a modem that has no terminal."""

from __future__ import annotations

import contextlib
import fcntl
import selectors
import socket
import struct
import termios
from collections.abc import Callable

from tandem_bench.modem.port import READ_BYTES, PortError

OVERHEAD_BYTES = 16384
"""The kernel counts a send queue with its own bookkeeping, near a thousand bytes for each line of an answer."""


class SocketPort:
    """Listens on the abstract name ``name``; one caller at a time, whose hang-up leaves the modem plugged in.

    ``received`` gets the bytes; reading is driven by ``selector``. PortError when the name is taken.
    """

    def __init__(self, name: str, selector: selectors.BaseSelector, received: Callable[[bytes], None]) -> None:
        self._name, self._selector, self._received = name, selector, received
        self._listening: socket.socket | None = None
        self._caller: socket.socket | None = None

    def attach(self) -> None:
        """Be there to be called."""
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listening.bind(b"\0" + self._name.encode())
        except OSError as error:
            listening.close()
            raise PortError(f"abstract socket {self._name}: {error.strerror}; give another --socket") from None
        listening.listen(1)
        listening.setblocking(False)
        self._selector.register(listening, selectors.EVENT_READ, self._accept)
        self._listening = listening

    def detach(self) -> None:
        """Drop off: the caller sees a hang-up, the name is gone."""
        self._hang_up()
        if self._listening is not None:
            self._selector.unregister(self._listening)
            self._listening.close()
            self._listening = None

    def close(self) -> None:
        """As ``detach``."""
        self.detach()

    def write(self, sent: bytes) -> None:
        """Send; what does not fit, or has nobody to hear it, is lost."""
        if self._caller is not None:
            with contextlib.suppress(BlockingIOError, ConnectionError):
                self._caller.send(sent)

    def unread(self) -> int:
        """Bytes that a caller who does not read leaves in the socket; 0 up to a few answers' worth."""
        if self._caller is None:
            return 0
        queued = int(struct.unpack("i", fcntl.ioctl(self._caller, termios.TIOCOUTQ, b"\0" * 4))[0])
        return queued if queued > OVERHEAD_BYTES else 0

    def _accept(self) -> None:
        if self._listening is None:
            return
        caller, _ = self._listening.accept()
        # The newest caller is the one that lives: a killed ModemManager's successor must not wait for the kernel.
        self._hang_up()
        caller.setblocking(False)
        self._selector.register(caller, selectors.EVENT_READ, self._read)
        self._caller = caller

    def _read(self) -> None:
        if self._caller is None:
            return
        try:
            received = self._caller.recv(READ_BYTES)
        except BlockingIOError:
            return
        except ConnectionError:
            received = b""
        if received:
            self._received(received)
        else:
            self._hang_up()

    def _hang_up(self) -> None:
        if self._caller is not None:
            self._selector.unregister(self._caller)
            self._caller.close()
            self._caller = None
