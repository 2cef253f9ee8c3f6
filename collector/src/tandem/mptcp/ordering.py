"""Orders subflows where the kernel's own path manager would not do: while the paths that are up have different families.

Then new connections of this network namespace leave their subflows to us (sysctl ``net.mptcp.path_manager``, ``net.mptcp.pm_type``
before Linux 6.15); with one family, and at the end, the kernel has them again. A connection keeps what it began with.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import socket
from collections.abc import Callable
from functools import partial

from tandem.mptcp import pm_choice
from tandem.mptcp.joins import Farewell, Joins, Order
from tandem.mptcp.paths import Paths
from tandem.mptcp.pm_commands import End, PmCommands
from tandem.mptcp.pm_events import PmEvent

log = logging.getLogger(__name__)


class Ordering:
    """For the thread that watches; ``why_not``: None, or why nothing can be ordered here. Hears nothing by itself: what is ordered is
    known to have come about by the events that ``take`` is given."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self.joins = Joins(paths.path_of)
        self.ours = False
        """New connections leave their subflows to us."""
        self.why_not: str | None = None
        self._commands: PmCommands | None = None
        try:
            self._commands = PmCommands()
        except (LookupError, OSError) as error:
            self.why_not = f"the kernel takes no orders for subflows: {error}"

    def choose(self) -> None:
        """Leave new connections' subflows to whom it fits now; what the kernel has otherwise (left by a collector that was killed) is
        put right."""
        if self._commands is None:
            return
        wanted = len({":" in address for address in self._paths.joining.values()}) > 1
        try:
            pm_choice.choose(wanted)
        except pm_choice.ChoiceError as error:
            self.ours = False
            self._tell(str(error) if wanted else None)
        else:
            self.ours = wanted
            self._tell(None)

    def _tell(self, why_not: str | None) -> None:
        if why_not is not None and why_not != self.why_not:
            log.warning(
                "a subflow of another family than its connection's first will not come back after a reset: %s", why_not
            )
        self.why_not = why_not

    def take(self, event: PmEvent, now_ns: int) -> None:
        """An event, at CLOCK_MONOTONIC ``now_ns``."""
        self.joins.take(event, now_ns, ours=self.ours)

    def next_ns(self) -> int | None:
        """When there is something to order; None while there is not."""
        return self.joins.next_ns(self._paths.joining)

    def carry_out(self, now_ns: int) -> list[Order]:
        """End what has lost its address, order what is due; the orders that the kernel took."""
        if self._commands is None:
            return []
        addresses = self._paths.joining
        for farewell in self.joins.farewells(addresses):
            self._end(self._commands, farewell)
        taken = []
        for order in self.joins.due(now_ns, addresses):
            try:
                self._open(self._commands, order)
            except OSError as error:
                # Unreachable just now: its turn comes again.
                self.joins.refused(order, error.errno or 0)
            else:
                taken.append(order)
        return taken

    def _open(self, commands: PmCommands, order: Order) -> None:
        interface = self._paths.interfaces[order.path]
        if interface is None:
            raise OSError(errno.ENODEV, "the path has no interface")
        local = End(order.local, id=self._paths.number(order.path), interface=socket.if_nametoindex(interface))
        commands.create(order.token, local, End(order.remote, order.port, order.remote_id))

    def _end(self, commands: PmCommands, farewell: Farewell) -> None:
        """Tell the peer, and end our side; whichever of the two has happened already is no error."""
        local, local_port, remote, remote_port = farewell.ends
        number = 0 if farewell.first else self._paths.number(farewell.path)
        _unless_gone(partial(commands.forget, farewell.token, number))
        if local is None or remote is None:
            return
        # The first subflow of a socket of both families has IPv4 as mapped addresses, a further one as it is.
        for prefix in ("",) if ":" in local else ("", "::ffff:"):
            ends = End(prefix + local, local_port or 0), End(prefix + remote, remote_port or 0)
            _unless_gone(partial(commands.destroy, farewell.token, *ends))

    def close(self) -> None:
        """Give new connections back to the kernel's path manager."""
        if self.ours:
            with contextlib.suppress(pm_choice.ChoiceError):  # said when it was tried
                pm_choice.choose(False)
            self.ours = False
        if self._commands is not None:
            self._commands.close()


def _unless_gone(order: Callable[[], None]) -> None:
    try:
        order()
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ESRCH, errno.ENOENT):
            raise
