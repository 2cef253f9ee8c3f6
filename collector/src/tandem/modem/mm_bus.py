"""What the ModemManager back-end needs of a message bus, and the names that it calls there. No D-Bus library is imported here."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

SERVICE = "org.freedesktop.ModemManager1"
ROOT = "/org/freedesktop/ModemManager1"
MODEM = f"{SERVICE}.Modem"
MODEM_3GPP = f"{MODEM}.Modem3gpp"
PROFILES = f"{MODEM_3GPP}.ProfileManager"
SIGNAL = f"{MODEM}.Signal"
LOCATION = f"{MODEM}.Location"
SIMPLE = f"{MODEM}.Simple"
SIM = f"{SERVICE}.Sim"
BEARER = f"{SERVICE}.Bearer"
PROPERTIES = "org.freedesktop.DBus.Properties"
OBJECTS = "org.freedesktop.DBus.ObjectManager"


class BusError(Exception):
    """Anything that goes wrong between the collector and ModemManager."""


class BusLost(BusError):  # noqa: N818 - a state of the world, named as the field names it
    """No bus there, or it hung up."""


class NoReply(BusError):  # noqa: N818 - as above
    """The reply did not come in time."""


class Refused(BusError):  # noqa: N818 - as above
    """An error reply. ``name``: of the D-Bus error; ``text``: for people."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"{name}: {text}")
        self.name, self.text = name, text

    @property
    def no_service(self) -> bool:
        """Nobody owns the name: ModemManager does not run."""
        return self.name.endswith((".ServiceUnknown", ".NameHasNoOwner"))

    @property
    def no_such_thing(self) -> bool:
        """The object or the interface is not (or no longer) there."""
        return self.name.endswith((".UnknownObject", ".UnknownMethod", ".UnknownInterface", ".InvalidArgs"))

    @property
    def never(self) -> bool:
        """Asking again is of no use: this modem cannot do it."""
        return self.no_such_thing or self.name.endswith(".Unsupported")

    @property
    def by_modem(self) -> bool:
        """The modem itself refused: it is alive."""
        return ".Error.MobileEquipment." in self.name or ".Error.Message." in self.name

    @property
    def denied(self) -> bool:
        """The bus or polkit does not allow it to this user."""
        return self.name.endswith((".AccessDenied", ".Unauthorized"))


@dataclass(frozen=True)
class Call:
    """A method call to ModemManager. ``body`` as the D-Bus ``signature`` says; variants are pairs (signature, value)."""

    path: str
    interface: str
    member: str
    signature: str = ""
    body: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Signal:
    """A broadcast of ModemManager or of the bus."""

    path: str
    interface: str
    member: str
    body: tuple[Any, ...]


class Bus(Protocol):
    """One connection, for one thread. Calls are begun and their outcomes picked up later, so that slow ones hold up nothing."""

    def begin(self, call: Call) -> int:
        """Send; the number by which its outcome is asked for. BusLost."""
        ...

    def outcome(self, number: int) -> Any | Refused | None:  # noqa: ANN401 - a reply is of whatever type its method has
        """The reply's one value without variants (``()`` when it has none), a Refused, or None while there is no reply."""
        ...

    def forget(self, number: int) -> None:
        """Drop the reply when it comes."""
        ...

    def wait(self, until: float) -> bool:
        """Take in what arrives, up to the first message or ``time.monotonic() == until`` or being woken; whether there was one."""
        ...

    def signals(self) -> Sequence[Signal]:
        """Those taken in since the last time."""
        ...

    def close(self) -> None:
        """Hang up."""
        ...


def get_all(path: str, interface: str) -> Call:
    """All properties of an interface."""
    return Call(path, PROPERTIES, "GetAll", "s", (interface,))


def gather(bus: Bus, calls: Sequence[Call], until: float) -> list[Any]:
    """Begin all, wait for all: values, or a Refused where one was refused. NoReply when one is not answered by ``until``."""
    numbers = [bus.begin(call) for call in calls]
    found: dict[int, Any] = {}
    while len(found) < len(numbers):
        for number in numbers:
            if number not in found and (outcome := bus.outcome(number)) is not None:
                found[number] = outcome
        if len(found) < len(numbers) and not bus.wait(until) and time.monotonic() >= until:
            late = [call for call, number in zip(calls, numbers, strict=True) if number not in found]
            for number in numbers:
                bus.forget(number)
            raise NoReply(f"{late[0].interface}.{late[0].member}: no reply in time")
    return [found[number] for number in numbers]


def ask(bus: Bus, call: Call, until: float) -> Any:  # noqa: ANN401 - as Bus.outcome
    """One call and its value; Refused when it is refused."""
    outcome = gather(bus, [call], until)[0]
    if isinstance(outcome, Refused):
        raise outcome
    return outcome
