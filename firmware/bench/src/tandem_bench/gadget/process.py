"""One modem on USB as a process: gadget, two AT ports (our ends, /dev/ttyGSn) and their surroundings around one ``UsbModem``."""

from __future__ import annotations

import contextlib
import fcntl
import os
import selectors
import struct
import termios
import tty
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from tandem_bench.gadget.description import GadgetError
from tandem_bench.gadget.device import Device
from tandem_bench.gadget.modem import UsbModem
from tandem_bench.modem.process import Setup, Surroundings, modem

READ_BYTES = 4096
REOPEN_S = 0.1


class Terminal:
    """Our end of a gadget's serial port: raw, and opened anew after every unplugging; from ``open`` to ``close``. ``received`` gets the
    bytes; reading is driven by ``selector``. ``later`` runs a call after some seconds: after a hang-up the port is opened again then."""

    def __init__(
        self,
        path: Path,
        selector: selectors.BaseSelector,
        received: Callable[[bytes], None],
        later: Callable[[float, Callable[[], None]], None],
    ) -> None:
        self._path, self._selector, self._received, self._later = path, selector, received, later
        self._fd: int | None = None
        self._closed = False

    def open(self) -> None:
        """GadgetError when it cannot be opened."""
        try:
            self._open()
        except OSError as error:
            raise GadgetError(
                f"{self._path}: {error.strerror}; hint: modprobe usb_f_acm, and let udev make /dev/ttyGS*"
            ) from None

    def _open(self) -> None:
        fd = os.open(self._path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            # A hang-up brings back the terminal's settings as delivered: it would echo what the host says.
            tty.setraw(fd)
        except (OSError, termios.error):
            os.close(fd)
            raise
        self._fd = fd
        self._selector.register(fd, selectors.EVENT_READ, self._read)

    def close(self) -> None:
        """Give it back. Safe to call twice."""
        self._closed = True
        self._drop()

    def write(self, sent: bytes) -> None:
        """Send; what does not fit, or comes while the port is hung up, is lost, as in a modem's."""
        if self._fd is not None:
            with contextlib.suppress(OSError):  # hung up just now: the read side notices and opens it again
                os.write(self._fd, sent)

    def unread(self) -> int:
        """Bytes sent that the controller has not yet taken; the host's own buffers are not seen from here."""
        if self._fd is None:
            return 0
        try:
            return int(struct.unpack("i", fcntl.ioctl(self._fd, termios.TIOCOUTQ, b"\0" * 4))[0])
        except OSError:
            return 0  # hung up

    def _read(self) -> None:
        if self._fd is None:
            return
        try:
            received = os.read(self._fd, READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            received = b""  # EIO: hung up
        if received:
            self._received(received)
            return
        self._drop()
        self._later(REOPEN_S, self._reopen)

    def _reopen(self) -> None:
        if self._closed or self._fd is not None:
            return
        try:
            self._open()
        except (OSError, termios.error):
            self._later(REOPEN_S, self._reopen)

    def _drop(self) -> None:
        fd, self._fd = self._fd, None
        if fd is not None:
            self._selector.unregister(fd)
            os.close(fd)


def run(radio: Setup, device: Device, netns_pid: int | None, ready: Callable[[str], None]) -> int:
    """Be that modem until SIGTERM or SIGINT, whose number is returned. ``radio``: as for a modem on a pseudo-terminal, its ``link`` not
    looked at. ``netns_pid``: a process in the network namespace that gets our network device; None: it stays where it is. ``ready`` is
    called with the name of that device (or ``-``) when the modem is plugged in and answers.

    GadgetError and ControlError when the environment refuses; the gadget is taken away in any case. Main thread only.
    """
    with ExitStack() as stack:
        around = Surroundings(radio, stack)
        device.make()
        stack.callback(device.remove)

        def hand_on(number: int, received: bytes) -> None:
            usb.ports[number].received(received)

        terminals = [
            Terminal(path, around.selector, partial(hand_on, number), around.later)
            for number, path in enumerate(device.terminals())
        ]
        for terminal in terminals:
            stack.callback(terminal.close)
            terminal.open()
        usb = UsbModem(
            radio.family, modem(radio), radio.timeline, terminals, device, around.agenda, around.clock, around.chance, around.note
        )  # fmt: skip
        rrc = {"connected": lambda: usb.connected(True), "idle": lambda: usb.connected(False)}
        around.control(usb.play, {"rrc": rrc, "usb": {"unplug": usb.pull, "plug": usb.put}})
        usb.start()
        interface = device.interface() if netns_pid is None else device.move_interface(netns_pid)
        around.plan(usb.play)
        ready(interface or "-")
        return around.serve()
