"""The subflows of one connection that has exactly those that were requested: which to order, and when again.

``ConnectionScheduler`` is pure: events and times in, orders out. ``SubflowOrders`` carries its orders out.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from tandem.mptcp import sockets
from tandem.mptcp.namespace_subflows import BACKOFF_S, SETTLED_NS, Order
from tandem.mptcp.path_manager import ENDPOINTS, MOST, End, PmCommands, PmEvent, PmListener
from tandem.mptcp_abi.reader import Reader, StatisticsError


@dataclass(slots=True)
class Subflow:
    """What became of one subflow. Times are CLOCK_MONOTONIC ns. ``ordered_ns``: first; None for the connection's own first subflow.
    ``came_ns``: when it came to stay; one that was taken back within a second did not. ``pending``: ordered, and nothing heard of it
    yet. ``error``: errno of the last refusal or loss."""

    path: str
    remote: str
    due_ns: int = 0
    attempts: int = 0
    ordered_ns: int | None = None
    came_ns: int | None = None
    alive: bool = False
    pending: bool = False
    given_up: bool = False
    taken_back: bool = False
    error: int | None = None

    @property
    def why_not(self) -> str | None:
        """Why there never was a subflow; None when there was."""
        if self.came_ns is not None:
            return None
        if self.error is not None:
            return os.strerror(self.error).lower()
        if self.taken_back:
            return "refused after its handshake"
        return "no answer" if self.ordered_ns is not None else "the connection ended before"


class ConnectionScheduler:
    """For one connection; ``begin`` tells which. ``paths``: those that get subflows, the primary first. ``each``: addresses of the
    server on each path. ``further``: addresses that the server named beforehand.

    Each path in use gets a subflow to the first ``each`` addresses of the server that it can reach (the kernel pairs addresses of one
    family only): the one connected to, those named beforehand, those that the server announces within the connection."""

    def __init__(self, paths: Sequence[str], each: int, further: Sequence[str] = ()) -> None:
        self._paths, self._each = tuple(paths), each
        self._remotes: list[tuple[str, int]] = [(host, 0) for host in further]
        self._token: int | None = None
        self._port = 0
        self._begun = False
        self._over = False
        self._owners: dict[str, str] = {}
        self._subflows: dict[tuple[str, str], Subflow] = {}
        self._unplaced: dict[tuple[str, str], tuple[PmEvent, int]] = {}
        """Last news of subflows that we did not order, from addresses that are no path's as far as we know yet."""

    def begin(self, token: int, path: str, local: str, remote: str, port: int, now_ns: int) -> None:
        """The connection ``token`` began over ``path`` from our address ``local`` to the server's ``remote``."""
        self._token, self._port = token, port
        self._remotes = [(remote, 0), *(known for known in self._remotes if known[0] != remote)]
        self._owners[local] = path
        self._subflows[path, remote] = Subflow(path, remote, came_ns=now_ns, alive=True)

    def take(self, event: PmEvent, now_ns: int) -> None:
        if event.token != self._token:
            return
        match event.kind:
            case "established":
                self._begun = True
            case "closed":
                self._over = True
            case "announced" if event.remote is not None:
                if all(host != event.remote for host, _ in self._remotes):
                    self._remotes.append((event.remote, event.remote_id or 0))
            case "subflow_established" | "subflow_closed":
                if event.local is None or event.remote is None:
                    return
                path = self._owners.get(event.local)
                if path is None:
                    self._unplaced[event.local, event.remote] = event, now_ns
                    return
                _update(self._subflows.setdefault((path, event.remote), Subflow(path, event.remote)), event, now_ns)

    def missed(self) -> None:
        """Events were lost, among them perhaps that the peer takes further subflows."""
        self._begun = self._token is not None

    def due(self, now_ns: int, addresses: Mapping[str, Sequence[str]]) -> list[Order]:
        """What is to be ordered now; each counts as an attempt. ``addresses``: ours, by path."""
        orders = []
        for subflow, local, number in self._missing(addresses):
            if subflow.due_ns > now_ns or self._token is None:
                continue
            subflow.attempts += 1
            subflow.due_ns = now_ns + int(BACKOFF_S[min(subflow.attempts, len(BACKOFF_S) - 1)] * 1e9)
            subflow.ordered_ns, subflow.pending = subflow.ordered_ns or now_ns, True
            self._owners[local] = subflow.path
            orders.append(Order(self._token, subflow.path, local, subflow.remote, self._port, number))
        return orders

    def next_ns(self, addresses: Mapping[str, Sequence[str]]) -> int | None:
        """When ``due`` will have something (0: now); None while nothing is to be ordered."""
        return min((subflow.due_ns for subflow, _, _ in self._missing(addresses)), default=None)

    def _missing(self, addresses: Mapping[str, Sequence[str]]) -> list[tuple[Subflow, str, int]]:
        """Subflows to be ordered, with our address and the number of the server's."""
        if not self._begun or self._over:
            return []
        self._place(addresses)
        reached = {path: self._reached(addresses.get(path, ())) for path in self._paths}
        found = []
        for turn in range(self._each):  # every path its first before any its second: the peer may not take all
            for path, pairs in reached.items():
                if turn >= len(pairs):
                    continue
                remote, number, local = pairs[turn]
                subflow = self._subflows.setdefault((path, remote), Subflow(path, remote))
                if not (subflow.alive or subflow.pending or subflow.given_up):
                    found.append((subflow, local, number))
        return found

    def _place(self, addresses: Mapping[str, Sequence[str]]) -> None:
        """What was heard of addresses before anybody said whose they are."""
        for path, ones in addresses.items():
            for local, remote in [pair for pair in self._unplaced if pair[0] in ones]:
                event, at_ns = self._unplaced.pop((local, remote))
                self._owners[local] = path
                _update(self._subflows.setdefault((path, remote), Subflow(path, remote)), event, at_ns)

    def _reached(self, locals_: Sequence[str]) -> list[tuple[str, int, str]]:
        """The server's addresses that a path with these addresses gets subflows to, with their numbers and ours for each."""
        pairs = []
        for remote, number in self._remotes:
            local = next((one for one in locals_ if (":" in one) == (":" in remote)), None)
            if local is not None:
                pairs.append((remote, number, local))
        return pairs[: self._each]

    def refused(self, order: Order, code: int) -> None:
        """The kernel refused an order with errno ``code``; it is not ordered again where that cannot help."""
        subflow = self._subflows[order.path, order.remote]
        subflow.pending, subflow.error = False, code
        if code == errno.ESRCH:
            self._over = True  # the connection is no more
        elif code in (errno.EINVAL, errno.EOPNOTSUPP, errno.EPERM):
            subflow.given_up = True  # it has the kernel's path manager, or a socket of one family

    @property
    def subflows(self) -> list[Subflow]:
        """All that were to be, in the order in which they were ordered; the first is the connection's own."""
        return list(self._subflows.values())


def _update(subflow: Subflow, event: PmEvent, now_ns: int) -> None:
    if event.kind == "subflow_established":
        subflow.alive, subflow.pending, subflow.came_ns = True, False, subflow.came_ns or now_ns
        return
    if subflow.came_ns is not None and now_ns - subflow.came_ns < SETTLED_NS and subflow.attempts:
        subflow.came_ns, subflow.taken_back = None, True  # a server that has enough refuses only after the handshake
    elif subflow.alive:
        subflow.attempts = 0
    if subflow.attempts < 2:
        subflow.due_ns = now_ns  # it may just have been unlucky; after that as the attempts before say
    subflow.alive, subflow.pending, subflow.error = False, False, event.error


_LOOK_S = 0.001


class SubflowOrders:
    """To be entered before the connection's socket is made (with ``sockets.Options.by_orders``), so that no event is missed; ``begin``
    once it is connected; left before it is closed. ``interfaces``: the paths that get subflows, the primary first, with where each
    leaves. ``each``, ``further``: as ``ConnectionScheduler``. UnsupportedError where this process may not order, or the kernel takes no
    orders."""

    def __init__(self, interfaces: Mapping[str, str], each: int, further: Sequence[str] = ()) -> None:
        self._interfaces = dict(interfaces)
        self._scheduler = ConnectionScheduler(tuple(interfaces), each, further)
        self._thread: threading.Thread | None = None
        try:
            with contextlib.ExitStack() as held:
                self._events = held.enter_context(contextlib.closing(PmListener()))
                self._commands = held.enter_context(contextlib.closing(PmCommands()))
                self._done = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
                held.callback(os.close, self._done)
                self._held = held.pop_all()
        except (LookupError, OSError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            hint = "hint: CAP_NET_ADMIN, and Linux 5.19 or later with Multipath TCP"
            raise sockets.UnsupportedError(f"a number of subflows cannot be ordered here: {why}; {hint}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()
        self._held.close()

    def end(self) -> None:
        os.eventfd_write(self._done, 1)
        if self._thread is not None:
            self._thread.join()

    def begin(self, connection: socket.socket, path: str, tell: Callable[[int], None]) -> bool:
        """Order for this connection from now on; False where it is plain TCP by now. ``tell``: called before, with the kernel's token
        of the connection: others that restore subflows must leave it alone."""
        try:
            sample = Reader(connection).read()
        except StatisticsError:
            return False
        first = sample.subflows[0] if sample.subflows else None
        token = None if sample.mptcp is None else sample.mptcp.token
        if token is None or first is None or first.local is None or first.remote is None:
            return False
        tell(token)
        ends = (first.local.host, first.remote.host, first.remote.port)
        self._scheduler.begin(token, path, *ends, time.monotonic_ns())
        self._thread = threading.Thread(target=self._run, name="subflows", daemon=True)
        self._thread.start()
        return True

    def await_there(self, count: int, longest_s: float, wait: Callable[[float], bool]) -> bool:
        """Wait until ``count`` subflows of the connection are there; False when the time is over, or ``wait``, which sleeps,
        says so before."""
        until_ns = time.monotonic_ns() + int(longest_s * 1e9)
        while sum(subflow.alive for subflow in self._scheduler.subflows) < count:
            if time.monotonic_ns() > until_ns or wait(_LOOK_S):
                return False
        return True

    @property
    def subflows(self) -> list[Subflow]:
        """What was ordered, and what became of it. To be read after the end."""
        return self._scheduler.subflows

    def _run(self) -> None:
        missed = 0
        while True:
            for event in self._events.read():
                self._scheduler.take(event, time.monotonic_ns())
            if self._events.missed != missed:
                missed = self._events.missed
                self._scheduler.missed()
            addresses = {name: sockets.interface_addresses(i) for name, i in self._interfaces.items()}
            for order in self._scheduler.due(time.monotonic_ns(), addresses):
                try:
                    self._open(order)
                except OSError as error:
                    self._scheduler.refused(order, error.errno or 0)
            due = self._scheduler.next_ns(addresses)
            patience_s = None if due is None else max(0.0, (due - time.monotonic_ns()) / 1e9)
            ready, _, _ = select.select([self._events.fileno(), self._done], [], [], patience_s)
            if self._done in ready:
                return

    def _open(self, order: Order) -> None:
        interface = self._interfaces[order.path]
        # Numbers of our addresses beyond those of the endpoints, so that none is taken; a path may have one of each family.
        number = ENDPOINTS + MOST + 2 * list(self._interfaces).index(order.path) + (":" in order.local)
        local = End(order.local, id=number, interface=socket.if_nametoindex(interface))
        self._commands.create(order.token, local, End(order.remote, order.port, order.remote_id))
