"""One connection with exactly the subflows that were asked for: which to order, and when again. Pure: events and times in, orders out.

A way is a path and one of the server's addresses. Each path in use gets a subflow to the first ``each`` addresses of the server that it
can reach (the kernel pairs addresses of one family only): the one connected to, those that the server told beforehand, those that it
announces within the connection.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tandem.mptcp.joins import Order
from tandem.mptcp.losses import BACKOFF_S, SETTLED_NS
from tandem.mptcp.pm_events import PmEvent


@dataclass(slots=True)
class Way:
    """What became of one way. Times are CLOCK_MONOTONIC ns. ``ordered_ns``: first; None for the connection's own first subflow.
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


class Chosen:
    """For one connection; ``begin`` tells which. ``paths``: those that get subflows, the primary first. ``each``: addresses of the
    server on each path. ``told``: further addresses that the server told beforehand."""

    def __init__(self, paths: Sequence[str], each: int, told: Sequence[str] = ()) -> None:
        self._paths, self._each = tuple(paths), each
        self._remotes: list[tuple[str, int]] = [(host, 0) for host in told]
        self._token: int | None = None
        self._port = 0
        self._begun = False
        self._over = False
        self._owners: dict[str, str] = {}
        self._ways: dict[tuple[str, str], Way] = {}
        self._unplaced: dict[tuple[str, str], tuple[PmEvent, int]] = {}
        """Last news of subflows that we did not order, from addresses that are no path's as far as we know yet."""

    def begin(self, token: int, path: str, local: str, remote: str, port: int, now_ns: int) -> None:
        """The connection ``token`` began over ``path`` from our address ``local`` to the server's ``remote``."""
        self._token, self._port = token, port
        self._remotes = [(remote, 0), *(known for known in self._remotes if known[0] != remote)]
        self._owners[local] = path
        self._ways[path, remote] = Way(path, remote, came_ns=now_ns, alive=True)

    def take(self, event: PmEvent, now_ns: int) -> None:
        """An event of any connection."""
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
                _heard(self._ways.setdefault((path, event.remote), Way(path, event.remote)), event, now_ns)

    def missed(self) -> None:
        """Events were lost, among them perhaps that the peer takes further subflows."""
        self._begun = self._token is not None

    def due(self, now_ns: int, addresses: Mapping[str, Sequence[str]]) -> list[Order]:
        """What is to be ordered now; each counts as an attempt. ``addresses``: ours, by path."""
        orders = []
        for way, local, number in self._missing(addresses):
            if way.due_ns > now_ns or self._token is None:
                continue
            way.attempts += 1
            way.due_ns = now_ns + int(BACKOFF_S[min(way.attempts, len(BACKOFF_S) - 1)] * 1e9)
            way.ordered_ns, way.pending = way.ordered_ns or now_ns, True
            self._owners[local] = way.path
            orders.append(Order(self._token, way.path, local, way.remote, self._port, number))
        return orders

    def next_ns(self, addresses: Mapping[str, Sequence[str]]) -> int | None:
        """When ``due`` will have something (0: now); None while nothing is to be ordered."""
        return min((way.due_ns for way, _, _ in self._missing(addresses)), default=None)

    def _missing(self, addresses: Mapping[str, Sequence[str]]) -> list[tuple[Way, str, int]]:
        """Ways to be ordered, with our address and the number of the server's."""
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
                way = self._ways.setdefault((path, remote), Way(path, remote))
                if not (way.alive or way.pending or way.given_up):
                    found.append((way, local, number))
        return found

    def _place(self, addresses: Mapping[str, Sequence[str]]) -> None:
        """What was heard of addresses before anybody said whose they are."""
        for path, ones in addresses.items():
            for local, remote in [pair for pair in self._unplaced if pair[0] in ones]:
                event, heard_ns = self._unplaced.pop((local, remote))
                self._owners[local] = path
                _heard(self._ways.setdefault((path, remote), Way(path, remote)), event, heard_ns)

    def _reached(self, locals_: Sequence[str]) -> list[tuple[str, int, str]]:
        """The server's addresses that a path with these addresses gets subflows to, with their numbers and ours for each."""
        pairs = []
        for remote, number in self._remotes:
            local = next((one for one in locals_ if (":" in one) == (":" in remote)), None)
            if local is not None:
                pairs.append((remote, number, local))
        return pairs[: self._each]

    def refused(self, order: Order, code: int) -> None:
        """The kernel refused an order with errno ``code``; it is not asked again where that cannot help."""
        way = self._ways[order.path, order.remote]
        way.pending, way.error = False, code
        if code == errno.ESRCH:
            self._over = True  # the connection is no more
        elif code in (errno.EINVAL, errno.EOPNOTSUPP, errno.EPERM):
            way.given_up = True  # it has the kernel's path manager, or a socket of one family

    @property
    def ways(self) -> list[Way]:
        """All that were to be, in the order in which they were ordered; the first is the connection's own."""
        return list(self._ways.values())


def _heard(way: Way, event: PmEvent, now_ns: int) -> None:
    if event.kind == "subflow_established":
        way.alive, way.pending, way.came_ns = True, False, way.came_ns or now_ns
        return
    if way.came_ns is not None and now_ns - way.came_ns < SETTLED_NS and way.attempts:
        way.came_ns, way.taken_back = None, True  # a server that has enough refuses only after the handshake
    elif way.alive:
        way.attempts = 0
    if way.attempts < 2:
        way.due_ns = now_ns  # it may just have been unlucky; after that as the attempts before say
    way.alive, way.pending, way.error = False, False, event.error
