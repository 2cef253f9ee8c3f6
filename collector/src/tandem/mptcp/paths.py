"""Routes, rules and endpoints of the kit's paths, so that each subflow leaves by its own interface.

For path i (from 0): table TABLES+i with the default route over its interface; rules ``from ADDRESS`` and ``oif INTERFACE`` to
that table; endpoint ENDPOINTS+i for its address; and a default route in the main table with a large metric, which unbound
programs use only when nothing better exists. Tables, rule priorities, route protocol and endpoint ids come from a range of our
own, and ``remove`` touches nothing else. Without the ``from`` rule a join stays in SYN-SENT; without the ``oif`` rule a socket
bound to the interface has no route.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from tandem.mptcp.iproute import Interface, IpError, interfaces, ip, ip_json
from tandem.mptcp.path_manager import Endpoint, Limits, PathManager, UpstreamKernel

MOST = 8
TABLES = 7100
PRIORITIES = 7100
ENDPOINTS = 101
METRIC = 7100
PROTOCOL = "71"
"""The mark on our routes (a route's ``protocol``); 71 has no name in rt_protos of any distribution met."""


@dataclass(frozen=True, slots=True)
class Path:
    """A path as configured. ``gateway``: the next hop, None on point-to-point interfaces. ``address``: which of the
    interface's addresses, None for its first."""

    name: str
    interface: str
    gateway: str | None = None
    address: str | None = None


@dataclass(frozen=True, slots=True)
class PathEvent:
    """What ``check`` saw: ``kind`` is one of path_up, path_down, endpoint_restored (as in ``schema.metrics.EVENT_KINDS``)."""

    kind: str
    path: str
    detail: str


class Paths:
    """The paths of one collector. Not for several threads at once. Needs CAP_NET_ADMIN in this network namespace."""

    def __init__(self, paths: Sequence[Path], manager: PathManager | None = None) -> None:
        if len(paths) > MOST:
            raise ValueError(f"{len(paths)} paths; at most {MOST} are supported, as many as the kernel takes endpoints")
        self.paths = tuple(paths)
        self._manager: PathManager = UpstreamKernel() if manager is None else manager
        self._addresses: dict[str, str] = {}
        self._limits_before: Limits | None = None

    @property
    def addresses(self) -> dict[str, str]:
        """The address of each path that is up, by name, as of the last ``apply`` or ``check``."""
        return dict(self._addresses)

    def apply(self) -> list[PathEvent]:
        """Configure every path whose interface has an address; left-overs of an earlier life are removed first. One event a
        path: path_up or path_down. IpError when the kernel refuses (no CAP_NET_ADMIN, no Multipath TCP); what was made until
        then is undone."""
        self.remove()
        before = self._manager.limits()
        if before.subflows < len(self.paths):
            self._manager.set_limits(Limits(len(self.paths), before.accepted))
            self._limits_before = before
        try:
            events = self.check()
        except IpError:
            with contextlib.suppress(IpError):  # the first refusal is the one to tell
                self.remove()
            raise
        seen = {event.path for event in events}
        down = [
            PathEvent("path_down", p.name, f"{p.interface} has no address") for p in self.paths if p.name not in seen
        ]
        return events + down

    def check(self) -> list[PathEvent]:
        """Compare with the kernel and mend: an address that changed, came or went, a missing endpoint, rule or route.

        A path that came back gets its endpoint anew, since the kernel does not open a lost subflow again by itself. Cost: four
        calls of ``ip``.
        """
        present = interfaces()
        state = _State(self._manager)
        events: list[PathEvent] = []
        for index, path in enumerate(self.paths):
            known = self._addresses.get(path.name)
            current = _address(path, present.get(path.interface))
            if current == known:
                if known is not None:
                    mended = self._mend(index, path, known, state)
                    if mended:
                        events.append(PathEvent("endpoint_restored", path.name, "missing: " + ", ".join(mended)))
                continue
            if known is not None:
                self._clear(index, state)
                del self._addresses[path.name]
            if current is None:
                events.append(PathEvent("path_down", path.name, f"{path.interface} lost {known}"))
                continue
            self._clear(index, state)
            self._mend(index, path, current, _State(self._manager))
            self._addresses[path.name] = current
            detail = (
                f"{path.interface} has {current}" if known is None else f"{path.interface}: {known} became {current}"
            )
            events.append(PathEvent("path_up" if known is None else "endpoint_restored", path.name, detail))
        return events

    def remove(self) -> None:
        """Undo everything of our range; what is gone already is no error."""
        state = _State(self._manager)
        for index in range(MOST):
            self._clear(index, state)
        self._addresses.clear()
        if self._limits_before is not None:
            self._manager.set_limits(self._limits_before)
            self._limits_before = None

    def _mend(self, index: int, path: Path, address: str, state: _State) -> list[str]:
        """Make what is missing of one path; the names of what was."""
        table, priority, metric = str(TABLES + index), PRIORITIES + 2 * index, METRIC + index
        to = ("default", *(("via", path.gateway) if path.gateway else ()), "dev", path.interface, "protocol", PROTOCOL)
        lookup = ("table", table, "priority")
        missing: list[tuple[str, Callable[[], object]]] = []
        if not state.route(table):
            # src: an interface may have several addresses
            missing.append(("route", partial(ip, "route", "replace", *to, "src", address, "table", table)))
        if not state.route("main", metric):
            missing.append(("default route", partial(ip, "route", "replace", *to, "metric", str(metric))))
        if not state.rule(priority, "src", address):
            missing.append(("rule", partial(ip, "rule", "add", "from", address, *lookup, str(priority))))
        if not state.rule(priority + 1, "oif", path.interface):
            missing.append(("rule", partial(ip, "rule", "add", "oif", path.interface, *lookup, str(priority + 1))))
        if address not in {e.address for e in state.endpoints.values()}:
            endpoint = Endpoint(ENDPOINTS + index, address, path.interface)
            missing.append(("endpoint", partial(self._manager.add, endpoint)))
        for _, make in missing:
            make()
        return [what for what, _ in missing]

    def _clear(self, index: int, state: _State) -> None:
        """Delete what exists of one path's range."""
        table, priority, metric = str(TABLES + index), PRIORITIES + 2 * index, METRIC + index
        if state.endpoints.pop(ENDPOINTS + index, None) is not None:
            _quietly(partial(self._manager.remove, ENDPOINTS + index))
        for number in (priority, priority + 1):
            if state.rule(number):
                _quietly(partial(ip, "rule", "delete", "priority", str(number), "table", table))
        if state.route(table, dead=True):
            _quietly(partial(ip, "route", "flush", "table", table, "protocol", PROTOCOL))
        if state.route("main", metric, dead=True):
            _quietly(partial(ip, "route", "delete", "default", "metric", str(metric), "protocol", PROTOCOL))


class _State:
    """What the kernel has now: endpoints, rules, routes."""

    def __init__(self, manager: PathManager) -> None:
        self.endpoints = manager.endpoints()
        self._rules = ip_json("-4", "rule", "show")
        self._routes = ip_json("-4", "route", "show", "table", "all", "protocol", PROTOCOL)

    def rule(self, priority: int, key: str | None = None, value: str | None = None) -> bool:
        return any(r.get("priority") == priority and (key is None or r.get(key) == value) for r in self._rules)

    def route(self, table: str, metric: int | None = None, *, dead: bool = False) -> bool:
        """Whether our default route is there; with ``dead`` also one whose interface is down."""
        return any(
            str(r.get("table", "main")) == table
            and (metric is None or r.get("metric") == metric)
            and (dead or not {"dead", "linkdown"} & set(r.get("flags", [])))
            for r in self._routes
        )


def _address(path: Path, interface: Interface | None) -> str | None:
    """The path's address, None while it cannot be used."""
    if interface is None or not interface.usable or not interface.addresses:
        return None
    if path.address is None:
        return interface.addresses[0]
    return path.address if path.address in interface.addresses else None


def _quietly(action: Callable[[], object]) -> None:
    """Run a deletion whose object may just have vanished with its interface; any other refusal is raised."""
    try:
        action()
    except IpError as error:
        if not any(word in str(error) for word in ("No such", "not found", "Cannot find", "FIB table does not exist")):
            raise
