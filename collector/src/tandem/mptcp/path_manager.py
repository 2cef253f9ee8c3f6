"""What the kernel's path manager is told: which of our addresses to use for subflows.

``PathManager`` is what ``paths`` needs of any kernel; ``UpstreamKernel`` is the one in Linux since 5.6, through ``ip mptcp``;
``kernel_v094`` has that of the v0.9x kernel.
"""

from __future__ import annotations

import threading
from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from tandem.mptcp.iproute import IpError, ip, ip_json, program


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One of our addresses, from which the kernel opens a subflow of each connection. ``id`` 1 to 255."""

    id: int
    address: str
    interface: str | None


@dataclass(frozen=True, slots=True)
class Limits:
    """``subflows``: further subflows a connection may have; ``accepted``: addresses of the peer that are accepted."""

    subflows: int
    accepted: int


class PathManager(Protocol):
    """A kernel's path manager. Every call raises ``IpError`` when the kernel refuses."""

    name: str

    def endpoints(self) -> dict[int, Endpoint]:
        """All endpoints of this network namespace by id, whoever made them."""
        ...

    def add(self, endpoint: Endpoint) -> None:
        """Make the endpoint; running connections get a subflow from it at once."""
        ...

    def remove(self, number: int) -> None:
        """Delete the endpoint; running connections close their subflow from it."""
        ...

    def limits(self) -> Limits:
        """The limits in force."""
        ...

    def set_limits(self, limits: Limits) -> None:
        """Set both limits."""
        ...

    def only_endpoints(self, interfaces: Collection[str]) -> None:
        """Of all ``interfaces`` that there are, have connections use those of the endpoints only."""
        ...

    def set_backup(self, number: int, backup: bool) -> None:
        """Tell the peers of running connections by MP_PRIO that the endpoint's subflows are backup, or no longer; kept when ``add`` makes
        the endpoint anew. From any thread."""
        ...

    def undo_backup(self, number: int) -> list[str]:
        """The command that takes ``set_backup`` back without this program; empty where nothing has to be."""
        ...

    def restore(self) -> None:
        """At the end: put back what was changed beside endpoints and limits."""
        ...


class UpstreamKernel:
    """The in-kernel path manager of Linux 5.6 and later."""

    name = "upstream"

    def __init__(self) -> None:
        self._backup: set[int] = set()
        self._lock = threading.Lock()
        """An endpoint made anew while it is made active again must not keep the order: the two come from different threads."""

    def endpoints(self) -> dict[int, Endpoint]:
        """See ``PathManager``."""
        found = {}
        for row in ip_json("mptcp", "endpoint", "show"):
            if "address" in row and "id" in row:
                number = int(row["id"])
                found[number] = Endpoint(number, str(row["address"]), row.get("dev"))
        return found

    def add(self, endpoint: Endpoint) -> None:
        """See ``PathManager``."""
        device = ("dev", endpoint.interface) if endpoint.interface else ()
        with self._lock:
            flags = ("subflow", "backup") if endpoint.id in self._backup else ("subflow",)
            ip("mptcp", "endpoint", "add", endpoint.address, *device, "id", str(endpoint.id), *flags)

    def remove(self, number: int) -> None:
        """See ``PathManager``."""
        ip("mptcp", "endpoint", "delete", "id", str(number))

    def limits(self) -> Limits:
        """See ``PathManager``."""
        # Not as JSON, which iproute2 6.1 does not have for limits: "add_addr_accepted 0 subflows 2".
        text = ip("mptcp", "limits", "show")
        words = text.split()
        row = dict(zip(words[0::2], words[1::2], strict=False))
        try:
            return Limits(int(row["subflows"]), int(row["add_addr_accepted"]))
        except (KeyError, ValueError) as error:
            raise IpError(f"ip mptcp limits: {text.strip()!r} is not understood") from error

    def set_limits(self, limits: Limits) -> None:
        """See ``PathManager``."""
        ip("mptcp", "limits", "set", "subflow", str(limits.subflows), "add_addr_accepted", str(limits.accepted))

    def only_endpoints(self, interfaces: Collection[str]) -> None:
        """Nothing to do: this kernel uses no other address."""

    def set_backup(self, number: int, backup: bool) -> None:
        """See ``PathManager``. An order that changes nothing sends nothing."""
        with self._lock:
            self._backup.discard(number)  # an order that is refused is not kept: nobody would take it back
            ip("mptcp", "endpoint", "change", "id", str(number), "backup" if backup else "nobackup")
            if backup:
                self._backup.add(number)

    def undo_backup(self, number: int) -> list[str]:
        """See ``PathManager``."""
        return [program(), "mptcp", "endpoint", "change", "id", str(number), "nobackup"]

    def restore(self) -> None:
        """Nothing to put back."""
