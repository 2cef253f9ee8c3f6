"""What the kernel is told of one path: its routing table, its rules, its default route in the main table, its endpoint.

For path i (from 0): table TABLES+i with the default route over its interface; rules ``from ADDRESS`` and ``oif INTERFACE`` to
that table; endpoint ENDPOINTS+i for its address; and a default route in the main table with a large metric, which unbound
programs use only when nothing better exists. Tables, rule priorities, route protocol and endpoint ids come from a range of our
own, and ``clear`` touches nothing else. Without the ``from`` rule a join stays in SYN-SENT; without the ``oif`` rule a socket
bound to the interface has no route.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tandem.mptcp.iproute import IpError, ip, ip_json
from tandem.mptcp.path_manager import Endpoint, PathManager
from tandem.mptcp.path_state import DefaultRoute

MOST = 8
TABLES = 7100
PRIORITIES = 7100
ENDPOINTS = 101
METRIC = 7100
PROTOCOL = "71"
"""The mark on our routes (a route's ``protocol``); 71 has no name in rt_protos of any distribution met."""

_IPV6 = Path("/proc/thread-self/net/if_inet6")


@dataclass(frozen=True, slots=True)
class Way:
    """How a path that is up leaves. ``gateway`` None: straight out of a point-to-point interface."""

    interface: str
    address: str
    gateway: str | None

    @property
    def family(self) -> str:
        """As an option of ``ip``."""
        return "-6" if ":" in self.address else "-4"

    def endpoint(self, index: int) -> Endpoint:
        """Path ``index``'s endpoint."""
        return Endpoint(ENDPOINTS + index, self.address, self.interface)


def became(had: Way, way: Way) -> str:
    """What is different now, in words."""
    if had.interface != way.interface:
        return f"{had.interface} {had.address} became {way.interface} {way.address}"
    if had.address != way.address:
        return f"{way.interface}: {had.address} became {way.address}"
    return f"{way.interface}: gateway {had.gateway or 'none'} became {way.gateway or 'none'}"


class Kernel:
    """What the kernel has now: endpoints, rules, routes; those of IPv6 only where asked for, and where it has IPv6."""

    def __init__(self, manager: PathManager, *, ipv6: bool) -> None:
        self.endpoints = manager.endpoints()
        families = ("-4", "-6") if ipv6 and _IPV6.exists() else ("-4",)
        self._rules = {family: ip_json(family, "rule", "show") for family in families}
        self._routes = {family: ip_json(family, "route", "show", "table", "all") for family in families}

    def rule(self, family: str, priority: int, key: str | None = None, value: str | None = None) -> bool:
        """Whether there is such a rule."""
        rows = self._rules.get(family, [])
        return any(r.get("priority") == priority and (key is None or r.get(key) == value) for r in rows)

    def route(self, family: str, table: str, metric: int | None = None, way: Way | None = None) -> bool:
        """Whether our default route is there; with ``way`` only one that leads that way over an interface that is up."""
        return any(
            str(r.get("protocol")) == PROTOCOL
            and str(r.get("table", "main")) == table
            and (metric is None or r.get("metric") == metric)
            and (way is None or _leads(r, way))
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


def _leads(route: dict[str, Any], way: Way) -> bool:
    dead = {"dead", "linkdown"} & set(route.get("flags", []))
    return not dead and (route.get("dev"), route.get("gateway")) == (way.interface, way.gateway)


def mend(index: int, way: Way, manager: PathManager, kernel: Kernel, *, resting: bool = False) -> list[str]:
    """Make what is missing or wrong of path ``index``; the names of what was. ``resting``: it has no endpoint, and one of ours is
    deleted."""
    family = way.family
    table, priority, metric = str(TABLES + index), PRIORITIES + 2 * index, METRIC + index
    to = ("default", *(("via", way.gateway) if way.gateway else ()), "dev", way.interface, "protocol", PROTOCOL)
    missing: list[tuple[str, Callable[[], object]]] = []
    if not kernel.route(family, table, way=way):
        # src: an interface may have several addresses
        missing.append(("route", partial(ip, family, "route", "replace", *to, "src", way.address, "table", table)))
    if not kernel.route(family, "main", metric, way):
        missing.append(("default route", partial(ip, family, "route", "replace", *to, "metric", str(metric))))
    for number, key, word, value in (
        (priority, "src", "from", way.address),
        (priority + 1, "oif", "oif", way.interface),
    ):
        if not kernel.rule(family, number, key, value):
            add = partial(ip, family, "rule", "add", word, value, "table", table, "priority", str(number))
            missing.append(("rule", add))
    wanted, ours = way.endpoint(index), kernel.endpoints.get(ENDPOINTS + index)
    if resting:
        if ours is not None:
            quietly(partial(manager.remove, ENDPOINTS + index))
    elif ours is not None and ours != wanted:  # of an interface that went and came back, or an address of before
        missing.append(("endpoint", partial(renew, wanted, manager)))
    elif way.address not in {e.address for e in kernel.endpoints.values()}:
        missing.append(("endpoint", partial(manager.add, wanted)))
    for _, make in missing:
        make()
    return [what for what, _ in missing]


def renew(endpoint: Endpoint, manager: PathManager) -> None:
    """Delete the endpoint and make it again: running connections open the subflow from it anew, also the first one."""
    quietly(partial(manager.remove, endpoint.id))
    manager.add(endpoint)


def clear(index: int, manager: PathManager, kernel: Kernel) -> None:
    """Delete what exists of path ``index``'s range."""
    table, priority, metric = str(TABLES + index), PRIORITIES + 2 * index, METRIC + index
    if kernel.endpoints.pop(ENDPOINTS + index, None) is not None:
        quietly(partial(manager.remove, ENDPOINTS + index))
    for family in ("-4", "-6"):
        for number in (priority, priority + 1):
            if kernel.rule(family, number):
                quietly(partial(ip, family, "rule", "delete", "priority", str(number), "table", table))
        if kernel.route(family, table):
            quietly(partial(ip, family, "route", "flush", "table", table, "protocol", PROTOCOL))
        if kernel.route(family, "main", metric):
            delete = ("route", "delete", "default", "metric", str(metric), "protocol", PROTOCOL)
            quietly(partial(ip, family, *delete))


def quietly(action: Callable[[], object]) -> None:
    """Run a deletion whose object may just have vanished with its interface; any other refusal is raised."""
    try:
        action()
    except IpError as error:
        if not any(word in str(error) for word in ("No such", "not found", "Cannot find", "FIB table does not exist")):
            raise
