"""Which connections are accepted, and which are closed when there are too many: counted from accept to close, TLS handshakes included."""

from __future__ import annotations

import ipaddress
import socket
import struct
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from tandem_server.http.rates import Buckets

_GOOD_ADDRESSES = 10_000

Ends = tuple[tuple[str, int], tuple[str, int]]
"""Peer's and own address and port."""

Stage = Literal["head", "body", "rest"]
"""What a connection waits for: a request's head, the rest of a body that was answered early, the next request."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """``unauthenticated`` connections have shown no good token (at the measurement listener: no session) yet: so many in all and of one
    address. ``authenticated``: the others, in all and of one probe. ``new_per_minute`` and ``failures_per_minute`` (requests without a
    good token): by address. ``head_s``, ``body_s``: seconds within which the TLS handshake, then a request's head, and an unauthenticated
    body, must be whole; ``idle_s``: how long an authenticated connection may rest."""

    unauthenticated: int = 256
    unauthenticated_per_address: int = 64
    authenticated: int = 4096
    authenticated_per_probe: int = 64
    new_per_minute: int = 600
    failures_per_minute: int = 30
    head_s: float = 10.0
    body_s: float = 60.0
    idle_s: float = 75.0


class Connection:
    """An accepted connection. ``probe``: whose good token it has shown. ``abort`` ends it at once. ``waits_for``: called when what it
    waits for changes; None: a request is being answered."""

    def __init__(self, accepted: socket.socket, peer: tuple[Any, ...]) -> None:
        self.socket = accepted
        self.address = address_of(str(peer[0]))
        self.ends = ends_of(peer, accepted.getsockname())
        self.probe: str | None = None
        self.abort: Callable[[], None] = self._shut
        self.waits_for: Callable[[Stage | None], None] = lambda _stage: None

    def _shut(self) -> None:
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            return  # it went by itself


class ConnectionLimiter:
    """Counts connections. All calls from one thread, as the event loop's, or one at a time.

    The newest unauthenticated connection is always admitted: the oldest one of its own address makes room, or of the address that has most.
    A good token is shown within moments, so what waits on purpose is closed. Addresses with recent good tokens make room last.
    """

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self.new = Buckets(limits.new_per_minute)
        self.failures = Buckets(limits.failures_per_minute)
        self.refused = 0
        """Connections not accepted, or closed for room, since the start."""
        self.unauthenticated = 0
        """Connections that have shown no good token yet."""
        self.authenticated = 0
        """Those that have."""
        self._waiting: dict[str, dict[Connection, None]] = {}
        self._probes: Counter[str] = Counter()
        self._by_ends: dict[Ends, Connection] = {}
        self._good: OrderedDict[str, None] = OrderedDict()

    def find(self, ends: Ends) -> Connection | None:
        """The connection between these ends."""
        return self._by_ends.get(ends)

    def admit(self, accepted: socket.socket, peer: tuple[Any, ...]) -> Connection | None:
        """Take a connection over, or close it (None)."""
        address = address_of(str(peer[0]))
        if self.new.wait_s(address) > 0:
            self.refused += 1
            _reset(accepted)
            return None
        self.new.take(address)
        try:
            connection = Connection(accepted, peer)
        except OSError:  # it has gone already
            accepted.close()
            return None
        if len(self._waiting.get(address, ())) >= self.limits.unauthenticated_per_address:
            self._make_room(address)
        elif self.unauthenticated >= self.limits.unauthenticated:
            others = [one for one in self._waiting if one not in self._good] or list(self._waiting)
            self._make_room(max(others, key=lambda one: len(self._waiting[one])))
        self._waiting.setdefault(address, {})[connection] = None
        self.unauthenticated += 1
        self._by_ends[connection.ends] = connection
        return connection

    def authenticate(self, connection: Connection, probe: str) -> bool:
        """It has shown the token of ``probe``; False when it must be closed: there are too many, of that probe or in all, or its place was
        given away. It stays unauthenticated then, and so is the first to make room."""
        if connection.probe == probe:
            return True
        if self._probes[probe] >= self.limits.authenticated_per_probe:
            return False
        if connection.probe is not None:  # another token on the same connection
            self._leave_probe(connection.probe)
        elif self.authenticated < self.limits.authenticated and self._forget(connection):
            self.authenticated += 1
        else:
            return False
        connection.probe = probe
        self._probes[probe] += 1
        self._good[connection.address] = None
        self._good.move_to_end(connection.address)
        if len(self._good) > _GOOD_ADDRESSES:
            self._good.popitem(last=False)
        return True

    def left(self, connection: Connection) -> None:
        """Its place is free again."""
        if self._by_ends.get(connection.ends) is not connection:
            return
        del self._by_ends[connection.ends]
        if connection.probe is None:
            self._forget(connection)
        else:
            self.authenticated -= 1
            self._leave_probe(connection.probe)

    def _make_room(self, address: str) -> None:
        oldest = next(iter(self._waiting[address]))
        self._forget(oldest)
        self.refused += 1
        oldest.abort()

    def _forget(self, connection: Connection) -> bool:
        here = self._waiting.get(connection.address, {})
        if connection not in here:
            return False
        del here[connection]
        self.unauthenticated -= 1
        if not here:
            del self._waiting[connection.address]
        return True

    def _leave_probe(self, probe: str) -> None:
        self._probes[probe] -= 1
        if not self._probes[probe]:
            del self._probes[probe]


def address_of(host: str) -> str:
    """What counts as one address: an IPv4 address, or the 64 bits of an IPv6 address that one customer has."""
    address = ipaddress.ip_address(host.partition("%")[0])
    if address.version == 4:
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((int(address) >> 64 << 64, 64)))


def ends_of(peer: tuple[Any, ...], own: tuple[Any, ...]) -> Ends:
    """From socket addresses, as asyncio and ASGI have them too."""
    return (str(peer[0]), int(peer[1])), (str(own[0]), int(own[1]))


def _reset(accepted: socket.socket) -> None:
    """Close without a farewell, so that nothing is kept of it here."""
    with accepted:
        try:
            accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        except OSError:
            return  # it has gone already
