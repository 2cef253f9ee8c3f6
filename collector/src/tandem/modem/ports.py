"""The families' ``ports.toml``: which USB ids are whose, what their interfaces are for. Read and checked; touches no hardware."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, cast, get_args

Role = Literal["at", "at-second", "ppp", "nmea", "diagnostics", "network"]
ROLES: tuple[str, ...] = get_args(Role)
"""at: the first AT port, ModemManager's; at-second: the collector's; ppp, nmea, diagnostics: what they say; network: the data."""

_DEVICE_KEYS = ("vendor", "product", "models", "switched_from", "interface", "mode_switch", "address", "note")
_INTERFACE_KEYS = ("number", "class", "subclass", "protocol", "role", "note")
_MEND = "see Add a family in tandem/modem/README.md"


class PortsError(ValueError):
    """A ``ports.toml`` cannot be used: one line, ``FILE:LINE: what is wrong; mend: how``."""


@dataclass(frozen=True)
class InterfaceRule:
    """Which interface has ``role``: by its number, or by class, subclass and protocol (two hexadecimal digits each)."""

    role: Role
    number: int | None = None
    usb_class: str | None = None
    subclass: str | None = None
    protocol: str | None = None

    def fits(self, number: int, usb_class: str, subclass: str, protocol: str) -> bool:
        """Whether an interface that says this of itself is meant."""
        if self.number is not None and self.number != number:
            return False
        asked = ((self.usb_class, usb_class), (self.subclass, subclass), (self.protocol, protocol))
        return all(wanted is None or wanted == found for wanted, found in asked)


@dataclass(frozen=True)
class KnownDevice:
    """One ``[[device]]``. Ids are four lower-case hexadecimal digits. ``switched_from``: products that it is before its mode switch.

    ``mode_switch``: how it is switched, for people. ``address``: of its web server as it is sold, where it is a router by itself.
    """

    family: str
    vendor: str
    product: str
    models: tuple[str, ...]
    switched_from: tuple[str, ...]
    interfaces: tuple[InterfaceRule, ...]
    mode_switch: str | None = None
    note: str | None = None
    address: str | None = None

    @property
    def has_second_port(self) -> bool:
        """Whether one AT port can be the collector's and the other ModemManager's."""
        return any(rule.role == "at-second" for rule in self.interfaces)


@cache
def known_devices(folder: Path | None = None) -> tuple[KnownDevice, ...]:
    """Every family's devices, sorted by family, in their files' order. ``folder``: where the families' folders are."""
    here = Path(__file__).parent if folder is None else folder
    files = sorted(here.glob("*/ports.toml"))
    return tuple(device for file in files for device in read(file))


def read(file: Path) -> tuple[KnownDevice, ...]:
    """The devices of one file; PortsError for the first thing that is wrong. The family is the folder's name."""
    try:
        text = file.read_bytes().decode("utf-8")
        content = tomllib.loads(text)
    except OSError as error:
        raise PortsError(f"{file}:1: {error.strerror}; mend: {_MEND}") from error
    except UnicodeDecodeError as error:
        raise PortsError(f"{file}:1: is not UTF-8 text (byte {error.start}); mend: save it as UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"line (\d+)", str(error))
        number = found.group(1) if found else str(max(1, len(text.splitlines())))
        raise PortsError(f"{file}:{number}: no TOML: {str(error).partition(' (at')[0]}; mend that line") from error
    return _Reader(file, text).devices(content)


class _Reader:
    def __init__(self, file: Path, text: str) -> None:
        self._file = file
        self._lines = text.splitlines()
        heads = (n for n, line in enumerate(self._lines, 1) if re.match(r"\s*\[\[\s*device\s*\]\]", line))
        self._heads = (*heads, len(self._lines) + 1)

    def _fail(self, what: str, mend: str, device: int | None = None, key: str = "") -> PortsError:
        """``device``: its number from 0; ``key``: the one whose line is named, else the device's first line."""
        number = 1
        if device is not None and device + 1 < len(self._heads):
            number = self._heads[device]
            for at in range(number, self._heads[device + 1]):
                if key and re.match(rf"\s*{key}\s*=", self._lines[at - 1]):
                    number = at
                    break
        return PortsError(f"{self._file}:{number}: {what}; mend: {mend}")

    def devices(self, content: dict[str, Any]) -> tuple[KnownDevice, ...]:
        """All of them."""
        for key in content:
            if key != "device":
                raise self._fail(f"unknown table or key {key!r}", "only [[device]] is known")
        listed = content.get("device")
        if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
            raise self._fail("there is no list of devices", "begin each with [[device]]; none at all is device = []")
        found = tuple(self._device(i, one) for i, one in enumerate(listed))
        for i, one in enumerate(found):
            if (one.vendor, one.product) in {(other.vendor, other.product) for other in found[:i]}:
                raise self._fail(f"{one.vendor}:{one.product} is listed twice", "make one device of both", i, "product")
        return found

    def _device(self, i: int, content: dict[str, Any]) -> KnownDevice:
        for key in content:
            if key not in _DEVICE_KEYS:
                raise self._fail(f"unknown key {key!r}", f"known are {', '.join(_DEVICE_KEYS)}", i, re.escape(key))
        vendor, product = (self._id(i, key, content.get(key)) for key in ("vendor", "product"))
        models = content.get("models")
        if not isinstance(models, list) or not models or not all(isinstance(m, str) and m for m in models):
            raise self._fail("models is no list of names", 'write models = ["EC25"]', i, "models")
        before = content.get("switched_from", [])
        if not isinstance(before, list):
            raise self._fail(
                f"switched_from: {before!r} is no list", 'write switched_from = ["15cd"]', i, "switched_from"
            )
        rules = content.get("interface")
        if not isinstance(rules, list) or not all(isinstance(r, dict) for r in rules):
            mend = 'write interface = [{ number = 2, role = "at" }]; none at all is interface = []'
            raise self._fail("interface is no list of tables", mend, i, "interface")
        for key in ("mode_switch", "address", "note"):
            if not isinstance(content.get(key, ""), str):
                raise self._fail(f"{key}: {content[key]!r} is not text", "write it in quotes", i, key)
        return KnownDevice(
            self._file.parent.name,
            vendor,
            product,
            tuple(models),
            tuple(self._id(i, "switched_from", one) for one in before),
            tuple(self._rule(i, rule) for rule in rules),
            content.get("mode_switch"),
            content.get("note"),
            content.get("address"),
        )

    def _rule(self, i: int, content: dict[str, Any]) -> InterfaceRule:
        for key in content:
            if key not in _INTERFACE_KEYS:
                raise self._fail(
                    f"interface: unknown key {key!r}", f"known are {', '.join(_INTERFACE_KEYS)}", i, "interface"
                )
        role, number = content.get("role"), content.get("number")
        if role not in ROLES:
            raise self._fail(f"interface: role {role!r} is none", f"roles are {', '.join(ROLES)}", i, "interface")
        if number is not None and (isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= 255):
            raise self._fail(f"interface: number {number!r} is none of 0 to 255", "as bInterfaceNumber", i, "interface")
        codes = [content.get(key) for key in ("class", "subclass", "protocol")]
        for code in codes:
            if code is not None and not (isinstance(code, str) and re.fullmatch(r"[0-9a-f]{2}", code)):
                mend = 'two lower-case hexadecimal digits in quotes, as in class = "ff"'
                raise self._fail(f"interface: {code!r} is no class, subclass or protocol", mend, i, "interface")
        if number is None and codes[0] is None:
            mend = "add number, or class and protocol"
            raise self._fail(f"interface: nothing says which is {role}", mend, i, "interface")
        return InterfaceRule(cast(Role, role), number, *codes)

    def _id(self, i: int, key: str, value: object) -> str:
        if not isinstance(value, str) or not re.fullmatch(r"[0-9a-f]{4}", value):
            mend = 'four lower-case hexadecimal digits in quotes, as in "2c7c"'
            raise self._fail(f"{key}: {value!r} is no USB id", mend, i, key)
        return value


def claims(known: Sequence[KnownDevice], vendor: str, product: str) -> tuple[KnownDevice, ...]:
    """The known devices with these ids; several families may claim them."""
    return tuple(one for one in known if (one.vendor, one.product) == (vendor, product))


def awaiting_switch(known: Sequence[KnownDevice], vendor: str, product: str) -> tuple[KnownDevice, ...]:
    """What a stick with these ids becomes once it is switched to be a modem."""
    return tuple(one for one in known if one.vendor == vendor and product in one.switched_from)
