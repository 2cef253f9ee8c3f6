"""The two highest steps of the recovery ladder: reset a modem's USB device, and cut its port's power."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from tandem.modem.discovery import USB_PATH, place_of
from tandem.modem.steps import CannotStepError, StepFailedError

USBDEVFS_RESET = 0x5514
"""``_IO('U', 20)`` of linux/usbdevice_fs.h."""

OFF_S = 2
"""How long the power is away; modems with large capacitors need more than one second."""

UNAUTHORIZED_S = 1.0
UHUBCTL_S = 30.0


@dataclass(frozen=True)
class UsbPlace:
    """Where a modem is plugged in: ``path`` as the kernel names it, ``1-1.2``. ``hub`` and ``port`` as uhubctl wants them."""

    path: str

    @property
    def hub(self) -> str:
        """``1-1`` for ``1-1.2``; ``1`` (a root hub) for ``1-2``."""
        return self.path.rpartition("." if "." in self.path else "-")[0]

    @property
    def port(self) -> str:
        """The port of that hub."""
        return self.path.rpartition("." if "." in self.path else "-")[2]


def usb_place(port: str, sys: Path = Path("/sys")) -> UsbPlace | None:
    """The place of the modem that owns a device file (or a link to one) or a network interface, or that is named by USB or sysfs
    path. None when it is no USB device or not there."""
    named = port.rpartition("/")[2] if port.startswith("/sys/") or "/" not in port else ""
    path = named if USB_PATH.match(named) else place_of(port, sys)
    return None if path is None else UsbPlace(path)


def usb_reset(place: UsbPlace, sys: Path = Path("/sys"), dev: Path = Path("/dev")) -> str:
    """Have the device enumerated anew: by its device file, else by taking its authorisation away for a second. CannotStepError when
    it is not plugged in or neither may be written; StepFailedError."""
    folder = sys / "bus/usb/devices" / place.path
    try:
        bus, number = (int((folder / name).read_text()) for name in ("busnum", "devnum"))
    except (OSError, ValueError) as error:
        raise CannotStepError(f"no USB device at {place.path}") from error
    file = dev / "bus/usb" / f"{bus:03d}" / f"{number:03d}"
    try:
        opened = os.open(file, os.O_WRONLY | os.O_CLOEXEC)
    except OSError as error:
        return _authorise(folder / "authorized", f"{file}: {error.strerror}")
    try:
        fcntl.ioctl(opened, USBDEVFS_RESET, 0)
    except OSError as error:
        if error.errno != 19:  # ENODEV: it came back as another device, which is as good
            raise StepFailedError(f"{place.path}: USB reset: {error.strerror}") from error
    finally:
        os.close(opened)
    return f"USB device {place.path} reset"


def _authorise(file: Path, before: str) -> str:
    try:
        file.write_text("0")
    except OSError as error:
        raise CannotStepError(f"{before}; {file}: {error.strerror}") from error
    time.sleep(UNAUTHORIZED_S)
    try:
        file.write_text("1")
    except OSError as error:
        raise StepFailedError(f"{file}: {error.strerror}") from error
    return f"USB device {file.parent.name} unauthorised and authorised"


def port_power(place: UsbPlace) -> str:
    """Off and on by uhubctl. CannotStepError when that is missing, may not, or the hub cannot switch this port alone."""
    program = shutil.which("uhubctl") or shutil.which("uhubctl", path="/usr/sbin:/sbin")
    if program is None:
        raise CannotStepError("uhubctl is not installed")
    seen = _uhubctl([program, "-l", place.hub])
    if not switches_alone(seen.stdout, place.hub):
        told = next(
            (line.strip() for line in (seen.stdout + seen.stderr).splitlines() if line.strip()), "says nothing of it"
        )
        raise CannotStepError(f"hub {place.hub} cannot switch one port's power: {told}")
    done = _uhubctl([program, "-a", "cycle", "-d", str(OFF_S), "-l", place.hub, "-p", place.port])
    if done.returncode != 0:
        told = next((line.strip() for line in done.stderr.splitlines() if line.strip()), f"status {done.returncode}")
        raise StepFailedError(f"uhubctl: {told}")
    return f"power of hub {place.hub} port {place.port} off and on"


def switches_alone(listing: str, hub: str) -> bool:
    """Whether uhubctl's list has the hub with per-port switching: a ganged one would take the other modem's power too."""
    for line in listing.splitlines():
        match = re.match(r"Current status for hub (\S+) \[(.*)\]", line)
        if match and match.group(1) == hub:
            return "ppps" in re.split(r"[ ,]+", match.group(2))
    return False


def _uhubctl(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            arguments, capture_output=True, text=True, errors="replace", timeout=UHUBCTL_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise StepFailedError(f"uhubctl did not end within {UHUBCTL_S:.0f} s") from error
    except OSError as error:
        raise CannotStepError(f"{arguments[0]}: {error.strerror}") from error
