"""The kernel's path managers: which of our addresses one uses, whom it leaves subflows to, its events, the commands that it takes.

``PathManager`` is the one in Linux since 5.6, through ``ip mptcp``; ``kernel_v094`` has that of the v0.9x kernel. A connection keeps
the path manager that the sysctl named when its socket was made (``choose``): the kernel's own takes no orders, and cannot open again
a subflow to an address that the peer announced once.
Events and commands are generic netlink, ``linux/mptcp_pm.h`` (events in the kernel since 5.12, commands since 5.19), and take
CAP_NET_ADMIN. Python's pyroute2 of bookworm and trixie (0.7) knows endpoints and limits only, so both are decoded here.
"""

from __future__ import annotations

import ipaddress
import socket
import struct
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from tandem.mptcp import sysctls
from tandem.mptcp.iproute import IpError, ip, ip_json, program
from tandem.mptcp.netlink import (
    NetlinkError,
    Subscription,
    attribute,
    command,
    generic,
    generic_socket,
    messages,
    nested,
    number,
)

MOST = 8
"""Paths, as many as the kernel takes endpoints."""
ENDPOINTS = 101
"""The endpoint of path ``i``, from 0, has this id and ``i`` more: a range of our own."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One of our addresses, from which the kernel opens a subflow of each connection. ``id`` 1 to 255."""

    id: int
    address: str
    interface: str | None


class PathManager:
    """The in-kernel path manager of Linux 5.6 and later, and the base of the other kernel's. Every call raises ``IpError`` when the
    kernel refuses."""

    name = "upstream"

    def __init__(self) -> None:
        self._backup: set[int] = set()
        self._limits_before: tuple[int, int] | None = None
        self._lock = threading.Lock()
        """An endpoint made anew while it is made active again must not keep the order: the two come from different threads."""

    def endpoints(self) -> dict[int, Endpoint]:
        """All endpoints of this network namespace by id, whoever made them."""
        found = {}
        for row in ip_json("mptcp", "endpoint", "show"):
            if "address" in row and "id" in row:
                number = int(row["id"])
                found[number] = Endpoint(number, str(row["address"]), row.get("dev"))
        return found

    def add(self, endpoint: Endpoint) -> None:
        """Make the endpoint; running connections get a subflow from it at once."""
        device = ("dev", endpoint.interface) if endpoint.interface else ()
        with self._lock:
            flags = ("subflow", "backup") if endpoint.id in self._backup else ("subflow",)
            ip("mptcp", "endpoint", "add", endpoint.address, *device, "id", str(endpoint.id), *flags)

    def remove(self, number: int) -> None:
        """Delete the endpoint; running connections close their subflow from it."""
        ip("mptcp", "endpoint", "delete", "id", str(number))

    def limits(self) -> tuple[int, int]:
        """Further subflows that a connection may have, and addresses of the peer that are accepted."""
        # Not as JSON, which iproute2 6.1 does not have for limits: "add_addr_accepted 0 subflows 2".
        text = ip("mptcp", "limits", "show")
        words = text.split()
        row = dict(zip(words[0::2], words[1::2], strict=False))
        try:
            return int(row["subflows"]), int(row["add_addr_accepted"])
        except (KeyError, ValueError) as error:
            raise IpError(f"ip mptcp limits: {text.strip()!r} is not understood") from error

    def raise_limits(self, subflows: int, accepted: int) -> None:
        """To these at least, until ``restore``."""
        now = self.limits()
        wanted = max(now[0], subflows), max(now[1], accepted)
        if wanted != now:
            self._set_limits(*wanted)
            self._limits_before = self._limits_before or now

    def _set_limits(self, subflows: int, accepted: int) -> None:
        ip("mptcp", "limits", "set", "subflow", str(subflows), "add_addr_accepted", str(accepted))

    def only_endpoints(self, interfaces: Collection[str]) -> None:
        """Of all ``interfaces`` that there are, have connections use those of the endpoints only: this kernel uses no other address."""

    def set_backup(self, number: int, backup: bool) -> None:
        """Tell the peers of running connections by MP_PRIO that the endpoint's subflows are backup, or no longer; kept when ``add`` makes
        the endpoint anew. From any thread."""
        # An order that changes nothing sends nothing.
        with self._lock:
            self._backup.discard(number)  # an order that is refused is not kept: nobody would take it back
            ip("mptcp", "endpoint", "change", "id", str(number), "backup" if backup else "nobackup")
            if backup:
                self._backup.add(number)

    def undo_backup(self, number: int) -> list[str]:
        """The command that takes ``set_backup`` back without this program; empty where nothing has to be."""
        return [program(), "mptcp", "endpoint", "change", "id", str(number), "nobackup"]

    def restore(self) -> None:
        """At the end: put back what was changed beside endpoints."""
        if self._limits_before is not None:
            self._set_limits(*self._limits_before)
            self._limits_before = None


_SYSCTLS = (("net.mptcp.path_manager", "kernel", "userspace"), ("net.mptcp.pm_type", "0", "1"))
"""Sysctl, its value for the kernel's path manager, its value for ours; the first that the kernel has is used."""


class ChoiceError(RuntimeError):
    """It cannot be chosen; the message says why."""


def choose(userspace: bool) -> bool:
    """Leave new connections' subflows to us, or to the kernel; whether that was changed by it. ChoiceError when it cannot be: a kernel
    before 5.19, or no CAP_NET_ADMIN."""
    for name, kernels, mine in _SYSCTLS:
        now = sysctls.read([name])[name]
        if now is None:
            continue
        wanted = mine if userspace else kernels
        error = None if now == wanted else sysctls.apply({name: wanted})[name].error
        if error is not None:
            raise ChoiceError(f"{name}: {error}")
        return now != wanted
    raise ChoiceError("this kernel has no path manager but its own")


@contextmanager
def userspace_sockets() -> Iterator[None]:
    """Sockets made meanwhile leave their subflows to us, whoever makes them: to be held for the making of one, and no longer. Killed
    in between, the running collector puts it right at its next check (``watch``). ChoiceError as ``choose``."""
    changed = choose(True)
    try:
        yield
    finally:
        if changed:
            choose(False)


FAMILY, GROUP = "mptcp_pm", "mptcp_pm_events"

Kind = Literal["created", "established", "closed", "announced", "subflow_established", "subflow_closed"]
_KINDS: dict[int, Kind] = {
    1: "created", 2: "established", 3: "closed", 6: "announced", 10: "subflow_established", 11: "subflow_closed"
}  # fmt: skip
_EVENT_TOKEN, _REMOTE_ID, _LOCAL4, _LOCAL6, _REMOTE4, _REMOTE6 = 1, 4, 5, 6, 7, 8
_LOCAL_PORT, _REMOTE_PORT, _ERROR, _FLAGS, _SERVER_SIDE = 9, 10, 12, 13, 18
_FLAG_SERVER_SIDE = 2


@dataclass(frozen=True, slots=True)
class PmEvent:
    """One event. ``announced``: the peer named its address ``remote``, by its number ``remote_id``. ``error``: errno of what closed a
    subflow (104: reset by the peer). ``server_side``: the peer connected; None when unknown. IPv4 addresses mapped into IPv6 are
    given as IPv4."""

    kind: Kind
    token: int
    local: str | None = None
    remote: str | None = None
    local_port: int | None = None
    remote_port: int | None = None
    error: int | None = None
    server_side: bool | None = None
    remote_id: int | None = None


def parse(data: bytes, family: int) -> list[PmEvent]:
    """Events among the messages of ``data``; what is of another family or kind is passed over. NetlinkError when broken."""
    events = []
    for kind, content in messages(data):
        if kind != family:
            continue
        command, attributes = generic(content)
        token = number(attributes.get(_EVENT_TOKEN))
        if command not in _KINDS or token is None:
            continue
        events.append(
            PmEvent(
                _KINDS[command],
                token,
                _host(attributes.get(_LOCAL4), attributes.get(_LOCAL6)),
                _host(attributes.get(_REMOTE4), attributes.get(_REMOTE6)),
                _port(attributes.get(_LOCAL_PORT)),
                _port(attributes.get(_REMOTE_PORT)),
                number(attributes.get(_ERROR)),
                _server_side(attributes),
                number(attributes.get(_REMOTE_ID)),
            )
        )
    return events


def _host(four: bytes | None, six: bytes | None) -> str | None:
    if four is not None and len(four) == 4:
        return socket.inet_ntop(socket.AF_INET, four)
    if six is not None and len(six) == 16:
        mapped = six[:12] == b"\0" * 10 + b"\xff\xff"
        return socket.inet_ntop(socket.AF_INET, six[12:]) if mapped else socket.inet_ntop(socket.AF_INET6, six)
    return None


def _port(content: bytes | None) -> int | None:
    return None if content is None or len(content) != 2 else int.from_bytes(content, "big")


def _server_side(attributes: dict[int, bytes]) -> bool | None:
    if _SERVER_SIDE in attributes:
        return bool(number(attributes[_SERVER_SIDE]))
    flags = number(attributes.get(_FLAGS))
    return None if flags is None else bool(flags & _FLAG_SERVER_SIDE)


class PmListener:
    """Receives events in this network namespace. LookupError: this kernel has none; OSError: it refuses (no CAP_NET_ADMIN)."""

    def __init__(self) -> None:
        listening, self._family, group = generic_socket(FAMILY, GROUP)
        self._subscription = Subscription(listening)
        try:
            self._subscription.join(group)
        except OSError:
            self.close()
            raise
        self.missed = 0
        """How often something was lost or could not be understood."""

    def fileno(self) -> int:
        return self._subscription.fileno()

    def read(self) -> list[PmEvent]:
        pieces, missed = self._subscription.read()
        self.missed += missed
        events = []
        for piece in pieces:
            try:
                events += parse(piece, self._family)
            except NetlinkError:
                self.missed += 1
        return events

    def close(self) -> None:
        self._subscription.close()


_REMOVE, _CREATE, _DESTROY = 9, 10, 11
_ADDRESS, _TOKEN, _LOCAL_ID, _REMOTE = 1, 4, 5, 6
_ADDRESS_FAMILY, _ADDRESS_ID, _ADDRESS4, _ADDRESS6, _ADDRESS_PORT, _ADDRESS_INTERFACE = 1, 2, 3, 4, 5, 7


@dataclass(frozen=True, slots=True)
class End:
    """One end of a subflow: host, port (0: any), the address's number in its connection, and the interface's index at our end."""

    host: str
    port: int = 0
    id: int | None = None
    interface: int | None = None


def packed(end: End) -> bytes:
    """The attributes of an address. Numbers are the machine's own, addresses the network's; the port too is the machine's here."""
    address = ipaddress.ip_address(end.host)
    six = address.version == 6
    attributes = attribute(_ADDRESS_FAMILY, struct.pack("=H", socket.AF_INET6 if six else socket.AF_INET))
    attributes += attribute(_ADDRESS6 if six else _ADDRESS4, address.packed)
    if end.id is not None:
        attributes += attribute(_ADDRESS_ID, struct.pack("=B", end.id))
    if end.port:
        attributes += attribute(_ADDRESS_PORT, struct.pack("=H", end.port))
    if end.interface is not None:
        attributes += attribute(_ADDRESS_INTERFACE, struct.pack("=i", end.interface))
    return attributes


class PmCommands:
    """Orders for the connections of this network namespace. LookupError: this kernel takes none. Every call raises OSError as the
    kernel refuses it: EINVAL also for a connection that has the kernel's own path manager, ESRCH for one that is no more."""

    def __init__(self) -> None:
        self._socket, self._family, _ = generic_socket(FAMILY, GROUP)

    def create(self, token: int, local: End, remote: End) -> None:
        """Begin a subflow; an event tells whether it comes about."""
        self._send(_CREATE, token, nested(_ADDRESS, packed(local)) + nested(_REMOTE, packed(remote)))

    def destroy(self, token: int, local: End, remote: End) -> None:
        """End the subflow with these ends (both with their ports)."""
        self._send(_DESTROY, token, nested(_ADDRESS, packed(local)) + nested(_REMOTE, packed(remote)))

    def forget(self, token: int, number: int) -> None:
        """Tell the peer that our address ``number`` is no more: it ends its subflows to it."""
        self._send(_REMOVE, token, attribute(_LOCAL_ID, struct.pack("=B", number)))

    def _send(self, number: int, token: int, content: bytes) -> None:
        command(self._socket, self._family, number, attribute(_TOKEN, struct.pack("=I", token)) + content)

    def close(self) -> None:
        self._socket.close()
