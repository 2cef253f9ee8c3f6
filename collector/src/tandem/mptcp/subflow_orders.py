"""A connection of our own whose subflows are ordered one by one (``chosen``), beside all others, which keep the kernel's path manager."""

from __future__ import annotations

import os
import select
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Protocol, Self

from tandem.mptcp import sockets
from tandem.mptcp.chosen import Chosen, Way
from tandem.mptcp.joins import Order
from tandem.mptcp.pm_commands import End, PmCommands
from tandem.mptcp.pm_events import PmListener
from tandem.mptcp.routing import ENDPOINTS, MOST
from tandem.mptcp.statistics import Reader, StatisticsError

_LOOK_S = 0.001


class Halt(Protocol):
    """Who asks to end: an event, or an experiment's ``Stop``."""

    def wait(self, timeout: float, /) -> bool: ...


_MEND = "mend: CAP_NET_ADMIN, and Linux 5.19 or later with Multipath TCP"


class SubflowOrders:
    """To be entered before the connection's socket is made (with ``sockets.Options.by_orders``), so that no event is missed; ``begin``
    once it is connected; left before it is closed. ``interfaces``: the paths that get subflows, the primary first, with where each
    leaves. ``each``, ``told``: as ``Chosen``. UnsupportedError where this process may not order, or the kernel takes no orders."""

    def __init__(self, interfaces: Mapping[str, str], each: int, told: Sequence[str] = ()) -> None:
        self._interfaces = dict(interfaces)
        self._chosen = Chosen(tuple(interfaces), each, told)
        self._done = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._thread: threading.Thread | None = None
        try:
            self._events = PmListener()
            try:
                self._commands = PmCommands()
            except BaseException:
                self._events.close()
                raise
        except (LookupError, OSError) as error:
            os.close(self._done)
            why = error.strerror if isinstance(error, OSError) else error
            raise sockets.UnsupportedError(f"a number of subflows cannot be ordered here: {why}; {_MEND}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()
        self._events.close()
        self._commands.close()
        os.close(self._done)

    def end(self) -> None:
        """Order no more."""
        os.eventfd_write(self._done, 1)
        if self._thread is not None:
            self._thread.join()

    def begin(self, connection: socket.socket, path: str, told: Callable[[int], None]) -> bool:
        """Order for this connection from now on; False where it is plain TCP by now. ``told``: called before, with the kernel's token
        of the connection: others that restore subflows must leave it alone."""
        try:
            sample = Reader(connection).read()
        except StatisticsError:
            return False
        first = sample.subflows[0] if sample.subflows else None
        token = None if sample.mptcp is None else sample.mptcp.token
        if token is None or first is None or first.local is None or first.remote is None:
            return False
        told(token)
        ends = (first.local.host, first.remote.host, first.remote.port)
        self._chosen.begin(token, path, *ends, time.monotonic_ns())
        self._thread = threading.Thread(target=self._run, name="subflows", daemon=True)
        self._thread.start()
        return True

    def await_there(self, count: int, longest_s: float, stop: Halt) -> bool:
        """Wait until ``count`` subflows of the connection are there; False when the time is over or ``stop`` says so before."""
        until_ns = time.monotonic_ns() + int(longest_s * 1e9)
        while sum(way.alive for way in self._chosen.ways) < count:
            if time.monotonic_ns() > until_ns or stop.wait(_LOOK_S):
                return False
        return True

    @property
    def ways(self) -> list[Way]:
        """What was ordered, and what became of it. To be read after the end."""
        return self._chosen.ways

    def _run(self) -> None:
        missed = 0
        while True:
            for event in self._events.read():
                self._chosen.take(event, time.monotonic_ns())
            if self._events.missed != missed:
                missed = self._events.missed
                self._chosen.missed()
            addresses = {name: sockets.interface_addresses(i) for name, i in self._interfaces.items()}
            for order in self._chosen.due(time.monotonic_ns(), addresses):
                try:
                    self._open(order)
                except OSError as error:
                    self._chosen.refused(order, error.errno or 0)
            due = self._chosen.next_ns(addresses)
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
