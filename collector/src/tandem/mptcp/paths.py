"""The kit's paths in the kernel: found, judged, parted where they collide, and given their routes, rules and endpoints.

For path i (from 0): table TABLES+i with the default route over its interface; rules ``from ADDRESS`` and ``oif INTERFACE`` to
that table; endpoint ENDPOINTS+i for its address; and a default route in the main table with a large metric, which unbound
programs use only when nothing better exists. Tables, rule priorities, route protocol and endpoint ids come from a range of our
own, and ``KernelState.clear`` touches nothing else. Without the ``from`` rule a join stays in SYN-SENT; without the ``oif`` rule a socket
bound to the interface has no route. A path whose address another path has is put behind a NAT (``nat``).
"""

from __future__ import annotations

import contextlib
import ipaddress
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path as File
from types import MappingProxyType
from typing import Any, Literal

from tandem.mptcp import kernels, sockets
from tandem.mptcp.iproute import PROTOCOL, Interface, IpError, interfaces, ip, ip_json, quietly
from tandem.mptcp.nat import Nat
from tandem.mptcp.path_manager import ENDPOINTS, MOST, Endpoint, PathManager

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
    path: Path, name: str | None, interface: Interface | None, routes: Sequence[DefaultRoute], *, mptcp6: bool
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


class SuspendedPaths:
    """Paths that carry no further subflows for a while: requested by any thread, applied by the one that checks the paths."""

    def __init__(self) -> None:
        self.requested: frozenset[str] = frozenset()
        self.applied: frozenset[str] = frozenset()
        self._changed = threading.Condition()

    def request(self, names: Collection[str]) -> None:
        """From the next check on these paths are suspended, and all others are not."""
        with self._changed:
            self.requested = frozenset(names)

    @property
    def due(self) -> bool:
        """Whether a check has to be made for it."""
        return self.requested != self.applied

    def apply(self, names: frozenset[str]) -> None:
        """A check has made it so."""
        with self._changed:
            self.applied = names
            self._changed.notify_all()

    def wait(self, timeout_s: float) -> bool:
        """Until a check has applied what was requested; whether one did in time."""
        with self._changed:
            return self._changed.wait_for(lambda: not self.due, timeout_s)


TABLES = 7100
PRIORITIES = 7100
METRIC = 7100

_IPV6 = File("/proc/thread-self/net/if_inet6")


@dataclass(frozen=True, slots=True)
class PathRoute:
    """How a path that is up leaves. ``gateway`` None: straight out of a point-to-point interface."""

    interface: str
    address: str
    gateway: str | None

    @property
    def family(self) -> str:
        """As an option of ``ip``."""
        return "-6" if ":" in self.address else "-4"

    def endpoint(self, index: int) -> Endpoint:
        return Endpoint(ENDPOINTS + index, self.address, self.interface)


def _difference(had: PathRoute, route: PathRoute) -> str:
    if had.interface != route.interface:
        return f"{had.interface} {had.address} became {route.interface} {route.address}"
    if had.address != route.address:
        return f"{route.interface}: {had.address} became {route.address}"
    return f"{route.interface}: gateway {had.gateway or 'none'} became {route.gateway or 'none'}"


class KernelState:
    """What the kernel has now: endpoints, rules, routes; those of IPv6 only on request, and where it has IPv6. ``clear`` and ``repair``
    change it to what a path needs."""

    def __init__(self, manager: PathManager, *, ipv6: bool) -> None:
        self._manager = manager
        self.endpoints = manager.endpoints()
        families = ("-4", "-6") if ipv6 and _IPV6.exists() else ("-4",)
        self._rules = {family: ip_json(family, "rule", "show") for family in families}
        self._routes = {family: ip_json(family, "route", "show", "table", "all") for family in families}

    def rule(self, family: str, priority: int, key: str | None = None, value: str | None = None) -> bool:
        rows = self._rules.get(family, [])
        return any(r.get("priority") == priority and (key is None or r.get(key) == value) for r in rows)

    def route(self, family: str, table: str, metric: int | None = None, route: PathRoute | None = None) -> bool:
        """Whether our default route is there; with ``route`` only one that leads that way over an interface that is up."""
        return any(
            str(r.get("protocol")) == PROTOCOL
            and str(r.get("table", "main")) == table
            and (metric is None or r.get("metric") == metric)
            and (route is None or _leads(r, route))
            for r in self._routes.get(family, [])
        )

    def others_defaults(self) -> Sequence[DefaultRoute]:
        """Default routes of the main table that are not ours."""
        return [
            DefaultRoute(str(r["dev"]), r.get("gateway"), int(r.get("metric", 0)))
            for rows in self._routes.values()
            for r in rows
            if r.get("dst") == "default" and r.get("type", "unicast") == "unicast" and "dev" in r
            if str(r.get("protocol")) != PROTOCOL and r.get("table", "main") == "main"
        ]

    def repair(self, index: int, route: PathRoute, *, suspended: bool = False) -> list[str]:
        """Make what is missing or wrong of path ``index``; the names of what was. ``suspended``: it has no endpoint, and one of ours is
        deleted."""
        family, manager = route.family, self._manager
        table, priority, metric = str(TABLES + index), PRIORITIES + 2 * index, METRIC + index
        hop = ("via", route.gateway) if route.gateway else ()
        to = ("default", *hop, "dev", route.interface, "protocol", PROTOCOL)
        missing: list[tuple[str, Callable[[], object]]] = []
        if not self.route(family, table, route=route):
            # src: an interface may have several addresses
            replace_own = (family, "route", "replace", *to, "src", route.address, "table", table)
            missing.append(("route", partial(ip, *replace_own)))
        if not self.route(family, "main", metric, route):
            missing.append(("default route", partial(ip, family, "route", "replace", *to, "metric", str(metric))))
        for number, key, word, value in (
            (priority, "src", "from", route.address),
            (priority + 1, "oif", "oif", route.interface),
        ):
            if not self.rule(family, number, key, value):
                add = partial(ip, family, "rule", "add", word, value, "table", table, "priority", str(number))
                missing.append(("rule", add))
        wanted, ours = route.endpoint(index), self.endpoints.get(ENDPOINTS + index)
        if suspended:
            if ours is not None:
                quietly(partial(manager.remove, ENDPOINTS + index))
        elif ours is not None and ours != wanted:  # of an interface that went and came back, or an address of before
            missing.append(("endpoint", partial(renew, wanted, manager)))
        elif route.address not in {e.address for e in self.endpoints.values()}:
            missing.append(("endpoint", partial(manager.add, wanted)))
        for _, make in missing:
            make()
        return [what for what, _ in missing]

    def clear(self, index: int) -> None:
        """Delete what exists of path ``index``'s range."""
        table, priority, metric = str(TABLES + index), PRIORITIES + 2 * index, METRIC + index
        if self.endpoints.pop(ENDPOINTS + index, None) is not None:
            quietly(partial(self._manager.remove, ENDPOINTS + index))
        for family in ("-4", "-6"):
            for number in (priority, priority + 1):
                if self.rule(family, number):
                    quietly(partial(ip, family, "rule", "delete", "priority", str(number), "table", table))
            if self.route(family, table):
                quietly(partial(ip, family, "route", "flush", "table", table, "protocol", PROTOCOL))
            if self.route(family, "main", metric):
                delete = ("route", "delete", "default", "metric", str(metric), "protocol", PROTOCOL)
                quietly(partial(ip, family, *delete))


def _leads(row: dict[str, Any], route: PathRoute) -> bool:
    dead = {"dead", "linkdown"} & set(row.get("flags", []))
    return not dead and (row.get("dev"), row.get("gateway")) == (route.interface, route.gateway)


def renew(endpoint: Endpoint, manager: PathManager) -> None:
    """Delete the endpoint and make it again: running connections open the subflow from it anew, also the first one."""
    quietly(partial(manager.remove, endpoint.id))
    manager.add(endpoint)


@dataclass(frozen=True, slots=True)
class PathEvent:
    """What was seen of a path: ``kind`` is path_state, path_up, path_down, endpoint_restored, subflow_restored or sim_mismatch (as in
    ``schema.metrics.EVENT_KINDS``); ``state`` with path_state, ``took_ms`` with subflow_restored."""

    kind: str
    path: str
    detail: str
    state: str | None = None
    took_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Reach:
    """How to talk to a modem's own page: a socket bound to ``interface`` (SO_BINDTODEVICE) that connects to ``address``.

    That holds for every address of the modem, not its page's alone, whether or not the path is behind a NAT, and where two modems
    have the same addresses: what is bound to the interface has the path's own routing table."""

    interface: str
    address: str | None


class Paths:
    """The paths of one collector. To be called by one thread at a time; the properties may be read by others. Needs CAP_NET_ADMIN in
    this network namespace; to part paths that collide also CAP_SYS_ADMIN, without which one of them stays ``colliding``."""

    def __init__(self, paths: Sequence[Path], manager: PathManager | None = None) -> None:
        if len(paths) > MOST:
            raise ValueError(f"{len(paths)} paths; at most {MOST} are supported, as many as the kernel takes endpoints")
        self.paths = tuple(paths)
        self._manager: PathManager = kernels.here().path_manager() if manager is None else manager
        self._path_routes: dict[str, PathRoute] = {}
        self._statuses: dict[str, PathStatus] = {}
        self._nats: dict[str, Nat] = {}
        self._owners: dict[str, str] = {}
        self._modem_gateways: dict[str, str | None] = {}
        fixed = {p.name: p.interface if isinstance(p.interface, str) else None for p in paths}
        self._interfaces: dict[str, str | None] = fixed
        self.interfaces: Mapping[str, str | None] = MappingProxyType(fixed)
        """Where each path's connections leave now, always the same mapping; None while its interface is not known."""
        self.suspended = SuspendedPaths()
        """Paths that have routes and no endpoint: connections have no subflow there, unless it is their first."""

    @property
    def addresses(self) -> dict[str, str]:
        """The address of each path that is up, by name, as of the last ``apply`` or ``check``."""
        return {name: route.address for name, route in self._path_routes.copy().items()}

    @property
    def joining(self) -> dict[str, str]:
        """As ``addresses``, without the paths that are suspended."""
        return {name: address for name, address in self.addresses.items() if name not in self.suspended.requested}

    @property
    def statuses(self) -> dict[str, PathStatus]:
        """All paths, as of the last ``apply`` or ``check``."""
        return self._statuses.copy()

    @property
    def nats(self) -> list[Nat]:
        return list(self._nats.values())

    def follow(self, nat: Nat, gateway: str | None) -> str:
        """The modem behind ``nat`` has another next hop now, which is where its page is; the path's name."""
        name = self.paths[nat.index].name
        self._modem_gateways[name] = gateway
        return name

    def reach(self, name: str) -> Reach | None:
        """How to talk to the modem of path ``name``: ``address`` is its side of the link, which for a modem that routes (HiLink and
        its like) is where its page is; None where the link has no next hop. None while the path has no interface with an address."""
        status = self._statuses.get(name)
        if status is None or status.interface is None or status.address is None or status.state == "colliding":
            return None
        return Reach(status.interface, self._modem_gateways.get(name, status.gateway))

    def number(self, name: str) -> int:
        """The number of the path's address, as endpoint and in connections."""
        return ENDPOINTS + next(i for i, path in enumerate(self.paths) if path.name == name)

    def path_of(self, address: str) -> str | None:
        """The path that has, or had last, this address."""
        return self._owners.get(address)

    def apply(self) -> list[PathEvent]:
        """Configure every path that can be used; left-overs of an earlier life are removed first. A path_state event for each path, and
        path_up or path_down. IpError when the kernel refuses (no CAP_NET_ADMIN, no Multipath TCP); what was made until then is undone.
        """
        self.remove()
        try:
            return self.check()
        except IpError:
            with contextlib.suppress(IpError):  # the first refusal is the one to tell
                self.remove()
            raise

    def check(self) -> list[PathEvent]:
        """Compare with the kernel and repair: an interface, address or gateway that changed, came or went, a missing endpoint, rule or
        route, two paths with one address. Four calls of ``ip``; six while a path has IPv6 only, one more for each NAT.

        A path that came back gets its endpoint anew, since the kernel does not open a lost subflow again by itself.
        """
        present = interfaces()
        found = {path.name: path.find() for path in self.paths}
        for path in self.paths:
            self._check_nat(path, found, present)
        lonely6 = any(i.addresses6 and not i.addresses for i in present.values() if i.name in found.values())
        wants6 = lonely6 or any(":" in (path.address or "") for path in self.paths)
        ipv6 = wants6 or any(route.family == "-6" for route in self._path_routes.values())
        kernel = KernelState(self._manager, ipv6=ipv6)
        mptcp6 = wants6 and sockets.multipath6()
        others = kernel.others_defaults()
        seen = {
            path.name: self._nat_status(path)
            or judge(path, found[path.name], present.get(found[path.name] or ""), others, mptcp6=mptcp6)
            for path in self.paths
        }
        events: list[PathEvent] = []
        if self._separate(seen, events):
            kernel = KernelState(self._manager, ipv6=ipv6)
        # Room for a subflow a path. Where paths have different families, the server's address of the other family is accepted: the kernel
        # pairs addresses of one family only.
        mixed = len({":" in one.address for one in seen.values() if one.state == "up" and one.address}) > 1
        self._manager.raise_limits(len(self.paths), len(self.paths) if mixed else 0)
        suspended = self.suspended.requested
        for index, path in enumerate(self.paths):
            events += self._reconcile(index, path, seen[path.name], kernel, suspended)
        self._manager.only_endpoints(present.keys())
        self.suspended.apply(suspended)
        return events

    def _check_nat(self, path: Path, found: dict[str, str | None], present: dict[str, Interface]) -> None:
        """Take down a NAT whose modem has gone, or come back as a new interface."""
        nat = self._nats.get(path.name)
        if nat is None:
            return
        try:
            behind = nat.inside()
        except IpError:
            behind = {}  # somebody deleted the namespace
        if behind and found[path.name] not in present:
            return
        nat.remove()
        del self._nats[path.name]
        present.clear()
        present.update(interfaces())
        found[path.name] = path.find()

    def _nat_status(self, path: Path) -> PathStatus | None:
        """The status of a path behind a NAT; None when it is behind none."""
        nat = self._nats.get(path.name)
        if nat is None:
            return None
        modem = next(iter(nat.inside().values()), None)
        if modem is None or not modem.usable:
            return PathStatus("down", nat.interface, None, None, f"behind {nat.namespace}: down or without carrier")
        if not modem.addresses:
            return PathStatus("no_address", nat.interface, None, None, f"behind {nat.namespace}: no address")
        detail = f"{modem.name} has {modem.addresses[0]}, as another path; behind {nat.interface} {nat.address}"
        return PathStatus("up", nat.interface, nat.address, nat.gateway, detail)

    def _separate(self, seen: dict[str, PathStatus], events: list[PathEvent]) -> bool:
        """Part paths that have one address: who had it before keeps it, else who comes first in the configuration."""
        owners: dict[str, str] = {}
        parted = False
        holding = sorted(
            self.paths, key=lambda p: self._addresses_of(p) != (seen[p.name].interface, seen[p.name].address)
        )
        for path in holding:
            status = seen[path.name]
            if status.address is None or status.state != "up":
                continue
            owner = owners.setdefault(status.address, path.name)
            if owner == path.name:
                continue
            why = f"{status.interface} has {status.address}, as path {owner}"
            nat = Nat(self.paths.index(path))
            try:
                if ":" in status.address or status.interface is None:
                    raise IpError("only IPv4 can be put behind a NAT")
                self._clear_route(path.name)
                nat.make(status.interface, status.gateway)
            except IpError as error:
                refused = f"{error}; hint: CAP_SYS_ADMIN for the collector, or another address for one of the modems"
                seen[path.name] = replace(status, state="colliding", gateway=None, detail=f"{why}: {refused}")
                continue
            parted = True
            self._nats[path.name] = nat
            self._modem_gateways[path.name] = status.gateway
            events.append(PathEvent("path_state", path.name, why, "colliding"))
            self._statuses[path.name] = replace(status, state="colliding", gateway=None, detail=why)
            seen[path.name] = self._nat_status(path) or status
        return parted

    def _addresses_of(self, path: Path) -> tuple[str | None, str | None]:
        route = self._path_routes.get(path.name)
        return (None, None) if route is None else (route.interface, route.address)

    def _reconcile(
        self, index: int, path: Path, status: PathStatus, kernel: KernelState, suspended: Collection[str]
    ) -> list[PathEvent]:
        """Make the kernel agree with ``status``; the events of it."""
        events: list[PathEvent] = []
        name, before, had = path.name, self._statuses.get(path.name), self._path_routes.get(path.name)
        if name not in self._nats:
            self._modem_gateways.pop(name, None)
        route = None
        if status.state == "up" and status.interface is not None and status.address is not None:
            route = PathRoute(status.interface, status.address, status.gateway)
        if route is not None and route == had:
            repaired = kernel.repair(index, route, suspended=name in suspended)
            if repaired and not (
                name in self.suspended.applied and repaired == ["endpoint"]
            ):  # which was not lost but taken away
                events.append(PathEvent("endpoint_restored", name, "missing: " + ", ".join(repaired)))
        else:
            if had is not None:
                self._path_routes.pop(name)
                kernel.clear(index)
            if route is not None:
                fresh = KernelState(self._manager, ipv6=route.family == "-6")
                fresh.clear(index)
                fresh.repair(index, route, suspended=name in suspended)
                self._path_routes[name] = route
                self._owners[route.address] = name
                if had is not None:
                    events.append(PathEvent("endpoint_restored", name, _difference(had, route)))
        if before is None or before.state != status.state:
            events.append(PathEvent("path_state", name, status.detail, status.state))
            if (route is None) != (had is None) or before is None:
                kind = "path_down" if route is None else "path_up"
                lost = f"lost {had.address}: {status.detail}" if had is not None else status.detail
                events.append(PathEvent(kind, name, lost))
        self._statuses[name] = status
        if status.interface is not None or not isinstance(path.interface, str):
            self._interfaces[name] = status.interface
        return events

    def _clear_route(self, name: str) -> None:
        """A path that is about to be moved gives up what it had."""
        had = self._path_routes.pop(name, None)
        if had is not None:
            KernelState(self._manager, ipv6=had.family == "-6").clear(self.number(name) - ENDPOINTS)

    def renew(self, name: str) -> bool:
        """Make the path's endpoint anew, for connections to open a subflow from it; False while the path is suspended or not up, or another
        program made the endpoint."""
        route, number = self._path_routes.get(name), self.number(name)
        if route is None or name in self.suspended.requested or number not in self._manager.endpoints():
            return False
        renew(route.endpoint(number - ENDPOINTS), self._manager)
        return True

    @property
    def manager(self) -> PathManager:
        return self._manager

    def remove(self) -> None:
        """Undo everything of our range, also of an earlier life; what is gone already is no error."""
        kernel = KernelState(self._manager, ipv6=True)
        for index in range(MOST):
            kernel.clear(index)
            Nat(index).remove()
        for known in (self._path_routes, self._statuses, self._nats, self._modem_gateways):
            known.clear()
        self._manager.restore()
