"""Which modems of a probe are tested, those that discovery finds and those named on the command line; and what the tests saw of it, for
people and for whoever writes a driver."""

import platform
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tandem
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
    plugged = [one for one in modems(root) if one.collector_port]
    return named + [Place(slots.get(one.path, one.path), UsbPort(one.path, root), one) for one in plugged]


class Account:
    """Filled by the tests, printed at the end. Identities (IMEI, IMSI, ICCID) must have been removed by who fills it."""

    def __init__(self) -> None:
        self.modems: dict[str, dict[str, Any]] = defaultdict(dict)
        self.paths: dict[str, dict[str, Any]] = defaultdict(dict)

    def as_json(self) -> dict[str, Any]:
        return {"machine": machine(), "modems": dict(self.modems), "paths": dict(self.paths)}

    def lines(self) -> list[str]:
        """All of it but the dialogues."""
        told = [", ".join(f"{name} {value}" for name, value in machine().items() if value is not None)]
        for kind, found in (("modem", self.modems), ("path", self.paths)):
            for name, facts in found.items():
                told.append(f"{kind} {name}")
                told += [f"  {key}: {value}" for key, value in facts.items() if key != "transcript"]
        return told


def machine() -> dict[str, str | None]:
    """What it runs on. ``throttled``: the firmware's word (bit 0: too little voltage now, bit 16: since boot)."""
    model = Path("/proc/device-tree/model")
    return {
        "tandem": tandem.__version__,
        "model": model.read_text().rstrip("\0\n") if model.exists() else platform.machine(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "throttled": throttled(),
    }


def throttled() -> str | None:
    """``vcgencmd get_throttled``; None where there is none."""
    program = shutil.which("vcgencmd")
    if program is None:
        return None
    done = subprocess.run([program, "get_throttled"], capture_output=True, text=True, timeout=10, check=False)
    return done.stdout.strip() or None
