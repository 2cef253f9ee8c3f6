"""What a USB gadget is to be, and whether a controller has room for it. Data only; nothing is touched here."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from typing import Literal

from tandem_bench import BenchError

Kind = Literal["acm", "ecm", "ncm"]


class GadgetError(BenchError):
    """The gadget cannot be; the message is one line with the hint."""


@dataclass(frozen=True, slots=True)
class Endpoints:
    """A number of endpoints in each direction, beside endpoint 0, as the host names them: IN is towards the host."""

    into_host: int
    out_of_host: int

    def __str__(self) -> str:
        return f"{self.into_host} IN and {self.out_of_host} OUT"


NEEDS: dict[Kind, Endpoints] = {
    # Each of them has a notification endpoint (interrupt, IN) beside its two bulk ones.
    "acm": Endpoints(2, 1),
    "ecm": Endpoints(2, 1),
    "ncm": Endpoints(2, 1),
}
"""Endpoints of one function (USB CDC 1.2, 3.4 and ECM120, NCM10)."""

CONTROLLERS: dict[str, Endpoints] = {
    # Raspberry Pi Zero to 4: the controller's eight FIFOs towards the host, one of them endpoint 0's.
    "dwc2": Endpoints(7, 7),
}
"""What a controller has, by its driver's name. One that is not here is asked by binding to it: dummy_hcd's took four
ACM ports and a network function (10 IN, 5 OUT) on Debian 12's kernel."""


@dataclass(frozen=True, slots=True)
class Function:
    """One function: ``acm`` is a serial port, ``ecm`` and ``ncm`` are network devices. ``instance``: its name in configfs."""

    kind: Kind
    instance: str

    @property
    def folder(self) -> str:
        """As configfs names it."""
        return f"{self.kind}.{self.instance}"


@dataclass(frozen=True, slots=True)
class Ids:
    """Who the device says it is."""

    vendor: int
    product: int
    manufacturer: str
    model: str


UBLOX_TOBY_L200 = Ids(0x1546, 0x1143, "u-blox AG", "u-blox Modem")
"""A TOBY-L200's in its ECM composition, borrowed for the lab: ModemManager then uses the network function. Never let such a device leave
the lab."""

GENERIC = Ids(0x1D6B, 0x0104, "Tandem Bench", "GM-4 LTE")
"""The Linux Foundation's for multifunction composite gadgets; ModemManager connects such a modem by PPP on its AT port."""

PROFILES = {"ublox": UBLOX_TOBY_L200, "generic": GENERIC}
"""By the family of the AT dialogue."""


@dataclass(frozen=True, slots=True)
class Gadget:
    """One USB device: two AT ports, the first for ModemManager and the second for the collector, and a network function.

    ``name``: folder in configfs. ``host_mac``: what the host's network device gets; ``device_mac``: ours. ``interface``: name of
    our network device, with ``%d`` for the kernel's number.
    """

    name: str
    ids: Ids
    serial: str
    host_mac: str
    device_mac: str
    functions: tuple[Function, ...] = (Function("acm", "a0"), Function("acm", "a1"), Function("ecm", "e0"))
    interface: str = "gad%d"
    max_power_ma: int = 500

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,30}", self.name):
            raise GadgetError(f"gadget name {self.name!r}: use letters, digits, '-' and '_', at most 31")
        folders = [function.folder for function in self.functions]
        if not folders or len(set(folders)) != len(folders):
            raise GadgetError(f"gadget {self.name}: its functions must have different names, at least one")

    @property
    def endpoints(self) -> Endpoints:
        """What its functions need together."""
        needs = [NEEDS[function.kind] for function in self.functions]
        return Endpoints(sum(n.into_host for n in needs), sum(n.out_of_host for n in needs))

    @property
    def ports(self) -> tuple[Function, ...]:
        """Its serial ports, in the order in which the host numbers them."""
        return tuple(function for function in self.functions if function.kind == "acm")

    @property
    def network(self) -> Function | None:
        """Its network function; None when it has none."""
        return next((function for function in self.functions if function.kind != "acm"), None)


def gadget_of(name: str, ids: Ids, seed: int, *, ports: int = 2) -> Gadget:
    """A gadget whose serial number and addresses follow from its name and ``seed``; locally administered addresses."""
    chance = random.Random(f"gadget {name} {seed}")
    host, device = (f"02{chance.randrange(1 << 40):010x}" for _ in range(2))
    functions = (*(Function("acm", f"a{number}") for number in range(ports)), Function("ecm", "e0"))
    return Gadget(name, ids, f"{chance.randrange(1 << 40):010X}", _mac(host), _mac(device), functions)


def _mac(digits: str) -> str:
    return ":".join(digits[at : at + 2] for at in range(0, 12, 2))


def fits(gadget: Gadget, driver: str) -> None:
    """GadgetError when a controller with this driver has too few endpoints. A driver not known here may try."""
    has, needs = CONTROLLERS.get(driver), gadget.endpoints
    if has is not None and (needs.into_host > has.into_host or needs.out_of_host > has.out_of_host):
        raise GadgetError(
            f"gadget {gadget.name} needs {needs} endpoints, the controller {driver} has {has}; hint: fewer AT ports or no network"
        )
