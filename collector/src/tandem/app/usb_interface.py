"""The network interface of the modem at a USB place, from sysfs. Ports keep their place under any enumeration order."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

DEVICES = Path("/sys/bus/usb/devices")

FindInterface = Callable[[str], str | None]
"""USB place (``1-1.2``, or with one of its interfaces ``1-1.2:1.4``) → name of a network interface; None while there is none."""


def find_interface(place: str, devices: Path = DEVICES) -> str | None:
    """See ``FindInterface``. Of several the first by number of the USB interface. One that is in another network namespace than the
    one in which sysfs was mounted is not seen."""
    holders = [devices / place] if ":" in place else sorted(devices.glob(f"{place}:*"), key=_by_number)
    return next((found.name for holder in holders for found in sorted(holder.glob("net/*"))), None)


def _by_number(holder: Path) -> tuple[int, str]:
    last = holder.name.rpartition(".")[2]
    return (int(last) if last.isdigit() else 0, holder.name)
