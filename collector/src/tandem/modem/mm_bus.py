"""What of D-Bus is needed to ask ModemManager: the only module that knows a D-Bus library (jeepney)."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jeepney import DBusAddress, HeaderFields, MessageFlag, MessageType, new_method_call
from jeepney.io.blocking import open_dbus_connection

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


BUS = "org.freedesktop.DBus"
RULES = (
    f"type='signal',sender='{SERVICE}',path_namespace='{ROOT}'",
    f"type='signal',sender='{BUS}',member='NameOwnerChanged',arg0='{SERVICE}'",
)
_ERRORS = (OSError, EOFError, ValueError)
"""A socket that went away; an address that is none."""


class Bus:
    """One connection to the system bus, for one thread. Calls are begun and their outcomes picked up later, so that slow ones hold up
    nothing. ``wake_fd`` readable ends a wait. BusLost when there is no bus."""

    def __init__(self, wake_fd: int, address: str = "SYSTEM") -> None:
        self._wake_fd = wake_fd
        self._replies: dict[int, Any] = {}
        self._awaited: set[int] = set()
        self._signals: list[Signal] = []
        try:
            self._connection = open_dbus_connection(address)
        except (*_ERRORS, RuntimeError, KeyError) as error:
            raise BusLost(f"no system bus: {error}") from error
        for rule in RULES:
            number = self._send(DBusAddress("/org/freedesktop/DBus", BUS, BUS), "AddMatch", "s", (rule,))
            self._awaited.discard(number)  # a bus that refuses a rule only costs promptness

    def begin(self, call: Call) -> int:
        """Send; the number by which its outcome is asked for. BusLost."""
        return self._send(
            DBusAddress(call.path, SERVICE, call.interface), call.member, call.signature or None, call.body
        )

    def _send(self, to: DBusAddress, member: str, signature: str | None, body: tuple[Any, ...]) -> int:
        message = new_method_call(to, member, signature, body)
        # Whether ModemManager runs is systemd's and the user's choice: asking must not start it.
        message.header.flags = MessageFlag.no_auto_start
        number: int = next(self._connection.outgoing_serial)
        try:
            self._connection.send_message(message, serial=number)
        except _ERRORS as error:
            raise BusLost(f"the bus hung up: {error}") from error
        self._awaited.add(number)
        return number

    def outcome(self, number: int) -> Any | Refused | None:  # noqa: ANN401 - a reply is of whatever type its method has
        """The reply's one value without variants (``()`` when it has none), a Refused, or None while there is no reply."""
        found = self._replies.pop(number, None)
        if found is not None:
            self._awaited.discard(number)
        return found

    def forget(self, number: int) -> None:
        """Drop the reply when it comes."""
        self._awaited.discard(number)
        self._replies.pop(number, None)

    def wait(self, until: float) -> bool:
        """Take in what arrives, up to the first message or ``time.monotonic() == until`` or being woken; whether there was one."""
        if self._take():
            return True
        ready, _, _ = select.select([self._connection.sock, self._wake_fd], [], [], max(0.0, until - time.monotonic()))
        return self._connection.sock in ready and self._take()

    def signals(self) -> Sequence[Signal]:
        taken, self._signals = self._signals, []
        return taken

    def close(self) -> None:
        self._connection.close()

    def _take(self) -> bool:
        """One message that is there already."""
        try:
            message = self._connection.receive(timeout=0)
        except TimeoutError:
            return False
        except _ERRORS as error:
            raise BusLost(f"the bus hung up: {error}") from error
        fields = message.header.fields
        kind = message.header.message_type
        if kind is MessageType.signal:
            path, interface = fields.get(HeaderFields.path, ""), fields.get(HeaderFields.interface, "")
            self._signals.append(Signal(path, interface, fields.get(HeaderFields.member, ""), message.body))
            return True
        number = fields.get(HeaderFields.reply_serial)
        if number in self._awaited:
            if kind is MessageType.error:
                text = str(message.body[0]) if message.body else ""
                self._replies[number] = Refused(fields.get(HeaderFields.error_name, ""), text)
            else:
                signature = fields.get(HeaderFields.signature, "")
                self._replies[number] = plain(signature, message.body[0]) if message.body else ()
        return True


def system_bus(wake_fd: int) -> Bus:
    """The bus that ``DBUS_SYSTEM_BUS_ADDRESS`` names, else the machine's."""
    return Bus(wake_fd, os.environ.get("DBUS_SYSTEM_BUS_ADDRESS", "SYSTEM"))


def plain(signature: str, value: Any) -> Any:  # noqa: ANN401 - any value that D-Bus can carry
    """``value`` of the D-Bus type ``signature`` with its variants opened."""
    if signature == "v":
        return plain(*value)
    if signature.startswith("a{"):
        return {key: plain(signature[3:-1], one) for key, one in value.items()}
    if signature.startswith("a") and signature != "ay":
        return [plain(signature[1:], one) for one in value]
    return value


def get_all(path: str, interface: str) -> Call:
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
