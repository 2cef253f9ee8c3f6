"""Which connections are let in, and which go when there are too many: counted from accept to close, TLS's handshake included."""

from __future__ import annotations

import ipaddress
import socket
import struct
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tandem_server.door.rates import Buckets

_GOOD_ADDRESSES = 10_000

Ends = tuple[tuple[str, int], tuple[str, int]]
"""Peer's and own address and port."""


@dataclass(frozen=True, slots=True)
class DoorBounds:
    """``strangers`` are connections that have shown no good token (at the measurement listener: no session) yet: so many in all and of
    one address. ``known``: the others, in all and of one probe. ``new_per_minute`` and ``failures_per_minute`` (requests without a good
    token): by address. ``head_s``, ``body_s``: within which TLS's handshake, then a request's head, and a stranger's body, must be
    whole; ``idle_s``: how long a known connection may rest."""

    strangers: int = 256
    strangers_per_address: int = 64
    known: int = 4096
    known_per_probe: int = 64
    new_per_minute: int = 600
    failures_per_minute: int = 30
    head_s: float = 10.0
    body_s: float = 60.0
    idle_s: float = 75.0


class Admitted:
    """A connection that was let in. ``probe``: whose good token it has shown. ``abort`` ends it at once."""

    def __init__(self, connection: socket.socket, peer: tuple[Any, ...]) -> None:
        self.socket = connection
        self.address = address_of(str(peer[0]))
        self.ends = ends_of(peer, connection.getsockname())
        self.probe: str | None = None
        self.abort: Callable[[], None] = self._shut

    def _shut(self) -> None:
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            return  # it went by itself


class Door:
    """Keeps count. All calls from one thread, as the event loop's, or one at a time.

    The newest stranger always gets in: the oldest one of its own address makes room, or of the address that has most. A good token is
    shown within moments, so that who waits on purpose is the one to go. Addresses from where good tokens came lately make room last.
    """

    def __init__(self, bounds: DoorBounds) -> None:
        self.bounds = bounds
        self.new = Buckets(bounds.new_per_minute)
        self.failures = Buckets(bounds.failures_per_minute)
        self.refused = 0
        """Connections not let in, or ended for room, since the start."""
        self._strangers: dict[str, dict[Admitted, None]] = {}
        self._waiting = 0
        self._probes: dict[str, int] = {}
        self._known = 0
        self._by_ends: dict[Ends, Admitted] = {}
        self._good: OrderedDict[str, None] = OrderedDict()

    @property
    def strangers(self) -> int:
        """Connections that have shown no token yet."""
        return self._waiting

    @property
    def known(self) -> int:
        """Those that have."""
        return self._known

    def find(self, ends: Ends) -> Admitted | None:
        """The connection between these ends."""
        return self._by_ends.get(ends)

    def admit(self, connection: socket.socket, peer: tuple[Any, ...]) -> Admitted | None:
        """Take a connection over, or close it (None)."""
        address = address_of(str(peer[0]))
        if self.new.wait_s(address) > 0:
            self.refused += 1
            _reset(connection)
            return None
        self.new.take(address)
        try:
            admitted = Admitted(connection, peer)
        except OSError:  # it has gone already
            connection.close()
            return None
        if len(self._strangers.get(address, ())) >= self.bounds.strangers_per_address:
            self._make_room(address)
        elif self._waiting >= self.bounds.strangers:
            others = [one for one in self._strangers if one not in self._good] or list(self._strangers)
            self._make_room(max(others, key=lambda one: len(self._strangers[one])))
        self._strangers.setdefault(address, {})[admitted] = None
        self._waiting += 1
        self._by_ends[admitted.ends] = admitted
        return admitted

    def is_known(self, admitted: Admitted, probe: str) -> bool:
        """It has shown the token of ``probe``; False when it is to be ended: there are too many, of that probe or in all, or its place
        is another's already. It stays a stranger then, which is the first to go."""
        if admitted.probe == probe:
            return True
        if self._probes.get(probe, 0) >= self.bounds.known_per_probe:
            return False
        if admitted.probe is not None:  # another token on the same connection
            self._count_probe(admitted.probe, -1)
        elif self._known < self.bounds.known and self._forget_stranger(admitted):
            self._known += 1
        else:
            return False
        admitted.probe = probe
        self._count_probe(probe, 1)
        self._good[admitted.address] = None
        self._good.move_to_end(admitted.address)
        if len(self._good) > _GOOD_ADDRESSES:
            self._good.popitem(last=False)
        return True

    def left(self, admitted: Admitted) -> None:
        """Its place is free again."""
        if self._by_ends.get(admitted.ends) is not admitted:
            return
        del self._by_ends[admitted.ends]
        if admitted.probe is None:
            self._forget_stranger(admitted)
        else:
            self._known -= 1
            self._count_probe(admitted.probe, -1)

    def _make_room(self, address: str) -> None:
        oldest = next(iter(self._strangers[address]))
        self._forget_stranger(oldest)
        self.refused += 1
        oldest.abort()

    def _forget_stranger(self, admitted: Admitted) -> bool:
        here = self._strangers.get(admitted.address, {})
        if admitted not in here:
            return False
        del here[admitted]
        self._waiting -= 1
        if not here:
            del self._strangers[admitted.address]
        return True

    def _count_probe(self, probe: str, change: int) -> None:
        count = self._probes.get(probe, 0) + change
        if count:
            self._probes[probe] = count
        else:
            self._probes.pop(probe, None)


def address_of(host: str) -> str:
    """What counts as one address: an IPv4 address, or the 64 bits of an IPv6 address that one customer has."""
    address = ipaddress.ip_address(host.partition("%")[0])
    if address.version == 4:
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((int(address) >> 64 << 64, 64)))


def ends_of(peer: tuple[Any, ...], own: tuple[Any, ...]) -> Ends:
    """As asyncio and uvicorn tell them, too."""
    return (str(peer[0]), int(peer[1])), (str(own[0]), int(own[1]))


def _reset(connection: socket.socket) -> None:
    """Close without a farewell, so that nothing is kept of it here."""
    with connection:
        try:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        except OSError:
            return  # it has gone already
