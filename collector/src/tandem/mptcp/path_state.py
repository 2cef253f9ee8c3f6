"""What may be said of a path from what the kernel shows: its state, its address, its next hop. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from tandem.mptcp.iproute import Interface

State = Literal["up", "no_address", "ipv6_only_unusable", "colliding", "no_route", "down"]
"""up: used. down: no such interface, or it is down or without carrier. no_address: it has no global address (or not the one
configured). ipv6_only_unusable: it has IPv6 alone, and this kernel's Multipath TCP does not. colliding: another path has the same
address, and it could not be put behind a NAT. no_route: no next hop is known."""

Finder = Callable[[], str | None]
"""The name that an interface has now; None while there is none."""


@dataclass(frozen=True, slots=True)
class Path:
    """A path as configured. ``interface``: a name, or what finds it. ``gateway``: the next hop, None on point-to-point interfaces
    or to take the one of the interface's own default route. ``address``: which of the interface's addresses, None for its first."""

    name: str
    interface: str | Finder
    gateway: str | None = None
    address: str | None = None

    def find(self) -> str | None:
        """The interface's name now."""
        return self.interface if isinstance(self.interface, str) else self.interface()


@dataclass(frozen=True, slots=True)
class PathStatus:
    """A path now. ``interface``: where its connections leave, ``address`` and ``gateway`` None unless it has them. ``detail``: for
    people."""

    state: State
    interface: str | None
    address: str | None
    gateway: str | None
    detail: str


@dataclass(frozen=True, slots=True)
class DefaultRoute:
    """A default route that somebody else made, as a DHCP client or the kernel upon a router's advertisement."""

    interface: str
    gateway: str | None
    metric: int


def judge(
    path: Path,
    name: str | None,
    interface: Interface | None,
    routes: Sequence[DefaultRoute],
    *,
    mptcp6: bool,
) -> PathStatus:
    """The path's state but for collisions. ``name``: what ``path.find`` said; ``routes``: others' default routes of both families;
    ``mptcp6``: this kernel's Multipath TCP has IPv6."""
    if name is None or interface is None:
        return PathStatus("down", name, None, None, "there is no such modem" if name is None else f"there is no {name}")
    if not interface.usable:
        return PathStatus("down", name, None, None, f"{name} is down or has no carrier")
    address = _address(path, interface)
    if address is None:
        wanted = "no address" if path.address is None else f"not the address {path.address}"
        return PathStatus("no_address", name, None, None, f"{name} has {wanted}")
    if ":" in address and not mptcp6:
        why = f"{name} has {address} only, and this kernel's Multipath TCP has no IPv6"
        return PathStatus("ipv6_only_unusable", name, None, None, why)
    known, gateway = _gateway(path, interface, address, routes)
    if not known:
        why = (
            f"{name} has {address}, but "
            + (f"{path.gateway} is in none of its networks and " if path.gateway else "no gateway is configured and ")
            + "it has no default route"
        )
        return PathStatus("no_route", name, address, None, why)
    return PathStatus("up", name, address, gateway, f"{name} has {address}")


def _address(path: Path, interface: Interface) -> str | None:
    """IPv4 where there is some."""
    every = (*interface.addresses, *interface.addresses6)
    if path.address is None:
        return every[0] if every else None
    return path.address if path.address in every else None


def _gateway(path: Path, interface: Interface, address: str, routes: Sequence[DefaultRoute]) -> tuple[bool, str | None]:
    """Whether there is a way, and its next hop."""
    version = ipaddress.ip_address(address).version
    if path.gateway is not None and _reachable(path.gateway, version, interface):
        return True, path.gateway
    learned = [r for r in routes if r.interface == interface.name and _suits(r, version)]
    if learned:
        return True, min(learned, key=lambda route: route.metric).gateway
    return interface.point_to_point, None


def _suits(route: DefaultRoute, version: int) -> bool:
    return route.gateway is None or ipaddress.ip_address(route.gateway).version == version


def _reachable(gateway: str, version: int, interface: Interface) -> bool:
    hop = ipaddress.ip_address(gateway)
    if hop.version != version:
        return False
    return hop.is_link_local or any(hop in ipaddress.ip_network(net, strict=False) for net in interface.networks)
