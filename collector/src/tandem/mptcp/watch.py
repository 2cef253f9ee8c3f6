"""Waits, without polling, until something of the paths changes, and repairs it; brings lost subflows back.

The kernel tells of links, addresses, routes and rules (rtnetlink), and of subflows (the path manager's events). It does not tell when
another program deletes an endpoint: therefore a check every half minute anyway.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import math
import os
import select
import socket
import threading
import time
from collections.abc import Callable
from functools import partial

from tandem.mptcp import path_manager
from tandem.mptcp.namespace_subflows import NamespaceSubflows, Order, Removal, Restored
from tandem.mptcp.nat import Nat, NatKeeper
from tandem.mptcp.netlink import only_watched, subscribe_routes
from tandem.mptcp.path_manager import End, PmCommands, PmListener
from tandem.mptcp.paths import PathEvent, Paths
from tandem.schema.manifest import SubflowLoss

log = logging.getLogger(__name__)

CHECK_S = 30.0
QUIET_S, LONGEST_S = 0.1, 1.0
"""Changes come in bursts: a check begins when it was quiet for so long, or after the longer at the latest."""
APART_S = 8.0
"""The most between two checks while changes go on: the pause doubles from QUIET_S, so that a flapping link does not cost a core."""


class NamespaceOrders:
    """Orders subflows where the kernel's own path manager would not do: while the paths that are up have different families.

    Then new connections of this network namespace leave their subflows to us; with one family, and at the end, the kernel has them
    again. ``why_not``: None, or why nothing can be ordered here."""

    def __init__(self, paths: Paths, why_not: str | None = None) -> None:
        self._paths = paths
        self.ours = False
        """New connections leave their subflows to us."""
        self.why_not = why_not
        self._commands: PmCommands | None = None
        try:
            self._commands = PmCommands() if why_not is None else None
        except (LookupError, OSError) as error:
            self.why_not = f"the kernel takes no orders for subflows: {error}"

    def choose(self) -> None:
        """Leave new connections' subflows to whom it fits now; what the kernel has otherwise (left by a collector that was killed) is
        put right."""
        if self._commands is None:
            return
        wanted = len({":" in address for address in self._paths.joining.values()}) > 1
        try:
            path_manager.choose(wanted)
        except path_manager.ChoiceError as error:
            self.ours = False
            self._report(str(error) if wanted else None)
        else:
            self.ours = wanted
            self._report(None)

    def _report(self, why_not: str | None) -> None:
        if why_not is not None and why_not != self.why_not:
            log.warning(
                "a subflow of another family than its connection's first will not come back after a reset: %s", why_not
            )
        self.why_not = why_not

    def open(self, order: Order) -> int:
        """Give the order; the errno with which the kernel refused it, 0 when it took it."""
        interface = self._paths.interfaces[order.path]
        if interface is None or self._commands is None:
            return errno.ENODEV
        try:
            local = End(order.local, id=self._paths.number(order.path), interface=socket.if_nametoindex(interface))
            self._commands.create(order.token, local, End(order.remote, order.port, order.remote_id))
        except OSError as error:
            return error.errno or errno.EIO
        return 0

    def end(self, removal: Removal) -> None:
        """Tell the peer, and end our side; whichever of the two has happened already is no error."""
        if self._commands is None:
            return
        local, local_port, remote, remote_port = removal.ends
        number = 0 if removal.first else self._paths.number(removal.path)
        _unless_gone(partial(self._commands.forget, removal.token, number))
        if local is None or remote is None:
            return
        # The first subflow of a socket of both families has IPv4 as mapped addresses, a further one as it is.
        for prefix in ("",) if ":" in local else ("", "::ffff:"):
            ends = End(prefix + local, local_port or 0), End(prefix + remote, remote_port or 0)
            _unless_gone(partial(self._commands.destroy, removal.token, *ends))

    def close(self) -> None:
        """Give new connections back to the kernel's path manager."""
        if self.ours:
            with contextlib.suppress(path_manager.ChoiceError):  # said when it was tried
                path_manager.choose(False)
            self.ours = False
        if self._commands is not None:
            self._commands.close()


def _unless_gone(order: Callable[[], None]) -> None:
    try:
        order()
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ESRCH, errno.ENOENT):
            raise


class Watch:
    """``turn`` and ``close`` for one thread; ``wake``, ``leave`` and ``losses`` for any. ``restoring``: None, or why subflows
    are not restored."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._wake_fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._routes = subscribe_routes()
        self._nats: dict[tuple[Nat, int | None], NatKeeper] = {}
        """By NAT and its namespace, which may be another one of the same name."""
        self._lock = threading.Lock()
        self._subflows = NamespaceSubflows(paths.path_of)
        self._events: PmListener | None = None
        self.restoring: str | None = None
        try:
            self._events = PmListener()
        except (LookupError, OSError) as error:
            self.restoring = f"the kernel's events of subflows cannot be received: {error}"
        self._orders = NamespaceOrders(paths, self.restoring)
        self._orders.choose()
        self._checked_s = time.monotonic()
        self._pause_s = QUIET_S
        self._changed_s: float | None = None
        self._last_change_s = 0.0

    def wake(self) -> None:
        """End the ``turn`` that waits; nothing once closed."""
        with self._lock:  # not a descriptor that is closed, or another's by now
            if self._wake_fd >= 0:
                os.eventfd_write(self._wake_fd, 1)

    def leave(self, token: int) -> None:
        """The subflows of this connection are somebody else's to order and to bring back. From any thread."""
        with self._lock:
            self._subflows.leave(token)

    def losses(self, token: int) -> list[SubflowLoss] | None:
        """Subflows that the connection with this token lost; None when that was not watched."""
        with self._lock:
            return self._subflows.losses(token)

    def turn(self, timeout_s: float | None = None) -> list[PathEvent]:
        """Wait for what needs something to be done, at most ``timeout_s``, and do it. IpError as ``Paths.check``."""
        self._keep_nats()
        keepers = list(self._nats.values())
        waiting = [self._wake_fd, self._routes.fileno(), *(number for one in keepers for number in one.filenos())]
        if self._events is not None:
            waiting.append(self._events.fileno())
        patience_s = self._patience_s(time.monotonic())
        ready, _, _ = select.select(waiting, [], [], patience_s if timeout_s is None else min(timeout_s, patience_s))
        if self._wake_fd in ready:
            os.eventfd_read(self._wake_fd)
        events = self._take_subflows()
        for (nat, _), keeper in self._nats.items():
            if (moved := keeper.turn()) is not None:
                gateway, detail = moved
                events.append(PathEvent("endpoint_restored", self._paths.follow(nat, gateway), detail))
        now = time.monotonic()
        # Not for our own captures: a check starts several programs.
        received = [one.read() for one in (self._routes, *(keeper.changes for keeper in keepers))]
        if any(missed or not all(map(only_watched, words)) for words, missed in received):
            if any(missed or words for words, missed in received[1:]):
                for keeper in keepers:
                    keeper.seen()
            self._changed_s, self._last_change_s = self._changed_s or now, now
        if now >= self._check_s() or self._paths.suspended.due:
            self._changed_s, checked_s, self._checked_s = None, self._checked_s, now
            self._pause_s = min(APART_S, self._pause_s * 2) if now - checked_s < 2 * APART_S else QUIET_S
            seen = self._paths.check()
            self._orders.choose()
            with self._lock:
                for path in {event.path for event in seen if event.kind in ("path_up", "endpoint_restored")}:
                    self._subflows.renewed(path, time.monotonic_ns())
            events += seen
        self._restore()
        return events

    def _check_s(self) -> float:
        if self._changed_s is None:
            return self._checked_s + CHECK_S
        settled = min(self._last_change_s + QUIET_S, self._changed_s + LONGEST_S)
        return max(settled, self._checked_s + self._pause_s)

    def _patience_s(self, now: float) -> float:
        with self._lock:
            due_ns = self._subflows.next_ns(self._paths.joining)
        dues = [math.inf if due_ns is None else due_ns / 1e9, *(keeper.due_s for keeper in self._nats.values())]
        until = min(self._check_s(), *dues)
        return max(0.0, until - now)

    def _keep_nats(self) -> None:
        """Hear and keep also what is behind the NATs that there are now."""
        wanted = {(nat, nat.inode) for nat in self._paths.nats}
        for gone in self._nats.keys() - wanted:
            self._nats.pop(gone).close()
        for fresh in wanted - self._nats.keys():
            with contextlib.suppress(OSError):  # deleted meanwhile: the next check sees it
                self._nats[fresh] = NatKeeper(fresh[0])

    def _take_subflows(self) -> list[PathEvent]:
        if self._events is None:
            return []
        with self._lock:
            now = time.monotonic_ns()
            back = [self._subflows.take(event, now, orders=self._orders.ours) for event in self._events.read()]
        return [_restored_event(restored) for restored in back if restored is not None]

    def _restore(self) -> None:
        """End what has lost its address, order what is due, make anew the endpoints that are."""
        now, joining = time.monotonic_ns(), self._paths.joining
        with self._lock:
            removals, orders = self._subflows.removals(joining), self._subflows.orders(now, joining)
        for removal in removals:
            self._orders.end(removal)
        codes = [(order, self._orders.open(order)) for order in orders]
        with self._lock:
            for order, code in codes:
                if code:
                    self._subflows.refused(order, code)
                else:
                    self._subflows.taken(order)
            renewals = self._subflows.renewals(now, joining)
        for path in renewals:
            self._paths.renew(path)

    def close(self) -> None:
        self._orders.close()
        for one in (self._routes, *self._nats.values(), *(() if self._events is None else (self._events,))):
            one.close()
        with self._lock:
            fd, self._wake_fd = self._wake_fd, -1
            os.close(fd)


def _restored_event(restored: Restored) -> PathEvent:
    cause = "" if restored.error is None else f", lost by {os.strerror(restored.error).lower()}"
    tries = "" if restored.attempts < 2 else f", {restored.attempts} attempts"
    detail = f"after {restored.took_ms:.0f} ms{cause}{tries}"
    return PathEvent("subflow_restored", restored.path, detail, took_ms=restored.took_ms)
