"""A pseudo-terminal that behaves as the AT port of a USB modem does, under a name that stays."""

from __future__ import annotations

import contextlib
import fcntl
import os
import selectors
import struct
import termios
import tty
from collections.abc import Callable
from pathlib import Path

READ_BYTES = 4096


class PortError(OSError):
    """No pseudo-terminal, or the name cannot be made; the message is one line with the mend."""


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
