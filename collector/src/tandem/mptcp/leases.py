"""The addresses of all modems behind NATs, kept; for the thread that watches."""

from __future__ import annotations

import contextlib
import logging
import math
from collections.abc import Sequence

from tandem.mptcp.iproute import IpError
from tandem.mptcp.nat import Nat
from tandem.mptcp.nat_lease import NatLease
from tandem.mptcp.paths import PathEvent, Paths

log = logging.getLogger(__name__)


class Leases:
    """One ``NatLease`` a NAT. A NAT whose modem has gone is left to the next check, which takes it down."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._kept: dict[tuple[Nat, int | None], NatLease | None] = {}
        """By NAT and its namespace, which may be another one of the same name. None: the modem speaks no DHCP."""

    def keep(self, nats: Sequence[Nat]) -> None:
        """Those NATs are up now."""
        wanted = {(nat, nat.inode) for nat in nats}
        for gone in self._kept.keys() - wanted:
            lease = self._kept.pop(gone)
            if lease is not None:
                lease.close()
        for fresh in wanted - self._kept.keys():
            self._kept[fresh] = None
            try:
                self._kept[fresh] = NatLease(fresh[0])
            except (IpError, OSError) as error:
                log.warning("%s: its address is not kept by DHCP: %s", fresh[0].interface, error)

    def _open(self) -> list[tuple[Nat, NatLease]]:
        return [(nat, lease) for (nat, _), lease in self._kept.items() if lease is not None]

    def filenos(self) -> list[int]:
        """For a selector."""
        return [lease.fileno() for _, lease in self._open()]

    def due_s(self) -> float:
        """When ``turn`` is to be called, CLOCK_MONOTONIC seconds; infinite while nothing is kept."""
        return min((lease.due_s for _, lease in self._open()), default=math.inf)

    def seen(self) -> None:
        """Something changed, here or behind a NAT."""
        for _, lease in self._open():
            with contextlib.suppress(IpError):
                lease.seen()

    def turn(self) -> list[PathEvent]:
        """Ask and take what is due; an event for each modem whose address or next hop changed."""
        events = []
        for nat, lease in self._open():
            with contextlib.suppress(IpError):
                given = lease.turn()
                if given is not None:
                    path = self._paths.follow(nat, nat.modem_gateway())
                    detail = (
                        f"{lease.name} behind {nat.interface}: now {given.address}, gateway {given.router or 'none'}"
                    )
                    events.append(PathEvent("endpoint_restored", path, detail))
        return events

    def close(self) -> None:
        """Keep nothing more."""
        self.keep(())
