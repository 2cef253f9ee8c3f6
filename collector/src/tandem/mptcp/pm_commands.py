"""Subflows made and ended by us, for connections whose path manager is not the kernel's own (sysctl ``net.mptcp.pm_type`` 1).

``linux/mptcp_pm.h``, in the kernel since 5.19; takes CAP_NET_ADMIN. The kernel's own path manager takes no such orders, and it
cannot open again a subflow to an address that the peer told it once: for that these are here.
"""

from __future__ import annotations

import ipaddress
import socket
import struct
from dataclasses import dataclass

from tandem.mptcp.netlink import Asked, attribute, nested
from tandem.mptcp.pm_events import FAMILY, GROUP

_REMOVE, _CREATE, _DESTROY = 9, 10, 11
_ADDRESS, _TOKEN, _LOCAL_ID, _REMOTE = 1, 4, 5, 6
_FAMILY, _ID, _ADDRESS4, _ADDRESS6, _PORT, _INTERFACE = 1, 2, 3, 4, 5, 7


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
    told = attribute(_FAMILY, struct.pack("=H", socket.AF_INET6 if six else socket.AF_INET))
    told += attribute(_ADDRESS6 if six else _ADDRESS4, address.packed)
    if end.id is not None:
        told += attribute(_ID, struct.pack("=B", end.id))
    if end.port:
        told += attribute(_PORT, struct.pack("=H", end.port))
    if end.interface is not None:
        told += attribute(_INTERFACE, struct.pack("=i", end.interface))
    return told


class PmCommands:
    """Orders for the connections of this network namespace. LookupError: this kernel takes none. Every call raises OSError as the
    kernel refuses it: EINVAL also for a connection that has the kernel's own path manager, ESRCH for one that is no more."""

    def __init__(self) -> None:
        self._asked = Asked(FAMILY, GROUP)

    def create(self, token: int, local: End, remote: End) -> None:
        """Begin a subflow; whether it comes about is told by an event."""
        content = nested(_ADDRESS, packed(local)) + nested(_REMOTE, packed(remote))
        self._asked.ask(_CREATE, attribute(_TOKEN, struct.pack("=I", token)) + content)

    def destroy(self, token: int, local: End, remote: End) -> None:
        """End the subflow with these ends (both with their ports)."""
        content = nested(_ADDRESS, packed(local)) + nested(_REMOTE, packed(remote))
        self._asked.ask(_DESTROY, attribute(_TOKEN, struct.pack("=I", token)) + content)

    def forget(self, token: int, number: int) -> None:
        """Tell the peer that our address ``number`` is no more: it ends its subflows to it."""
        content = attribute(_TOKEN, struct.pack("=I", token)) + attribute(_LOCAL_ID, struct.pack("=B", number))
        self._asked.ask(_REMOVE, content)

    def close(self) -> None:
        """Order no more."""
        self._asked.close()
