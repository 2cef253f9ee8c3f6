"""Which subflows to order in connections that leave theirs to us, and which to end. Pure: events and times in, orders out.

That is how it goes while paths have different families. A connection that began by IPv4 gets its subflow over IPv6 to an address
that the server tells once; the kernel's own path manager opens it upon that word, and never again after a reset. So we remember the
word, and order each subflow ourselves: one a path, when the connection is established, and again when it was lost.
"""

from __future__ import annotations

import errno
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from tandem.mptcp.losses import BACKOFF_S, REMEMBERED, SETTLED_NS
from tandem.mptcp.pm_events import PmEvent

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
class Farewell:
    """End the subflow of connection ``token`` over ``path``, whose address the path has no more. ``first``: the connection's first."""

    token: int
    path: str
    ends: Ends
    first: bool


@dataclass(slots=True)
class _Turn:
    """When a path is tried in a connection."""

    due_ns: int
    attempts: int = 0
    came_ns: int | None = None
    """When its subflow came about."""


@dataclass(slots=True)
class _Connection:
    remotes: dict[bool, tuple[str, int, int]]
    """The peer's host, port and address number; by whether it is IPv6."""
    first: Ends
    subflows: dict[Ends, str | None]
    begun: bool = False
    """The peer takes no further subflow before."""
    turns: dict[str, _Turn] = field(default_factory=dict)
    given_up: set[str] = field(default_factory=set)


def _after(before: _Turn | None, now_ns: int) -> _Turn:
    """The turn of a path that lost its subflow."""
    if before is None or before.came_ns is None or now_ns - before.came_ns >= SETTLED_NS:
        return _Turn(now_ns)
    due_ns = now_ns if before.attempts < 2 else max(now_ns, before.due_ns)  # the first may just have been unlucky
    return _Turn(due_ns, before.attempts)


class Joins:
    """Connections by the kernel's token: those that we began, and that had no path manager but us at that time."""

    def __init__(self, path_of: Callable[[str], str | None]) -> None:
        self._path_of = path_of
        self._connections: OrderedDict[int, _Connection] = OrderedDict()

    def __contains__(self, token: int) -> bool:
        return token in self._connections

    def leave(self, token: int) -> None:
        """Somebody else orders the subflows of this connection."""
        self._connections.pop(token, None)

    def take(self, event: PmEvent, now_ns: int, *, ours: bool) -> None:
        """An event. ``ours``: connections that begin now leave their subflows to us."""
        if event.kind == "created" and ours and not event.server_side:
            self._begin(event)
        connection = self._connections.get(event.token)
        if connection is None:
            return
        ends = (event.local, event.local_port, event.remote, event.remote_port)
        path = None if event.local is None else self._path_of(event.local)
        match event.kind:
            case "established":
                connection.begun = True
            case "closed":
                del self._connections[event.token]
            case "announced" if event.remote is not None:
                port = event.remote_port or connection.first[3] or 0
                connection.remotes.setdefault(":" in event.remote, (event.remote, port, event.remote_id or 0))
            case "subflow_established":
                connection.subflows[ends] = path
                if path is not None:
                    connection.turns.setdefault(path, _Turn(now_ns)).came_ns = now_ns
            case "subflow_closed" if ends in connection.subflows:
                del connection.subflows[ends]
                if path is not None:
                    connection.turns[path] = _after(connection.turns.get(path), now_ns)

    def _begin(self, event: PmEvent) -> None:
        if event.local is None or event.remote is None:
            return
        ends = (event.local, event.local_port, event.remote, event.remote_port)
        remotes = {":" in event.remote: (event.remote, event.remote_port or 0, 0)}
        self._connections[event.token] = _Connection(remotes, ends, {ends: self._path_of(event.local)})
        while len(self._connections) > REMEMBERED:
            self._connections.popitem(last=False)

    def due(self, now_ns: int, addresses: Mapping[str, str]) -> list[Order]:
        """What is to be ordered now; each counts as an attempt. ``addresses``: of the paths that are up."""
        orders = []
        for token, connection, path in self._missing(addresses):
            turn = connection.turns.setdefault(path, _Turn(now_ns))
            if turn.due_ns > now_ns:
                continue
            turn.attempts += 1
            turn.due_ns = now_ns + int(BACKOFF_S[min(turn.attempts, len(BACKOFF_S) - 1)] * 1e9)
            local = addresses[path]
            orders.append(Order(token, path, local, *connection.remotes[":" in local]))
        return orders

    def next_ns(self, addresses: Mapping[str, str]) -> int | None:
        """When ``due`` will have something (0: now); None while nothing is missing."""
        turns = (connection.turns.get(path) for _, connection, path in self._missing(addresses))
        return min((0 if turn is None else turn.due_ns for turn in turns), default=None)

    def _missing(self, addresses: Mapping[str, str]) -> Iterator[tuple[int, _Connection, str]]:
        for token, connection in self._connections.items():
            if not connection.begun:
                continue
            carried = set(connection.subflows.values())
            for path, address in addresses.items():
                known = (":" in address) in connection.remotes
                if known and path not in carried and path not in connection.given_up:
                    yield token, connection, path

    def refused(self, order: Order, code: int) -> None:
        """The kernel refused an order with errno ``code``: it need not be asked again, where that cannot help."""
        connection = self._connections.get(order.token)
        if connection is None or code not in (errno.EINVAL, errno.ESRCH, errno.EOPNOTSUPP):
            return
        if code == errno.EINVAL and (":" in order.local) != (":" in (connection.first[0] or "")):
            connection.given_up.add(order.path)  # its socket is of one family
            return
        del self._connections[order.token]  # it is no more, or has the kernel's path manager

    def farewells(self, addresses: Mapping[str, str]) -> list[Farewell]:
        """Subflows from addresses that their paths have no more; each is named once."""
        found = [
            Farewell(token, path, ends, ends == connection.first)
            for token, connection in self._connections.items()
            for ends, path in connection.subflows.items()
            if path is not None and addresses.get(path) != ends[0]
        ]
        for one in found:
            del self._connections[one.token].subflows[one.ends]
        return found
