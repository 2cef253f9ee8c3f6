"""What is plugged in: sysfs → modems with their drivers, ports and network interfaces, and udev rules, by the families' devices.

Reads files only, opens no port. A modem's identity is its place, the USB path (``1-1.2``: bus 1, port 1, port 2 of the hub there),
with the interface's number: ttyUSB numbers change whenever something connects, and sticks of one model may share MAC
address and serial number."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from tandem.modem.base import KnownDevice, Role
from tandem.modem.families import drivers


@cache
def known_devices() -> tuple[KnownDevice, ...]:
    """Every family's devices, by family."""
    return tuple(replace(one, family=driver.name) for driver in drivers().values() for one in driver.devices)


def claims(known: Sequence[KnownDevice], vendor: str, product: str) -> tuple[KnownDevice, ...]:
    """The known devices with these ids; several families may claim them."""
    return tuple(one for one in known if (one.vendor, one.product) == (vendor, product))


def awaiting_switch(known: Sequence[KnownDevice], vendor: str, product: str) -> tuple[KnownDevice, ...]:
    """What a stick with these ids becomes once it is switched to be a modem."""
    return tuple(one for one in known if one.vendor == vendor and product in one.switched_from)


SYS = Path("/sys")
USB_PATH = re.compile(r"[0-9]{1,4}-[0-9]{1,3}(?:\.[0-9]{1,3}){0,6}\Z")
"""A USB path as the kernel names it (bus, then the port at each hub)."""

USB_PORT = re.compile(r"([0-9]{1,4}-[0-9]{1,3}(?:\.[0-9]{1,3}){0,6})(?::[0-9]{1,3}\.([0-9]{1,3}))?\Z")
"""A USB path, or one interface of it: ``1-1.2:1.3`` is interface 3 (in configuration 1)."""

_STORAGE = "08"
_HUB = "09"


@dataclass(frozen=True)
class UsbInterface:
    """One interface of the active configuration. ``ports``: names in /dev; ``networks``: names of network interfaces."""

    number: int
    usb_class: str
    protocol: str
    ports: tuple[str, ...]
    networks: tuple[str, ...]

    @property
    def serial_port(self) -> str | None:
        return next((port for port in self.ports if port.startswith("tty")), None)


@dataclass(frozen=True)
class UsbDevice:
    """One device with its ids (four hexadecimal digits) and what it calls itself. Its serial number is not read."""

    path: str
    vendor: str
    product: str
    manufacturer: str | None
    name: str | None
    interfaces: tuple[UsbInterface, ...]


@dataclass(frozen=True)
class ModemPort:
    """A port of a modem. ``role`` None: nothing is known of it."""

    name: str
    interface: int
    role: Role | None


@dataclass(frozen=True)
class FoundModem:
    """A modem that is plugged in. ``drivers``: the families that claim its ids, ``generic`` when it only looks like a modem.

    ``collector_role``: the role of the port that the collector asks at: the second AT port where the family knows of one, else the
    only one. ``mode_switch``: None, or why it is no modem yet: it stands there as storage and waits for its mode switch.
    ``web_address``: of its web server, where it is a router by itself.
    """

    path: str
    vendor: str
    product: str
    models: tuple[str, ...]
    drivers: tuple[str, ...]
    ports: tuple[ModemPort, ...]
    networks: tuple[str, ...]
    manufacturer: str | None = None
    name: str | None = None
    mode_switch: str | None = None
    collector_role: Role = "at"
    web_address: str | None = None

    def port(self, role: str) -> str | None:
        """The device name of the first serial port with this role."""
        return next((p.name for p in self.ports if p.role == role and p.name.startswith("/dev/tty")), None)

    @property
    def collector_port(self) -> str | None:
        """The port that the collector asks at. While a modem with two comes up, None rather than ModemManager's."""
        return self.port(self.collector_role)


def usb_devices(root: Path = SYS) -> tuple[UsbDevice, ...]:
    """Every USB device but hubs, in the order of their paths. One that vanishes while it is read is left out."""
    folder = root / "bus" / "usb" / "devices"
    names = sorted(_children(folder))
    found = (_device(folder / name, names) for name in names if USB_PATH.match(name))
    return tuple(
        sorted((one for one in found if one is not None), key=lambda one: list(map(int, re.split(r"[-.]", one.path))))
    )


def modems(root: Path = SYS, known: Sequence[KnownDevice] | None = None) -> tuple[FoundModem, ...]:
    """The modems among them: those that a family claims, sticks that wait for their mode switch, and what looks like a modem."""
    table = known_devices() if known is None else known
    found = (_modem(device, table) for device in usb_devices(root))
    return tuple(one for one in found if one is not None)


def find(usb: str, role: str, root: Path = SYS, known: Sequence[KnownDevice] | None = None) -> str | None:
    """The present device name (``/dev/ttyUSB3``) of the port with ``role`` at a USB path; None when there is none.

    ``at-second`` is the collector's port, which on a modem with a single AT port is that one. ``usb`` may name the interface
    (``1-1.2:1.3``); then that is the port, whatever its role.
    """
    wanted = USB_PORT.match(usb)
    if wanted is None:
        return None
    device = _device_at(wanted.group(1), root)
    if device is None:
        return None
    if wanted.group(2) is not None:
        ports = (i.serial_port for i in device.interfaces if i.number == int(wanted.group(2)))
        return next((f"/dev/{port}" for port in ports if port), None)
    modem = _modem(device, known_devices() if known is None else known)
    if modem is None:
        return None
    return modem.collector_port if role == "at-second" else modem.port(role)


def network_interface(usb: str, root: Path = SYS) -> str | None:
    """The present name of the network interface at a USB path (``wwan0``, ``eth1``); the first when there are several, None when
    there is none. ``usb`` may name the USB interface (``1-1.2:1.4``). For any USB network device, modem or not."""
    wanted = USB_PORT.match(usb)
    device = _device_at(wanted.group(1), root) if wanted else None
    if wanted is None or device is None:
        return None
    number = wanted.group(2)
    mine = (i for i in device.interfaces if number is None or i.number == int(number))
    return next((name for i in mine for name in i.networks), None)


def place_of(port: str, root: Path = SYS) -> str | None:
    """The USB path of the device that owns a device file, a link to one, or a network interface; None when that is not there or no
    USB device."""
    name = Path(os.path.realpath(port)).name
    for kind in ("tty", "usbmisc", "net"):
        device = root / "class" / kind / name / "device"
        if device.exists():
            for folder in (device.resolve(), *device.resolve().parents):
                if (folder / "devnum").exists() and USB_PATH.match(folder.name):
                    return folder.name
    return None


def beside(port: str, role: str, root: Path = SYS, known: Sequence[KnownDevice] | None = None) -> str | None:
    """The present device name of the port with ``role`` of the modem that owns the device file ``port``; None as ``find``."""
    place = place_of(port, root)
    return None if place is None else find(place, role, root, known)


def _device_at(path: str, root: Path) -> UsbDevice | None:
    """One device alone: this is asked before every poll."""
    folder = root / "bus" / "usb" / "devices"
    return _device(folder / path, sorted(_children(folder)))


def _device(folder: Path, names: Sequence[str]) -> UsbDevice | None:
    vendor, product = _text(folder / "idVendor"), _text(folder / "idProduct")
    if vendor is None or product is None or _text(folder / "bDeviceClass") == _HUB:
        return None
    mine = sorted(name for name in names if name.startswith(f"{folder.name}:"))
    interfaces = (_interface(folder.parent / name) for name in mine)
    return UsbDevice(
        folder.name,
        vendor.lower(),
        product.lower(),
        _text(folder / "manufacturer"),
        _text(folder / "product"),
        tuple(sorted((i for i in interfaces if i is not None), key=lambda i: i.number)),
    )


def _interface(folder: Path) -> UsbInterface | None:
    number = _text(folder / "bInterfaceNumber")
    if number is None or not re.fullmatch(r"[0-9a-fA-F]{1,2}", number):
        return None
    usb_class, protocol = ((_text(folder / f"bInterface{name}") or "").lower() for name in ("Class", "Protocol"))
    ports = sorted({*_children(folder), *_children(folder / "tty"), *_children(folder / "usbmisc")})
    return UsbInterface(
        int(number, 16),
        usb_class,
        protocol,
        tuple(port for port in ports if re.match(r"(?:ttyUSB|ttyACM|cdc-wdm)[0-9]+\Z", port)),
        tuple(sorted(_children(folder / "net"), key=lambda name: (len(name), name))),
    )


def _children(folder: Path) -> Iterator[str]:
    try:
        yield from [entry.name for entry in folder.iterdir()]
    except OSError:
        return


def _text(file: Path) -> str | None:
    """An attribute's text without control characters; None when it cannot be read."""
    try:
        raw = file.read_bytes()
    except OSError:
        return None
    text = "".join(c for c in raw.decode("utf-8", "replace") if c.isprintable()).strip()
    return text or None


def _modem(device: UsbDevice, known: Sequence[KnownDevice]) -> FoundModem | None:
    claimed = claims(known, device.vendor, device.product)
    storage = bool(device.interfaces) and all(i.usb_class == _STORAGE for i in device.interfaces)
    # Some sticks keep their ids when they are switched: what they show tells.
    waiting = awaiting_switch(known, device.vendor, device.product) if storage or not claimed else ()
    if not claimed and not waiting and not _looks_like_a_modem(device):
        return None
    ports = [ModemPort(f"/dev/{port}", i.number, _role(claimed, i)) for i in device.interfaces for port in i.ports]
    return FoundModem(
        device.path,
        device.vendor,
        device.product,
        tuple(dict.fromkeys(model for one in (*claimed, *waiting) for model in one.models)),
        tuple(dict.fromkeys(one.family for one in (*claimed, *waiting))) or ("generic",),
        tuple(ports),
        tuple(name for i in device.interfaces for name in i.networks),
        device.manufacturer,
        device.name,
        _waits(waiting) if waiting else None,
        "at-second" if any(one.has_second_port for one in claimed) else "at",
        next((one.address for one in claimed if one.address), None),
    )


def _role(claimed: Sequence[KnownDevice], interface: UsbInterface) -> Role | None:
    keys: list[int | str] = [interface.number, *([interface.protocol] if interface.usb_class == "ff" else [])]
    return next((one.roles[key] for one in claimed for key in keys if key in one.roles), None)


def _waits(becomes: Sequence[KnownDevice]) -> str:
    ids = ", ".join(dict.fromkeys(f"{one.vendor}:{one.product}" for one in becomes))
    how = next((one.mode_switch for one in becomes if one.mode_switch), "install usb_modeswitch and its data")
    return f"stands there as storage and waits for its mode switch to {ids}: {how}"


def _looks_like_a_modem(device: UsbDevice) -> bool:
    """A control channel of QMI or MBIM; two serial ports; or a serial port beside a network interface. One serial port alone is
    more often a GPS receiver or a cable."""
    ports = [port for i in device.interfaces for port in i.ports]
    serial = [port for port in ports if port.startswith("tty")]
    networks = any(i.networks for i in device.interfaces)
    return len(serial) < len(ports) or len(serial) >= 2 or (bool(serial) and networks)


# --- udev rules: who opens which port, stable names for them, no autosuspend. Pure text ---------------------------------

_HEAD = """\
# Made by `tandem modem udev` from the families' tables of USB ids; install as /etc/udev/rules.d/78-tandem-modems.rules.
# The second AT port is the collector's (ModemManager leaves it alone), the first ModemManager's. /dev/tandem/<USB path>-at is
# the port that the collector asks at, whatever its ttyUSB number: the place tells modems apart, never MAC or serial number.

ACTION=="remove", GOTO="tandem_modems_end"

# The interface's own numbers, for the rules below: udev wants all ATTRS of one rule on one and the same parent.
SUBSYSTEMS=="usb", ATTRS{bInterfaceNumber}=="?*", ENV{.TANDEM_NUMBER}="$attr{bInterfaceNumber}"
SUBSYSTEMS=="usb", ATTRS{bInterfaceNumber}=="?*", ENV{.TANDEM_CODES}="\
$attr{bInterfaceClass}/$attr{bInterfaceSubClass}/$attr{bInterfaceProtocol}"
"""

_TAIL = 'LABEL="tandem_modems_end"\n'


def rules(known: Sequence[KnownDevice]) -> str:
    """The rules file. The same devices give the same text; ids that several families claim are written once, the first's."""
    once: dict[tuple[str, str], KnownDevice] = {}
    for device in known:
        once.setdefault((device.vendor, device.product), device)
    blocks = [_block(once[ids]) for ids in sorted(once)]
    return "\n".join((_HEAD, *blocks, _TAIL))


def _block(device: KnownDevice) -> str:
    ids = f'ATTRS{{idVendor}}=="{device.vendor}", ATTRS{{idProduct}}=="{device.product}"'
    lines = [
        f"# {device.family}: {', '.join(' '.join(model.split()) for model in device.models)}",
        'ACTION=="add", SUBSYSTEM=="usb", ENV{DEVTYPE}=="usb_device", '
        + ids.replace("ATTRS", "ATTR")
        + ', TEST=="power/control", ATTR{power/control}="on"',
    ]
    ours = "at-second" if device.has_second_port else "at"
    for key, role in device.roles.items():
        link = {ours: "at", "nmea": "nmea"}.get(role)
        if link is not None:
            which = f'NUMBER}}=="{key:02x}"' if isinstance(key, int) else f'CODES}}=="ff/*/{key}"'
            ignore = ', ENV{ID_MM_PORT_IGNORE}="1"' if role == "at-second" else ""
            lines.append(f'SUBSYSTEM=="tty", {ids}, ENV{{.TANDEM_{which}{ignore}, SYMLINK+="tandem/$id-{link}"')
    return "\n".join(lines) + "\n"
