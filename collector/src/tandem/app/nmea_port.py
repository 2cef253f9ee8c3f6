"""A modem's NMEA port, found from its AT port: both are interfaces of one USB device, and ``ports.toml`` tells their roles."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

ROLE = "nmea"


def nmea_port(at_port: str, sys: Path = Path("/sys"), dev: Path = Path("/dev")) -> str | None:
    """The device of the NMEA port now, None when the modem is not there, is no USB device, or no such port of it is known."""
    try:
        # …/usbN/N-1/N-1:1.2/ttyUSB2 (usb-serial) or …/N-1:1.2 (cdc-acm): the interface is the first that has a number.
        place = (sys / "class" / "tty" / Path(at_port).resolve().name / "device").resolve(strict=True)
        interface = next(p for p in (place, *place.parents) if (p / "bInterfaceNumber").exists())
        device = interface.parent
        ids = tuple((device / name).read_text().strip().lower() for name in ("idVendor", "idProduct"))
        for candidate in sorted(device.glob(f"{device.name}:*")):
            if _is_nmea(ids, candidate):
                for tty in sorted(candidate.glob("tty*")):
                    name = next((p.name for p in sorted(tty.iterdir())), None) if tty.name == "tty" else tty.name
                    if name is not None:
                        return str(dev / name)
    except (OSError, StopIteration):
        return None  # not there, or going away while we look
    return None


def _is_nmea(ids: tuple[str, ...], interface: Path) -> bool:
    for row in _rows():
        products = row["product"] if isinstance(row["product"], list) else [row["product"]]
        if (str(row["vendor"]).lower(), ids[1]) != ids or ids[1] not in (str(p).lower() for p in products):
            continue
        for told in row.get("interface", ()):
            if told.get("role") != ROLE:
                continue
            if "number" in told:
                if int((interface / "bInterfaceNumber").read_text(), 16) == told["number"]:
                    return True
            elif all(
                (interface / file).read_text().strip().lower() == str(told[key]).lower()
                for key, file in (("class", "bInterfaceClass"), ("protocol", "bInterfaceProtocol"))
                if key in told
            ):
                return True
    return False


@cache
def _rows() -> tuple[dict[str, Any], ...]:
    return tuple(_read())


def _read() -> Iterator[dict[str, Any]]:
    for family in sorted(resources.files("tandem.modem").iterdir(), key=lambda entry: entry.name):
        ports = family / "ports.toml"
        if family.is_dir() and ports.is_file():
            yield from tomllib.loads(ports.read_text(encoding="utf-8")).get("device", ())
