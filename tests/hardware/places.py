"""Which modems are tested: those that discovery finds, and those named on the command line."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tandem.app.config import Config
from tandem.modem.session import Access, DevicePort, UsbPort
from tandem.modem.usb import FoundModem, modems


class PlacesError(ValueError):
    """An option that cannot be understood."""


@dataclass(frozen=True)
class Place:
    """One modem. ``found`` None: it was named by its port."""

    name: str
    access: Access
    found: FoundModem | None

    def there(self) -> bool:
        """Whether it has a port now."""
        try:
            self.access.look()
        except OSError:
            return False
        return True


def places(ports: Sequence[str], root: Path, config: Config | None) -> list[Place]:
    """Named ports first, then what is plugged in and has an AT port."""
    named = []
    for text in ports:
        name, sign, device = text.partition("=")
        if not sign or not name or not device:
            raise PlacesError(f"--port {text}: write NAME=DEVICE, as in a=/dev/ttyUSB2")
        named.append(Place(name, DevicePort(device), None))
    slots = {
        path.modem.usb.partition(":")[0]: path.name
        for path in (config.paths if config is not None else ())
        if path.modem is not None and path.modem.usb is not None
    }
    plugged = [
        Place(slots.get(one.path, one.path), UsbPort(one.path, root), one) for one in modems(root) if one.collector_port
    ]
    return named + plugged
