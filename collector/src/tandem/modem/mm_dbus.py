"""The system bus by jeepney: the only module that knows a D-Bus library."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Sequence
from typing import Any

from jeepney import DBusAddress, HeaderFields, MessageFlag, MessageType, new_method_call
from jeepney.io.blocking import open_dbus_connection

from tandem.modem.mm_bus import ROOT, SERVICE, BusLost, Call, Refused, Signal

BUS = "org.freedesktop.DBus"
RULES = (
    f"type='signal',sender='{SERVICE}',path_namespace='{ROOT}'",
    f"type='signal',sender='{BUS}',member='NameOwnerChanged',arg0='{SERVICE}'",
)
_ERRORS = (OSError, EOFError, ValueError)
"""A socket that went away; an address that is none."""


class SystemBus:
    """One connection to the system bus. ``wake_fd`` readable ends a wait. BusLost when there is no bus."""

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
        """See ``mm_bus.Bus``."""
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

    def outcome(self, number: int) -> Any | Refused | None:  # noqa: ANN401 - as in mm_bus.Bus
        """See ``mm_bus.Bus``."""
        found = self._replies.pop(number, None)
        if found is not None:
            self._awaited.discard(number)
        return found

    def forget(self, number: int) -> None:
        """See ``mm_bus.Bus``."""
        self._awaited.discard(number)
        self._replies.pop(number, None)

    def wait(self, until: float) -> bool:
        """See ``mm_bus.Bus``."""
        if self._take():
            return True
        ready, _, _ = select.select([self._connection.sock, self._wake_fd], [], [], max(0.0, until - time.monotonic()))
        return self._connection.sock in ready and self._take()

    def signals(self) -> Sequence[Signal]:
        """See ``mm_bus.Bus``."""
        taken, self._signals = self._signals, []
        return taken

    def close(self) -> None:
        """See ``mm_bus.Bus``."""
        self._connection.close()

    def fileno(self) -> int:
        """The socket's descriptor."""
        return int(self._connection.sock.fileno())

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


def system_bus(wake_fd: int) -> SystemBus:
    """The bus that ``DBUS_SYSTEM_BUS_ADDRESS`` names, else the machine's."""
    return SystemBus(wake_fd, os.environ.get("DBUS_SYSTEM_BUS_ADDRESS", "SYSTEM"))


def plain(signature: str, value: Any) -> Any:  # noqa: ANN401 - any value that D-Bus can carry
    """``value`` of the D-Bus type ``signature`` with its variants opened."""
    if signature == "v":
        return plain(*value)
    if signature.startswith("a{"):
        return {key: plain(signature[3:-1], one) for key, one in value.items()}
    if signature.startswith("a") and signature != "ay":
        return [plain(signature[1:], one) for one in value]
    return value
