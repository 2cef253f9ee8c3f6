"""The kit's paths in the kernel: found, judged, parted where they collide, and given their routes, rules and endpoints.

``routing`` says what a path is given, ``path_state`` what it can be, ``nat`` what happens to one whose address another has.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from tandem.mptcp import kernels, sockets
from tandem.mptcp.iproute import Interface, IpError, interfaces
from tandem.mptcp.nat import Nat
from tandem.mptcp.path_manager import Limits, PathManager
from tandem.mptcp.path_state import Path, PathStatus, judge
from tandem.mptcp.resting import Resting
from tandem.mptcp.routing import ENDPOINTS, MOST, Kernel, Way, became, clear, mend, renew

__all__ = ["ENDPOINTS", "MOST", "Path", "PathEvent", "PathStatus", "Paths", "Reach"]


@dataclass(frozen=True, slots=True)
class PathEvent:
    """What was seen: ``kind`` is path_state, path_up, path_down, endpoint_restored or subflow_restored (as in
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
        self._ways: dict[str, Way] = {}
        self._statuses: dict[str, PathStatus] = {}
        self._nats: dict[str, Nat] = {}
        self._owners: dict[str, str] = {}
        self._modem_gateways: dict[str, str | None] = {}
        self._limits_before: Limits | None = None
        fixed = {p.name: p.interface if isinstance(p.interface, str) else None for p in paths}
        self._interfaces: dict[str, str | None] = fixed
        self.interfaces: Mapping[str, str | None] = MappingProxyType(fixed)
        """Where each path's connections leave now, always the same mapping; None while its interface is not known."""
        self.resting = Resting()
        """Paths that have routes and no endpoint: connections have no subflow there, unless it is their first."""

    @property
    def addresses(self) -> dict[str, str]:
        """The address of each path that is up, by name, as of the last ``apply`` or ``check``."""
        return {name: way.address for name, way in self._ways.copy().items()}

    @property
    def joining(self) -> dict[str, str]:
        """As ``addresses``, without the paths that rest."""
        return {name: address for name, address in self.addresses.items() if name not in self.resting.told}

    @property
    def statuses(self) -> dict[str, PathStatus]:
        """All paths, as of the last ``apply`` or ``check``."""
        return self._statuses.copy()

    @property
    def nats(self) -> list[Nat]:
        """The NATs that are up."""
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
        """Compare with the kernel and mend: an interface, address or gateway that changed, came or went, a missing endpoint, rule or
        route, two paths with one address. Four calls of ``ip``; six while a path has IPv6 only, one more for each NAT.

        A path that came back gets its endpoint anew, since the kernel does not open a lost subflow again by itself.
        """
        present = interfaces()
        found = {path.name: path.find() for path in self.paths}
        for path in self.paths:
            self._mind_nat(path, found, present)
        lonely6 = any(i.addresses6 and not i.addresses for i in present.values() if i.name in found.values())
        wants6 = lonely6 or any(":" in (path.address or "") for path in self.paths)
        ipv6 = wants6 or any(way.family == "-6" for way in self._ways.values())
        kernel = Kernel(self._manager, ipv6=ipv6)
        mptcp6 = wants6 and sockets.multipath6()
        others = kernel.others_defaults()
        seen = {
            path.name: self._behind(path)
            or judge(path, found[path.name], present.get(found[path.name] or ""), others, mptcp6=mptcp6)
            for path in self.paths
        }
        events: list[PathEvent] = []
        if self._part(seen, events):
            kernel = Kernel(self._manager, ipv6=ipv6)
        self._set_limits([status.address for status in seen.values() if status.state == "up" and status.address])
        resting = self.resting.told
        for index, path in enumerate(self.paths):
            events += self._settle(index, path, seen[path.name], kernel, resting)
        self._manager.only_endpoints(present.keys())
        self.resting.done(resting)
        return events

    def _mind_nat(self, path: Path, found: dict[str, str | None], present: dict[str, Interface]) -> None:
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

    def _behind(self, path: Path) -> PathStatus | None:
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

    def _part(self, seen: dict[str, PathStatus], events: list[PathEvent]) -> bool:
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
                self._clear_way(path.name)
                nat.make(status.interface, status.gateway)
            except IpError as error:
                refused = f"{error}; mend: CAP_SYS_ADMIN for the collector, or another address for one of the modems"
                seen[path.name] = replace(status, state="colliding", gateway=None, detail=f"{why}: {refused}")
                continue
            parted = True
            self._nats[path.name] = nat
            self._modem_gateways[path.name] = status.gateway
            events.append(PathEvent("path_state", path.name, why, "colliding"))
            self._statuses[path.name] = replace(status, state="colliding", gateway=None, detail=why)
            seen[path.name] = self._behind(path) or status
        return parted

    def _addresses_of(self, path: Path) -> tuple[str | None, str | None]:
        way = self._ways.get(path.name)
        return (None, None) if way is None else (way.interface, way.address)

    def _settle(
        self, index: int, path: Path, status: PathStatus, kernel: Kernel, resting: Collection[str]
    ) -> list[PathEvent]:
        """Make the kernel agree with ``status``; what is to be told."""
        events: list[PathEvent] = []
        name, before, had = path.name, self._statuses.get(path.name), self._ways.get(path.name)
        if name not in self._nats:
            self._modem_gateways.pop(name, None)
        way = None
        if status.state == "up" and status.interface is not None and status.address is not None:
            way = Way(status.interface, status.address, status.gateway)
        if way is not None and way == had:
            mended = mend(index, way, self._manager, kernel, resting=name in resting)
            if mended and not (
                name in self.resting.made and mended == ["endpoint"]
            ):  # which was not lost but taken away
                events.append(PathEvent("endpoint_restored", name, "missing: " + ", ".join(mended)))
        else:
            if had is not None:
                self._ways.pop(name)
                clear(index, self._manager, kernel)
            if way is not None:
                fresh = Kernel(self._manager, ipv6=way.family == "-6")
                clear(index, self._manager, fresh)
                mend(index, way, self._manager, fresh, resting=name in resting)
                self._ways[name] = way
                self._owners[way.address] = name
                if had is not None:
                    events.append(PathEvent("endpoint_restored", name, became(had, way)))
        if before is None or before.state != status.state:
            events.append(PathEvent("path_state", name, status.detail, status.state))
            if (way is None) != (had is None) or before is None:
                kind = "path_down" if way is None else "path_up"
                lost = f"lost {had.address}: {status.detail}" if had is not None else status.detail
                events.append(PathEvent(kind, name, lost))
        self._statuses[name] = status
        if status.interface is not None or not isinstance(path.interface, str):
            self._interfaces[name] = status.interface
        return events

    def _clear_way(self, name: str) -> None:
        """A path that is about to be moved gives up what it had."""
        had = self._ways.pop(name, None)
        if had is not None:
            index = next(i for i, path in enumerate(self.paths) if path.name == name)
            clear(index, self._manager, Kernel(self._manager, ipv6=had.family == "-6"))

    def _set_limits(self, addresses: Sequence[str]) -> None:
        """Room for a subflow a path. Where paths have different families, the server's address of the other family is accepted: the
        kernel pairs addresses of one family only."""
        now = self._manager.limits()
        mixed = len({":" in address for address in addresses}) > 1
        wanted = Limits(max(now.subflows, len(self.paths)), max(now.accepted, len(self.paths) if mixed else 0))
        if wanted != now:
            self._manager.set_limits(wanted)
            self._limits_before = self._limits_before or now

    def renew(self, name: str) -> bool:
        """Make the path's endpoint anew, for connections to open a subflow from it; False while the path rests or is not up, or another
        program made the endpoint."""
        way, number = self._ways.get(name), self.number(name)
        if way is None or name in self.resting.told or number not in self._manager.endpoints():
            return False
        renew(way.endpoint(number - ENDPOINTS), self._manager)
        return True

    @property
    def manager(self) -> PathManager:
        """What tells the kernel which addresses to use."""
        return self._manager

    def remove(self) -> None:
        """Undo everything of our range, also of an earlier life; what is gone already is no error."""
        kernel = Kernel(self._manager, ipv6=True)
        for index in range(MOST):
            clear(index, self._manager, kernel)
            Nat(index).remove()
        for known in (self._ways, self._statuses, self._nats, self._modem_gateways):
            known.clear()
        if self._limits_before is not None:
            self._manager.set_limits(self._limits_before)
            self._limits_before = None
        self._manager.restore()
