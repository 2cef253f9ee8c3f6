"""Waits, without polling, until something of the paths changes, and mends it; brings lost subflows back.

The kernel tells of links, addresses, routes and rules (rtnetlink), and of subflows (the path manager's events). It does not tell when
another program deletes an endpoint: therefore a check every half minute anyway.
"""

from __future__ import annotations

import contextlib
import os
import select
import threading
import time
from collections import OrderedDict
from pathlib import Path

from tandem.mptcp.leases import Leases
from tandem.mptcp.losses import REMEMBERED, Losses, Restored
from tandem.mptcp.netlink import Heard, hear_routes, only_watched
from tandem.mptcp.ordering import Ordering
from tandem.mptcp.paths import PathEvent, Paths
from tandem.mptcp.pm_events import PmEvent, PmListener
from tandem.schema.manifest import SubflowLoss

CHECK_S = 30.0
QUIET_S, LONGEST_S = 0.1, 1.0
"""Changes come in bursts: a check begins when it was quiet for so long, or after the longer at the latest."""
APART_S = 8.0
"""The most between two checks while changes go on: the pause doubles from QUIET_S, so that a flapping link does not cost a core."""


class Watch:
    """``turn`` and ``close`` for one thread; ``wake``, ``leave`` and ``losses`` for any. ``restoring``: None, or why subflows
    are not restored."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._wake_fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._routes = hear_routes()
        self._inside: dict[tuple[Path, int | None], Heard] = {}
        self._leases = Leases(paths)
        self._lock = threading.Lock()
        self._left: OrderedDict[int, None] = OrderedDict()
        self._ordering: Ordering | None = None
        self._losses = Losses(paths.path_of, self._ordered)
        self._events: PmListener | None = None
        self.restoring: str | None = None
        try:
            self._events = PmListener()
        except (LookupError, OSError) as error:
            self.restoring = f"the kernel's events of subflows cannot be heard: {error}"
        else:
            self._ordering = Ordering(paths)
            self._ordering.choose()
        self._checked_s = time.monotonic()
        self._pause_s = QUIET_S
        self._changed_s: float | None = None
        self._heard_s = 0.0

    def _ordered(self, token: int) -> bool:
        return token in self._left or (self._ordering is not None and token in self._ordering.joins)

    def wake(self) -> None:
        """End the ``turn`` that waits; nothing once closed."""
        with self._lock:  # not a descriptor that is closed, or another's by now
            if self._wake_fd >= 0:
                os.eventfd_write(self._wake_fd, 1)

    def leave(self, token: int) -> None:
        """The subflows of this connection are somebody else's to order and to bring back. From any thread."""
        with self._lock:
            self._left[token] = None
            while len(self._left) > REMEMBERED:
                self._left.popitem(last=False)

    def losses(self, token: int) -> list[SubflowLoss] | None:
        """Subflows that the connection with this token lost; None when that was not watched."""
        with self._lock:
            return self._losses.of(token)

    def turn(self, timeout_s: float | None = None) -> list[PathEvent]:
        """Wait for what needs something to be done, at most ``timeout_s``, and do it. IpError as ``Paths.check``."""
        self._listen_inside()
        heard: list[Heard] = [self._routes, *self._inside.values()]
        waiting: list[int] = [self._wake_fd, *(h.fileno() for h in heard), *self._leases.filenos()]
        if self._events is not None:
            waiting.append(self._events.fileno())
        patience_s = self._patience_s(time.monotonic())
        ready, _, _ = select.select(waiting, [], [], patience_s if timeout_s is None else min(timeout_s, patience_s))
        if self._wake_fd in ready:
            os.eventfd_read(self._wake_fd)
        events = self._take_subflows() + self._leases.turn()
        now = time.monotonic()
        # Not for our own captures: a check starts several programs.
        told = [one.read() for one in heard]
        if any(missed or not all(map(only_watched, words)) for words, missed in told):
            if any(missed or words for words, missed in told[1:]):
                self._leases.seen()
            self._changed_s, self._heard_s = self._changed_s or now, now
        if now >= self._check_s() or self._paths.resting.due:
            self._changed_s, checked_s, self._checked_s = None, self._checked_s, now
            self._pause_s = min(APART_S, self._pause_s * 2) if now - checked_s < 2 * APART_S else QUIET_S
            seen = self._paths.check()
            if self._ordering is not None:
                self._ordering.choose()
            with self._lock:
                for path in {event.path for event in seen if event.kind in ("path_up", "endpoint_restored")}:
                    self._losses.tried(path, time.monotonic_ns())
            events += seen
        self._restore()
        return events

    def _check_s(self) -> float:
        """When the next check is due."""
        if self._changed_s is None:
            return self._checked_s + CHECK_S
        settled = min(self._heard_s + QUIET_S, self._changed_s + LONGEST_S)
        return max(settled, self._checked_s + self._pause_s)

    def _patience_s(self, now: float) -> float:
        with self._lock:
            due = [self._losses.next_ns(self._paths.joining)]
        if self._ordering is not None:
            due.append(self._ordering.next_ns())
        until = min([self._check_s(), self._leases.due_s(), *(due_ns / 1e9 for due_ns in due if due_ns is not None)])
        return max(0.0, until - now)

    def _listen_inside(self) -> None:
        """Hear also what changes behind the NATs that there are now."""
        self._leases.keep(self._paths.nats)
        wanted = {(nat.file, nat.inode) for nat in self._paths.nats}
        for gone in self._inside.keys() - wanted:
            self._inside.pop(gone).close()
        for fresh in wanted - self._inside.keys():
            with contextlib.suppress(OSError):  # deleted meanwhile: the next check sees it
                self._inside[fresh] = hear_routes(fresh[0])

    def _take_subflows(self) -> list[PathEvent]:
        if self._events is None:
            return []
        with self._lock:
            now = time.monotonic_ns()
            back = [self._take(event, now) for event in self._events.read()]
        return [_told(restored) for restored in back if restored is not None]

    def _take(self, event: PmEvent, now_ns: int) -> Restored | None:
        if self._ordering is not None and event.token not in self._left:
            self._ordering.take(event, now_ns)
        return self._losses.take(event, now_ns)

    def _restore(self) -> None:
        now = time.monotonic_ns()
        if self._ordering is not None:
            with self._lock:
                for token in self._left:
                    self._ordering.joins.leave(token)
        orders = [] if self._ordering is None else self._ordering.carry_out(now)
        with self._lock:
            for order in orders:
                self._losses.ordered(order.token, order.path, now)
            due = self._losses.due(now, self._paths.joining)
        for path in due:
            self._paths.renew(path)

    def close(self) -> None:
        """Hear no more."""
        if self._ordering is not None:
            self._ordering.close()
        self._leases.close()
        for one in (self._routes, *self._inside.values(), *(() if self._events is None else (self._events,))):
            one.close()
        with self._lock:
            fd, self._wake_fd = self._wake_fd, -1
            os.close(fd)


def _told(restored: Restored) -> PathEvent:
    cause = "" if restored.error is None else f", lost by {os.strerror(restored.error).lower()}"
    tries = "" if restored.attempts < 2 else f", {restored.attempts} attempts"
    detail = f"after {restored.took_ms:.0f} ms{cause}{tries}"
    return PathEvent("subflow_restored", restored.path, detail, took_ms=restored.took_ms)
