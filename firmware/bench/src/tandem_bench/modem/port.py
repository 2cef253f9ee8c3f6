"""A modem's AT port: a pseudo-terminal that behaves as that of a USB modem does, under a name that stays; or an abstract Unix socket."""

from __future__ import annotations

import contextlib
import fcntl
import os
import selectors
import socket
import struct
import termios
import tty
from collections.abc import Callable
from pathlib import Path

READ_BYTES = 4096
OVERHEAD_BYTES = 16384
"""The kernel counts a send queue with its own bookkeeping, near a thousand bytes for each line of an answer."""


class PortError(OSError):
    """No pseudo-terminal, or the name cannot be made; the message is one line with the hint."""


class Port:
    """A pseudo-terminal in raw mode, and a symbolic link to it that is replaced atomically.

    The other side is kept open here too: a modem stays plugged in when nobody has its port open, and a master whose other
    side is closed would report a hang-up without end. ``received`` gets the bytes; reading is driven by ``selector``.
    """

    def __init__(
        self, link: Path, mode: int, selector: selectors.BaseSelector, received: Callable[[bytes], None]
    ) -> None:
        self._link, self._mode, self._selector, self._received = link, mode, selector, received
        self._pair: tuple[int, int] | None = None
        self._spare: tuple[int, int] | None = None
        if not link.parent.is_dir():
            raise PortError(f"{link}: its folder does not exist; make it first")
        if link.exists() and not link.is_symlink():
            raise PortError(f"{link}: exists and is no symbolic link; give another --link")

    def attach(self) -> None:
        """Open (or take the one kept ready) and point the link at it. PortError when the system refuses."""
        self._pair = self._spare or self._open()
        self._spare = None
        self._selector.register(self._pair[0], selectors.EVENT_READ, self._read)
        fresh = self._link.with_name(f".{self._link.name}.{os.getpid()}")
        try:
            fresh.unlink(missing_ok=True)
            fresh.symlink_to(os.ttyname(self._pair[1]))
            fresh.replace(self._link)
        except OSError as error:
            raise PortError(f"{self._link}: {error.strerror}; give a --link that can be written") from None

    def detach(self) -> None:
        """Remove the link and close: whoever has the port open sees a hang-up."""
        if self._pair is None:
            return
        # The next one is opened before this one is given back, or the kernel would hand out the same number again.
        self._spare = self._open()
        self._unlink()
        self._shut(self._pair)
        self._pair = None

    def close(self) -> None:
        """Remove the link and give everything back."""
        if self._pair is not None:
            self._unlink()
            self._shut(self._pair)
        if self._spare is not None:
            for end in self._spare:
                os.close(end)
        self._pair = self._spare = None

    def write(self, sent: bytes) -> None:
        """Send; what does not fit into the terminal's buffer is lost, as in a modem's."""
        if self._pair is not None:
            with contextlib.suppress(BlockingIOError):
                os.write(self._pair[0], sent)

    def unread(self) -> int:
        """Bytes sent that nobody has read yet."""
        if self._pair is None:
            return 0
        return int(struct.unpack("i", fcntl.ioctl(self._pair[1], termios.FIONREAD, b"\0" * 4))[0])

    def _open(self) -> tuple[int, int]:
        try:
            ours, theirs = os.openpty()
        except OSError as error:
            raise PortError(
                f"no pseudo-terminal: {error.strerror}; see /proc/sys/kernel/pty/max and /dev/pts"
            ) from None
        tty.setraw(theirs)
        os.fchmod(theirs, self._mode)
        os.set_blocking(ours, False)
        return ours, theirs

    def _read(self) -> None:
        if self._pair is None:
            return
        try:
            received = os.read(self._pair[0], READ_BYTES)
        except BlockingIOError:
            return
        self._received(received)

    def _shut(self, pair: tuple[int, int]) -> None:
        self._selector.unregister(pair[0])
        for end in pair:
            os.close(end)

    def _unlink(self) -> None:
        """Remove the link if it is still ours: another modem may have taken the name."""
        if (
            self._pair is not None
            and self._link.is_symlink()
            and str(self._link.readlink()) == os.ttyname(self._pair[1])
        ):
            self._link.unlink()


class SocketPort:
    """How ModemManager's test interface reaches a modem that has no terminal: listens on the abstract name ``name``; one caller at a time,
    whose hang-up leaves the modem plugged in.

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
