"""Subflows of this network namespace's connections: what each lost and how long that took, when to try again, and how. Pure: events and
times in, orders out.

A subflow that a reset took away (by a middlebox, a NAT that forgot it, the peer) is not opened again by the kernel. Making its
endpoint anew opens it. That also closes and opens other connections' subflows from that endpoint, so it waits while any other
connection has a living one there.

While paths have different families, new connections leave their subflows to us. One that began by IPv4 gets its subflow over IPv6 to
an address that the server announces once; the kernel's own path manager opens it upon that announcement, and never again after a reset.
So the address is kept here, and each subflow ordered: one a path, when the connection is established, and again when it was lost.

Connections that somebody else orders (``leave``) need neither; what they lost is kept here all the same.
"""

from __future__ import annotations

import errno
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field

from tandem.mptcp.path_manager import PmEvent
from tandem.schema.manifest import SubflowLoss

BACKOFF_S = (0.0, 3.0, 6.0, 12.0, 24.0)
"""Seconds from a loss, or from the attempt before, to the next attempt; the last repeats. A handshake that loses its first packet
takes a second more, and an attempt would break it off: therefore 3."""
IN_USE_NS = 1_000_000_000
"""When to look again whether another connection still has a subflow there."""
SETTLED_NS = 1_000_000_000
"""A subflow that came back and is lost again sooner was refused after its handshake, as by a server that has enough of them: its
attempts go on counting, or they would follow each other without a pause."""
REMEMBERED = 64

Ends = tuple[str | None, int | None, str | None, int | None]
"""Our address and port, the peer's."""


@dataclass(frozen=True, slots=True)
class Order:
    """Open a subflow of connection ``token`` over ``path`` from ``local`` to the peer's address ``remote``, its number ``remote_id``."""

    token: int
    path: str
    local: str
    remote: str
    port: int
    remote_id: int


@dataclass(frozen=True, slots=True)
class Removal:
    """End the subflow of connection ``token`` over ``path``, whose address the path has no more. ``first``: the connection's first."""

    token: int
    path: str
    ends: Ends
    first: bool


@dataclass(frozen=True, slots=True)
class Restored:
    """A subflow that came back."""

    path: str
    took_ms: float
    error: int | None
    attempts: int


@dataclass(slots=True)
class _Loss:
    path: str | None
    at_ns: int
    error: int | None
    attempts: int = 0
    back_ns: int | None = None


@dataclass(slots=True)
class _Attempts:
    """Attempts of a path in a connection, when the next one is due, and when its subflow came about."""

    due_ns: int
    attempts: int = 0
    came_ns: int | None = None

    def tried(self, now_ns: int) -> None:
        self.attempts += 1
        self.due_ns = now_ns + int(BACKOFF_S[min(self.attempts, len(BACKOFF_S) - 1)] * 1e9)

    def lost(self, now_ns: int, at_once: int) -> None:
        """Its subflow is gone. ``at_once``: fewer attempts than that may just have been unlucky, and wait for nothing."""
        if self.came_ns is None or now_ns - self.came_ns >= SETTLED_NS:
            self.attempts, self.due_ns = 0, now_ns
        else:
            self.due_ns = now_ns if self.attempts < at_once else max(now_ns, self.due_ns)
        self.came_ns = None


@dataclass(slots=True)
class _Connection:
    """``ours``: we began it: only who did opens subflows. ``ordered``: its subflows are made by orders; ``established``: before, the peer
    takes none. ``remotes``: the peer's host, port and address number; by whether it is IPv6. ``leaving``: subflows that are being ended."""

    ours: bool = True
    alive: bool = True
    ordered: bool = False
    established: bool = False
    first: Ends | None = None
    remotes: dict[bool, tuple[str, int, int]] = field(default_factory=dict)
    subflows: dict[Ends, str | None] = field(default_factory=dict)
    leaving: set[Ends] = field(default_factory=set)
    losses: list[_Loss] = field(default_factory=list)
    attempts_of: dict[str, _Attempts] = field(default_factory=dict)
    given_up: set[str] = field(default_factory=set)

    def open_losses(self, path: str | None) -> list[_Loss]:
        """Those of the path that did not come back yet."""
        return [loss for loss in self.losses if loss.path == path and loss.back_ns is None]


class NamespaceSubflows:
    """Connections by the kernel's token. ``path_of``: which path has, or had last, an address."""

    def __init__(self, path_of: Callable[[str], str | None]) -> None:
        self._path_of = path_of
        self._connections: OrderedDict[int, _Connection] = OrderedDict()
        self._left: OrderedDict[int, None] = OrderedDict()

    def leave(self, token: int) -> None:
        """Somebody else orders the subflows of this connection, and brings them back."""
        self._left[token] = None
        while len(self._left) > REMEMBERED:
            self._left.popitem(last=False)

    def take(self, event: PmEvent, now_ns: int, *, orders: bool = False) -> Restored | None:
        """An event, at CLOCK_MONOTONIC ``now_ns``; what came back by it. ``orders``: connections that begin now leave their subflows to
        us."""
        connection = self._connections.get(event.token)
        if connection is not None and event.kind == "closed":
            connection.alive = False
            connection.subflows.clear()
        if connection is not None and event.kind == "announced" and event.remote is not None:
            port = event.remote_port or (connection.first or (None, None, None, None))[3] or 0
            connection.remotes.setdefault(":" in event.remote, (event.remote, port, event.remote_id or 0))
        if event.kind in ("closed", "announced"):
            return None
        path = None if event.local is None else self._path_of(event.local)
        known = connection is not None and connection.alive
        if connection is None or not known or event.kind == "created":
            if event.kind.startswith("subflow") and (path is None or event.error == errno.ECONNREFUSED):
                return None  # begun before we listened, and none of ours or never there
            connection = self._remember(event.token)
        connection.ours = connection.ours and not event.server_side
        if not connection.ours:
            return None
        ends = (event.local, event.local_port, event.remote, event.remote_port)
        if event.kind == "subflow_closed":
            if not known or ends in connection.subflows:  # else a handshake that came to nothing
                self._lose(connection, ends, path, event.error, now_ns)
            return None
        if event.kind == "created" and event.local is not None and event.remote is not None:
            connection.first, connection.ordered = ends, orders
            connection.remotes = {":" in event.remote: (event.remote, event.remote_port or 0, 0)}
        connection.established = connection.established or event.kind == "established"
        connection.subflows[ends] = path
        return (
            self._came(connection, path, now_ns) if event.kind == "subflow_established" and path is not None else None
        )

    def _remember(self, token: int) -> _Connection:
        made = self._connections[token] = _Connection()
        self._connections.move_to_end(token)
        while len(self._connections) > REMEMBERED:
            ended = (token for token, connection in self._connections.items() if not connection.alive)
            del self._connections[next(ended, next(iter(self._connections)))]
        return made

    @staticmethod
    def _lose(connection: _Connection, ends: Ends, path: str | None, error: int | None, now_ns: int) -> None:
        connection.subflows.pop(ends, None)
        connection.leaving.discard(ends)
        connection.losses.append(_Loss(path, now_ns, error))
        if path is not None:
            connection.attempts_of.setdefault(path, _Attempts(now_ns)).lost(now_ns, 2 if connection.ordered else 1)

    @staticmethod
    def _came(connection: _Connection, path: str, now_ns: int) -> Restored | None:
        connection.attempts_of.setdefault(path, _Attempts(now_ns)).came_ns = now_ns
        loss = next(iter(connection.open_losses(path)), None)
        if loss is None:
            return None
        loss.back_ns = now_ns
        return Restored(path, (now_ns - loss.at_ns) / 1e6, loss.error, loss.attempts)

    def _kept(self, *, ordered: bool) -> Iterator[tuple[int, _Connection]]:
        """Living connections of ours, those whose subflows we order or the others."""
        for token, connection in self._connections.items():
            if connection.alive and connection.ours and connection.ordered is ordered and token not in self._left:
                yield token, connection

    def next_ns(self, addresses: Mapping[str, str]) -> int | None:
        """When ``orders`` or ``renewals`` will have something (0: now); None while nothing is missing. ``addresses``: of the paths that
        are up."""
        attempts = [connection.attempts_of.get(path) for _, connection, path in self._missing(addresses)]
        attempts += [attempts for _, path, attempts in self._renewable() if path in addresses]
        return min((0 if one is None else one.due_ns for one in attempts), default=None)

    # By orders.

    def orders(self, now_ns: int, addresses: Mapping[str, str]) -> list[Order]:
        """What is to be ordered now; each counts as an attempt. ``addresses``: of the paths that are up."""
        orders = []
        for token, connection, path in self._missing(addresses):
            attempts = connection.attempts_of.setdefault(path, _Attempts(now_ns))
            if attempts.due_ns <= now_ns:
                attempts.tried(now_ns)
                local = addresses[path]
                orders.append(Order(token, path, local, *connection.remotes[":" in local]))
        return orders

    def _missing(self, addresses: Mapping[str, str]) -> Iterator[tuple[int, _Connection, str]]:
        for token, connection in self._kept(ordered=True):
            carried = {path for ends, path in connection.subflows.items() if ends not in connection.leaving}
            for path, address in addresses.items():
                known = connection.established and (":" in address) in connection.remotes
                if known and path not in carried and path not in connection.given_up:
                    yield token, connection, path

    def taken(self, order: Order) -> None:
        """The kernel took the order."""
        connection = self._connections.get(order.token)
        for loss in () if connection is None else connection.open_losses(order.path):
            loss.attempts += 1

    def refused(self, order: Order, code: int) -> None:
        """The kernel refused an order with errno ``code``: it is not ordered again where that cannot help."""
        connection = self._connections.get(order.token)
        if connection is None or code not in (errno.EINVAL, errno.ESRCH, errno.EOPNOTSUPP):
            return
        first = None if connection.first is None else connection.first[0]
        if code == errno.EINVAL and (":" in order.local) != (":" in (first or "")):
            connection.given_up.add(order.path)  # its socket is of one family
        else:
            connection.ordered = False  # it is no more, or has the kernel's path manager

    def removals(self, addresses: Mapping[str, str]) -> list[Removal]:
        """Subflows from addresses that their paths have no more; each is named once."""
        found = [
            Removal(token, path, ends, ends == connection.first)
            for token, connection in self._kept(ordered=True)
            for ends, path in connection.subflows.items()
            if path is not None and addresses.get(path) != ends[0] and ends not in connection.leaving
        ]
        for one in found:
            self._connections[one.token].leaving.add(one.ends)
        return found

    # By endpoints made anew.

    def renewals(self, now_ns: int, up: Collection[str]) -> list[str]:
        """Paths whose endpoint is to be made anew now; each counts as an attempt. ``up``: paths that can be used."""
        paths = set()
        for connection, path, attempts in self._renewable():
            if path not in up or attempts.due_ns > now_ns:
                continue
            if any(
                path in other.subflows.values() for _, other in self._kept(ordered=False) if other is not connection
            ):
                attempts.due_ns = now_ns + IN_USE_NS
                continue
            self._try(connection, path, attempts, now_ns)
            paths.add(path)
        return sorted(paths)

    def renewed(self, path: str, now_ns: int) -> None:
        """The path's endpoint was made anew for another reason: that is an attempt too."""
        for connection, lost, attempts in self._renewable():
            if lost == path:
                self._try(connection, path, attempts, now_ns)

    def _renewable(self) -> list[tuple[_Connection, str, _Attempts]]:
        """What is lost and can be brought back by an endpoint."""
        return [
            (connection, path, attempts)
            for _, connection in self._kept(ordered=False)
            for path, attempts in connection.attempts_of.items()
            if connection.open_losses(path)
        ]

    @staticmethod
    def _try(connection: _Connection, path: str, attempts: _Attempts, now_ns: int) -> None:
        attempts.tried(now_ns)
        for loss in connection.open_losses(path):
            loss.attempts += 1

    def losses(self, token: int) -> list[SubflowLoss] | None:
        """What the connection lost, in order; None for one that is not known (any more)."""
        connection = self._connections.get(token)
        if connection is None:
            return None
        return [
            SubflowLoss(
                path=loss.path,
                at_monotonic_ns=loss.at_ns,
                back_after_ms=None if loss.back_ns is None else (loss.back_ns - loss.at_ns) / 1e6,
            )
            for loss in connection.losses
        ]
