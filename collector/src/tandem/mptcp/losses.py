"""Subflows that a living connection lost, when to try to bring them back, and how long that took. Pure: events and times in.

A subflow that a reset took away (by a middlebox, a NAT that forgot it, the peer) is not opened again by the kernel. Making its
endpoint anew opens it. That also closes and opens other connections' subflows from that endpoint, so it waits while any other
connection has a living one there. Connections whose subflows are ordered (``subflow_scheduler``) need none of that; what they lost is kept
here all the same.
"""

from __future__ import annotations

import errno
from collections import OrderedDict
from collections.abc import Callable, Collection
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

PathOf = Callable[[str], str | None]
"""Which path has, or had last, this address."""


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
    due_ns: int
    attempts: int = 0
    back_ns: int | None = None

    def tried(self, now_ns: int) -> None:
        self.attempts += 1
        self.due_ns = now_ns + int(BACKOFF_S[min(self.attempts, len(BACKOFF_S) - 1)] * 1e9)


@dataclass(slots=True)
class _Connection:
    alive: bool = True
    ours: bool = True
    """We began it: only who did opens subflows."""
    subflows: dict[tuple[object, ...], str | None] = field(default_factory=dict)
    losses: list[_Loss] = field(default_factory=list)


class Losses:
    """Connections of this network namespace by the kernel's token; those that we did not begin are passed over."""

    def __init__(self, path_of: PathOf, by_orders: Callable[[int], bool] = lambda _: False) -> None:
        """``by_orders``: whether the subflows of the connection with this token are made by orders."""
        self._path_of, self._by_orders = path_of, by_orders
        self._connections: OrderedDict[int, _Connection] = OrderedDict()

    def take(self, event: PmEvent, now_ns: int) -> Restored | None:
        """An event, at CLOCK_MONOTONIC ``now_ns``; what came back by it."""
        connection = self._connections.get(event.token)
        if event.kind == "announced":
            return None
        if event.kind == "closed":
            if connection is not None:
                connection.alive = False
                connection.subflows.clear()
            return None
        path = None if event.local is None else self._path_of(event.local)
        known = connection is not None and connection.alive
        if connection is None or not known:
            if event.kind in ("subflow_established", "subflow_closed") and (
                path is None or event.error == errno.ECONNREFUSED
            ):
                return None  # begun before we listened, and none of ours or never there
            connection = self._remember(event.token)
        connection.ours = connection.ours and not event.server_side
        if not connection.ours:
            return None
        ends = (event.local, event.local_port, event.remote, event.remote_port)
        if event.kind != "subflow_closed":
            connection.subflows[ends] = path
            return self._back(connection, path, now_ns) if event.kind == "subflow_established" else None
        if known and ends not in connection.subflows:
            return None  # a handshake that came to nothing
        connection.subflows.pop(ends, None)
        loss = _Loss(path, now_ns, event.error, now_ns + int(BACKOFF_S[0] * 1e9))
        before = next((one for one in reversed(connection.losses) if one.path == path), None)
        if before is not None and before.back_ns is not None and now_ns - before.back_ns < SETTLED_NS:
            loss.attempts, loss.due_ns = before.attempts, max(now_ns, before.due_ns)
        connection.losses.append(loss)
        return None

    def _remember(self, token: int) -> _Connection:
        made = self._connections[token] = _Connection()
        self._connections.move_to_end(token)
        while len(self._connections) > REMEMBERED:
            self._connections.popitem(last=False)
        return made

    @staticmethod
    def _back(connection: _Connection, path: str | None, now_ns: int) -> Restored | None:
        for loss in connection.losses:
            if loss.back_ns is None and loss.path == path and path is not None:
                loss.back_ns = now_ns
                return Restored(path, (now_ns - loss.at_ns) / 1e6, loss.error, loss.attempts)
        return None

    def due(self, now_ns: int, up: Collection[str]) -> list[str]:
        """Paths whose endpoint is to be made anew now; each counts as an attempt. ``up``: paths that can be used."""
        paths = []
        for connection, loss in self._renewable():
            if loss.path is None or loss.path not in up or loss.due_ns > now_ns:
                continue
            if self._in_use(loss.path, connection):
                loss.due_ns = now_ns + IN_USE_NS
                continue
            loss.tried(now_ns)
            paths.append(loss.path)
        return sorted(set(paths))

    def tried(self, path: str, now_ns: int) -> None:
        """The path's endpoint was made anew for another reason: that is an attempt too."""
        for _, loss in self._renewable():
            if loss.path == path:
                loss.tried(now_ns)

    def ordered(self, token: int, path: str, now_ns: int) -> None:
        """The subflow was ordered anew in this connection: an attempt."""
        connection = self._connections.get(token)
        for loss in () if connection is None else connection.losses:
            if loss.path == path and loss.back_ns is None:
                loss.tried(now_ns)

    def next_ns(self, up: Collection[str]) -> int | None:
        """When ``due`` will have something; None while nothing is lost on a path that is up."""
        return min((loss.due_ns for _, loss in self._renewable() if loss.path in up), default=None)

    def _renewable(self) -> list[tuple[_Connection, _Loss]]:
        """What is lost and can be brought back by an endpoint."""
        return [
            (connection, loss)
            for token, connection in self._connections.items()
            if connection.alive and not self._by_orders(token)
            for loss in connection.losses
            if loss.back_ns is None
        ]

    def _in_use(self, path: str, losing: _Connection) -> bool:
        return any(
            path in connection.subflows.values()
            for token, connection in self._connections.items()
            if connection is not losing and connection.alive and not self._by_orders(token)
        )

    def of(self, token: int) -> list[SubflowLoss] | None:
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
