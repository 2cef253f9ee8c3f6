"""Ask a modem over a serial port: one command at a time, with a deadline, whatever else arrives."""

from __future__ import annotations

import errno
import logging
import os
import select
import time
from collections.abc import Callable
from typing import Protocol

import serial

from tandem.at.dialogue import Dialogue, NoAnswer, PortLost, Response, Unsolicited
from tandem.at.grammar import Command, LineSplitter, is_unsolicited

log = logging.getLogger(__name__)

MARKER = Command("AT+CMEE?")
"""Asked after a missed deadline: its answer looks like no poll's, so what comes before it is late (27.007 clause 9.1)."""

MARKER_AGAIN_S = 1.5
"""When the marker itself is not answered for this long it is sent once more: a modem that was reset has lost the first."""

_ESCAPE = b"\x1b"  # declines a prompt, 27.005 clause 3.5.1
_CHUNK_BYTES = 4096
_CHUNKS_AT_ONCE = 64  # a port that never stops talking must not hold the caller beyond its deadline


class Port(Protocol):
    """What the channel needs of a port: a non-blocking descriptor. ``serial.Serial`` is one."""

    def fileno(self) -> int: ...

    def close(self) -> None: ...


def open_port(path: str) -> serial.Serial:
    """Open a serial port for ourselves alone (raw, 8N1); PortLost says why it cannot be opened.

    ``path`` may be a symbolic link; it is resolved at each call, so a port that came back under another number is found.
    """
    try:
        return serial.Serial(path, baudrate=115200, timeout=0, write_timeout=0, exclusive=True)
    except (OSError, ValueError) as error:
        raise PortLost(f"{path}: {error}") from error


class Channel:
    """One modem's AT port. Not safe for several threads at once.

    ``on_unsolicited`` gets what comes unasked, during an exchange or while listening, from the thread that reads. ``on_bytes`` gets
    all that is read, as it came. ``wake_fd`` is a descriptor that ends ``listen`` early when it becomes readable. Nothing spins and
    nothing sleeps: every wait is one ``poll`` of the kernel. A prompt is declined: we send no texts, and a modem that somebody else
    left waiting for one would take every command for its text.
    """

    def __init__(
        self,
        port: Port,
        on_unsolicited: Callable[[Unsolicited], None] | None = None,
        wake_fd: int | None = None,
        on_bytes: Callable[[bytes], None] | None = None,
    ) -> None:
        self._port = port
        self._fd = port.fileno()
        self._on_bytes = on_bytes
        self._wake_fd = wake_fd
        self._read_ns = time.monotonic_ns()
        self._splitter = LineSplitter()
        self._owed: tuple[str, ...] = ()
        self._settled = True
        self._marker: Dialogue | None = None
        self._marker_sent = 0.0
        self.on_unsolicited = on_unsolicited

    def close(self) -> None:
        """Close the port. A device that is already gone is closed all the same."""
        try:
            self._port.close()
        except OSError as error:
            if error.errno not in (errno.EIO, errno.ENODEV, errno.EBADF, errno.ENXIO):
                raise

    def fileno(self) -> int:
        return self._fd

    def ask(self, command: Command | str, deadline_s: float) -> Response:
        """Send one command line and wait for its final result, at most ``deadline_s`` from now.

        NoAnswer when the deadline passes, PortLost when the port goes away. After a NoAnswer the next call first makes sure
        that what the modem still owes is over; that time counts towards its deadline.
        """
        until = time.monotonic() + deadline_s
        requested = Command(command) if isinstance(command, str) else command
        self._read_waiting()
        try:
            self._settle(until)
        except NoAnswer:
            raise NoAnswer(f"{requested.text}: not sent, the modem is silent since an earlier command") from None
        dialogue = Dialogue(requested, self._owed, self._unasked)
        try:
            self._write(requested.text.encode("ascii", "replace") + b"\r", until)
            while True:
                waiting = self._lines(until)
                for i, line in enumerate(waiting):
                    response = dialogue.feed(line)
                    if response is not None:
                        self._owed = ()
                        for after in waiting[i + 1 :]:
                            self._idle_line(after)
                        return response
        except NoAnswer:
            self._owed = tuple(dict.fromkeys((*self._owed, *requested.prefixes)))
            self._settled = False
            raise NoAnswer(f"{requested.text}: no final result within {deadline_s:.1f} s") from None

    def listen(self, until: float) -> None:
        """Take what arrives unasked until ``time.monotonic()`` reaches ``until`` or ``wake_fd`` becomes readable."""
        while time.monotonic() < until and self._wait(until, select.POLLIN, wakeable=True):
            self._read_waiting()

    def _settle(self, until: float) -> None:
        """After a missed deadline wait for the marker's answer, behind which nothing old can follow."""
        if self._settled:
            return
        now = time.monotonic()
        if self._marker is None or now - self._marker_sent > MARKER_AGAIN_S:
            self._marker = Dialogue(MARKER, self._owed, self._unasked, wary=True)
            self._marker_sent = now
            self._write(MARKER.text.encode("ascii") + b"\r", until)
        while self._marker is not None:
            for line in self._lines(until):
                self._idle_line(line)

    def _idle_line(self, line: str) -> None:
        if self._marker is not None:
            if self._marker.feed(line) is not None:
                self._marker = None
                self._settled = True
                # A marker sent twice is answered twice: the second answer may still follow and is nobody else's.
                self._owed = MARKER.prefixes
            return
        if is_unsolicited(line, self._owed):
            self._unasked(line)

    def _unasked(self, line: str) -> None:
        if self.on_unsolicited is not None:
            try:
                self.on_unsolicited(Unsolicited(line, self._read_ns))
            except Exception:
                # Whatever the receiver does must not end the exchange in which the line happened to come.
                log.exception("an unsolicited line could not be handed over")

    def _lines(self, until: float) -> list[str]:
        """The lines of the next chunk; NoAnswer when none comes in time, also when noise never ends."""
        if time.monotonic() >= until or not self._wait(until, select.POLLIN):
            raise NoAnswer("deadline")
        return self._received()

    def _read_waiting(self) -> None:
        for _ in range(_CHUNKS_AT_ONCE):
            if not self._wait(0.0, select.POLLIN):
                return
            for line in self._received():
                self._idle_line(line)

    def _received(self) -> list[str]:
        """The lines that the next chunk completes; a prompt at its end is declined."""
        lines = self._splitter.feed(self._read())
        if self._splitter.take_prompt():
            try:
                os.write(self._fd, _ESCAPE)
            except BlockingIOError:
                pass  # it takes nothing in now; it will prompt again after the next command
            except OSError as error:
                raise PortLost(f"writing: {error.strerror}") from error
        return lines

    def _read(self) -> bytes:
        """What is there, after the kernel said that something is; PortLost at the end of the file or an error of the device."""
        try:
            chunk = os.read(self._fd, _CHUNK_BYTES)
        except BlockingIOError:
            return b""
        except OSError as error:
            raise PortLost(f"reading: {error.strerror}") from error
        if not chunk:
            raise PortLost("reading: the port was closed at the other end")
        self._read_ns = time.monotonic_ns()
        if self._on_bytes is not None:
            self._on_bytes(chunk)
        return chunk

    def _write(self, payload: bytes, until: float) -> None:
        while payload:
            try:
                payload = payload[os.write(self._fd, payload) :]
            except BlockingIOError:
                # A hung modem takes nothing in: its buffer is full.
                if not self._wait(until, select.POLLOUT):
                    raise NoAnswer("the port takes no more bytes") from None
            except OSError as error:
                raise PortLost(f"writing: {error.strerror}") from error

    def _wait(self, until: float, event: int, wakeable: bool = False) -> bool:
        """Whether the port is ready for ``event`` before ``until``. False too when woken."""
        poller = select.poll()
        poller.register(self._fd, event)
        if wakeable and self._wake_fd is not None:
            poller.register(self._wake_fd, select.POLLIN)
        ready = poller.poll(max(0.0, (until - time.monotonic()) * 1000))
        return any(fd == self._fd for fd, _ in ready) and not any(fd == self._wake_fd for fd, _ in ready)
