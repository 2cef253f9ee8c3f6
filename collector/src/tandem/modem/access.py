"""How a modem is reached: a device or a link to one, a place on the USB bus, or the web server of a stick."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from tandem.at.channel import Channel, open_port
from tandem.at.dialogue import Response
from tandem.at.errors import PortLost
from tandem.modem.discovery import SYS, USB_PORT, find
from tandem.modem.http_transport import WebChannel, web_address


class Conversation(Protocol):
    """What both channels can do; see ``at.channel.Channel`` and ``http_transport.WebChannel``."""

    def ask(self, command: str, deadline_s: float) -> Response: ...

    def listen(self, until: float) -> None: ...

    def close(self) -> None: ...


class Access(Protocol):
    """Where a modem is. ``name``: for people."""

    @property
    def name(self) -> str: ...

    def look(self) -> str:
        """Where it is now, a device's name or an address; PortLost when it is not there."""
        ...

    def open(self, where: str, wake_fd: int | None) -> Conversation:
        """Open what ``look`` found; PortLost when that cannot be."""
        ...

    def moved(self, channel: Conversation, where: str) -> bool:
        """Whether ``where`` is another device by now than the one that ``channel`` is open at."""
        ...


class DevicePort:
    """A device, or a symbolic link to one, which is resolved whenever it is opened."""

    def __init__(self, path: str) -> None:
        self.name = path

    def look(self) -> str:
        """Itself."""
        _there(self.name)
        return self.name

    def open(self, where: str, wake_fd: int | None) -> Channel:
        """Open it for ourselves alone."""
        return Channel(open_port(where), wake_fd=wake_fd)

    def moved(self, channel: Conversation, where: str) -> bool:
        """A link that was moved leads to another device."""
        there = _there(where)
        if not isinstance(channel, Channel) or not stat.S_ISCHR(there.st_mode):
            return False
        opened = os.fstat(channel.fileno())
        return (opened.st_rdev, opened.st_ino) != (there.st_rdev, there.st_ino)


class UsbPlace(DevicePort):
    """The collector's port of the modem at a USB path (``1-1.2``), or of one of its interfaces (``1-1.2:1.3``), whatever the
    system calls it now."""

    def __init__(self, usb: str, root: Path = SYS) -> None:
        if USB_PORT.match(usb) is None:
            raise ValueError(f"{usb!r} is no USB path as 1-1.2 or 1-1.2:1.3")
        super().__init__(f"usb {usb}")
        self._usb, self._root = usb, root

    def look(self) -> str:
        """Its present device name."""
        found = find(self._usb, "at-second", self._root)
        if found is None:
            raise PortLost(
                f"{self.name}: there is no AT port of a known modem; mend: tandem modem list shows what is plugged in; of one"
                " without an AT port to spare ModemManager can be asked: port = modemmanager: and its place"
            )
        return found


Interface = str | Callable[[], str | None] | None
"""A network interface: its name, or what tells its present name (None: whichever the routes lead to)."""


class WebServer:
    """The web server of a stick, by its interface."""

    def __init__(self, url: str, interface: Interface = None) -> None:
        web_address(url)
        self.name = url
        self._interface = interface

    def look(self) -> str:
        """Its address: whether it is there shows when it is asked."""
        return self.name

    def open(self, where: str, wake_fd: int | None) -> WebChannel:
        """Nothing is sent yet."""
        interface = self._interface() if callable(self._interface) else self._interface
        return WebChannel(where, interface, wake_fd)

    def moved(self, channel: Conversation, where: str) -> bool:  # noqa: ARG002 - as Access has it
        """Whether another interface leads to it by now."""
        interface = self._interface() if callable(self._interface) else self._interface
        return isinstance(channel, WebChannel) and channel.interface != interface


def access(port: str | None, usb: str | None = None, interface: Interface = None) -> Access:
    """What a configuration's ``port`` or ``usb`` names; ValueError when it is neither or both."""
    if (port is None) == (usb is None):
        raise ValueError("name either a port or a USB path")
    if usb is not None:
        return UsbPlace(usb)
    if port is not None and port.startswith("http://"):
        return WebServer(port, interface)
    return DevicePort(str(port))


def _there(path: str) -> os.stat_result:
    try:
        return Path(path).stat()
    except OSError as error:
        raise PortLost(f"{path}: {error.strerror}") from error
