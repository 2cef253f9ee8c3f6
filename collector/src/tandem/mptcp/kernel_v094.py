"""The out-of-tree Multipath TCP kernel of multipath-tcp.org: v0.94 (Linux 4.14) and its like. Everything of it but its structures and
files (``mptcp_abi.v094``): sockets, schedulers, controllers, counters (``V094``), paths (``FullMesh``).

Made after its public documentation and source, and after what v0.94.1 did in an emulated machine; ``tandem kernel --self-test`` compares
the kernel that runs with what is expected here. Its sysctls are global and exist in the first network namespace only.
"""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tandem.mptcp import netlink, sysctls
from tandem.mptcp.iproute import IpError
from tandem.mptcp.kernels import Kernel, binding_note, release
from tandem.mptcp.path_manager import Endpoint, PathManager
from tandem.mptcp_abi import AbiError, v094

PATH_MANAGER = "net.mptcp.mptcp_path_manager"
_FOLDER = Path("proc/sys/net/mptcp")
_RELEASES = {
    "3.18": "v0.90",
    "4.1": "v0.91",
    "4.4": "v0.92",
    "4.9": "v0.93",
    "4.14": "v0.94",
    "4.19": "v0.95",
    "5.4": "v0.96",
}
"""By Linux release, the one that belongs to it; the sysctls say none."""
_SCHEDULERS = {"roundrobin": "mptcp_rr", "redundant": "mptcp_redundant", "blest": "mptcp_blest", "ecf": "mptcp_ecf"}
"""By name, the module that brings it. ``default`` is built in: lowest RTT first, which the papers call minSRTT."""
_CONTROLLERS = {"lia": "mptcp_coupled", "olia": "mptcp_olia", "balia": "mptcp_balia", "wvegas": "mptcp_wvegas"}
"""By name, the module that brings it."""


BUILT_IN = "minsrtt"
"""The scheduler that each of them has."""


def name_of(release: str) -> str:
    """Of the out-of-tree kernel with this release (``uname -r``)."""
    return _RELEASES.get(".".join(release.split(".")[:2]), "v0.9x")


class V094(Kernel):
    """``root``: where /proc and /sys are."""

    protocol = 0
    sysctls: tuple[str, ...] = (
        "net.mptcp.mptcp_enabled", "net.mptcp.mptcp_version", "net.mptcp.mptcp_checksum", "net.mptcp.mptcp_syn_retries",
        PATH_MANAGER, "net.mptcp.mptcp_scheduler", "net.mptcp.mptcp_debug",
    )  # fmt: skip
    scheduler_sysctl = "net.mptcp.mptcp_scheduler"
    brings: Mapping[str, str] = MappingProxyType({name: f"modprobe {module}" for name, module in _CONTROLLERS.items()})

    def __init__(self, root: Path = Path("/")) -> None:
        super().__init__(root)
        self.name = name_of(release(root))
        self.untried = (
            "tried in an emulated machine, not in the field"
            if self.name == "v0.94"
            else "made for v0.94; it has not run on this one"
        )

    def open_socket(self, family: socket.AddressFamily, *, multipath: bool) -> socket.socket:
        return v094.open_socket(family, multipath=multipath, root=self._root)

    def missing_requirement(self, error: OSError, family: socket.AddressFamily) -> str | None:
        """EPERM: mptcp_enabled is 0, or Multipath TCP could not start when the machine did."""
        if error.errno in (errno.EPERM, errno.ENOPROTOOPT):
            return f"no Multipath TCP here; hint: sysctl net.mptcp.mptcp_enabled=1 on the {self.name} kernel"
        if family == socket.AF_INET6 and error.errno == errno.EAFNOSUPPORT:
            return "no IPv6 in this kernel; hint: an IPv4 bearer"
        return None

    def fault(self, connection: socket.socket) -> str | None:
        """A connection that begins before the kernel knows any of our addresses leaves ``fullmesh`` for good."""
        if v094.is_multipath(connection) and _default(v094.named(connection, v094.MPTCP_PATH_MANAGER)):
            return (
                "the connection has the path manager default and opens no second subflow: the kernel knew none of our addresses, or "
                f"{PATH_MANAGER} is not fullmesh; hint: try again"
            )
        return None

    def path_manager(self) -> PathManager:
        return FullMesh(self._root)

    def scheduler(self) -> str | None:
        now = self._in_force("scheduler")
        return None if now is None else _word(now)

    def schedulers(self) -> dict[str, str]:
        """The built-in one, that in force, and those whose modules are there. Where the sysctl is hidden, that in
        force alone: no other can be chosen."""
        now = self._in_force("scheduler")
        if now is None:
            return {}
        if self._sysctl("mptcp_scheduler") is None:
            return {_word(now): now}
        there = [name for name, module in _SCHEDULERS.items() if self._module(module)]
        return {_word(name): name for name in ("default", now, *there)}

    def counters(self) -> dict[str, int]:
        try:
            return v094.parse_counters((self._root / v094.FOLDER / "snmp").read_text())
        except (OSError, AbiError):
            return {}

    def settings(self, connection: socket.socket | None = None) -> dict[str, Any]:
        found = {"scheduler": self._sysctl("mptcp_scheduler"), "path_manager": self._sysctl("mptcp_path_manager")}
        if connection is not None:
            own = {"scheduler": v094.MPTCP_SCHEDULER, "path_manager": v094.MPTCP_PATH_MANAGER}
            found |= {what: name for what, option in own.items() if (name := v094.named(connection, option))}
        return found

    def notes(self) -> tuple[str, ...]:
        notes = [f"Multipath TCP {self.name} kernel: {self.untried}"]
        if self._sysctl("mptcp_enabled") == "0":
            notes.append("Multipath TCP is off; hint: sysctl net.mptcp.mptcp_enabled=1")
        if self._sysctl("mptcp_enabled") is None:
            notes.append(
                "its sysctls are hidden here: they exist in the first network namespace only, and hold for all"
            )
        if self._sysctl("mptcp_version") == "1":
            notes.append(
                "net.mptcp.mptcp_version is 1, an experiment of that kernel's; hint: sysctl net.mptcp.mptcp_version=0"
            )
        if not self._module("mptcp_fullmesh") and not (self._root / v094.FULLMESH).exists():
            notes.append("the path manager fullmesh is not there; hint: modprobe mptcp_fullmesh")
        elif self._parameter("mptcp_fullmesh", "create_on_err") in ("0", None):
            notes.append(
                "a subflow that ended by an error comes back only with: echo 1 > /sys/module/mptcp_fullmesh/parameters/create_on_err "
                "(as root), one that the peer reset not even so; this kernel tells of no subflow that is lost, so records have no losses"
            )
        notes.append(
            "the server must run such a kernel too: version 0 and version 1 of the protocol do not speak to each other"
        )
        notes.append("a connection that leaves Multipath TCP after its handshake is not seen to do so")
        return (*notes, *binding_note(self._root))

    def _in_force(self, what: str) -> str | None:
        return self._sysctl(f"mptcp_{what}") or v094.in_force(self._root).get(what)

    def _sysctl(self, name: str) -> str | None:
        return sysctls.read_text(self._root / _FOLDER / name)

    def _module(self, name: str) -> bool:
        """Loaded, or built in (then it is shown only when it has parameters, but listed with the modules)."""
        if (self._root / "sys/module" / name).exists():
            return True
        builtin = self._root / "lib/modules" / release(self._root) / "modules.builtin"
        return f"/{name}.ko" in (sysctls.read_text(builtin) or "")

    def _parameter(self, module: str, name: str) -> str | None:
        return sysctls.read_text(self._root / "sys/module" / module / "parameters" / name)


def _word(name: str) -> str:
    return BUILT_IN if _default(name) else name


def _default(name: str | None) -> bool:
    return name == "default"


# --- paths -----------------------------------------------------------------------------------------------------------

_FULLMESH = "fullmesh"
_KNOWN_S = 5.0
"""The kernel takes changes of interfaces to its list half a second later; two that cancel each other are none."""
_LOOK_S = 0.02


class FullMesh(PathManager):
    """``fullmesh`` opens a subflow of each connection from every address of every interface that is not marked
    ``multipath off``, so an endpoint is an interface without that mark.

    Routing tables and rules are the same as on the stock kernel. A mark stays when the collector is killed: ``ip link set dev X
    multipath on`` of that project's iproute2 takes it off, as does the end of the next collector whose path the interface is."""

    name = "fullmesh"

    def __init__(self, root: Path = Path("/")) -> None:
        super().__init__()
        self._root = root
        self._made: dict[int, Endpoint] = {}
        self._off: set[str] = set()
        self._before: sysctls.Setting | None = None

    def endpoints(self) -> dict[int, Endpoint]:
        """Those made here whose interface is still there and unmarked: the kernel numbers none."""
        return {n: e for n, e in self._made.items() if self._marked(e.interface or "") is False}

    def add(self, endpoint: Endpoint) -> None:
        """Returns when the kernel knows the address: a connection that begins before has no second subflow."""
        if endpoint.interface is None:
            raise IpError(f"endpoint {endpoint.address}: {_FULLMESH} knows interfaces, and none is named")
        self._mark(endpoint.interface, off=False)
        self._await(endpoint.address, known=True)
        self._made[endpoint.id] = endpoint

    def remove(self, number: int) -> None:
        """Returns when the kernel has let go of the address: marked and unmarked at once, nothing happens."""
        had = self._made.pop(number, None)
        if had is None or had.interface is None:
            raise IpError(f"endpoint {number}: No such endpoint")
        if all(e.interface != had.interface for e in self._made.values()):
            self._mark(had.interface, off=True)
            self._await(had.address, known=False)

    def raise_limits(self, subflows: int, accepted: int) -> None:
        """Nothing: the kernel's own (MPTCP_MAX_ADDR, 8 addresses of either end) cannot be changed."""

    def only_endpoints(self, interfaces: Collection[str]) -> None:
        """Have new connections use this path manager, and no other interface than an endpoint's."""
        self._choose()
        used = {e.interface for e in self._made.values()}
        for name in interfaces:
            if name != "lo" and name not in used and self._marked(name) is False:
                self._mark(name, off=True)

    def set_backup(self, number: int, backup: bool) -> None:
        """Refused: what this kernel's ``multipath backup`` does to running subflows was never tried."""
        raise IpError(f"endpoint {number}: no path is made {'backup' if backup else 'active'} on the v0.94 kernel")

    def undo_backup(self, number: int) -> list[str]:  # noqa: ARG002  (as the other kernel's)
        """Nothing was done."""
        return []

    def restore(self) -> None:
        """Take off the marks that were made here, and put the path manager of before back."""
        self._made.clear()
        for name in sorted(self._off):
            if self._marked(name):
                self._mark(name, off=False)
        self._off.clear()
        if self._before is not None:
            sysctls.restore({PATH_MANAGER: self._before})
            self._before = None

    def _choose(self) -> None:
        now = sysctls.read([PATH_MANAGER])[PATH_MANAGER]
        # None: hidden in a network namespace that is not the first, where the first one's holds
        if now in (_FULLMESH, None):
            return
        setting = sysctls.apply({PATH_MANAGER: _FULLMESH})[PATH_MANAGER]
        if setting.error is not None:
            raise IpError(f"{PATH_MANAGER} stays {now}: {setting.error}; hint: modprobe mptcp_fullmesh")
        self._before = self._before or setting

    def _await(self, address: str, *, known: bool) -> None:
        """Until the kernel's list has the address, or has it no more; IpError when that does not come to be."""
        wanted, until = str(ipaddress.ip_address(address)), time.monotonic() + _KNOWN_S
        while True:
            try:
                there = wanted in v094.parse_fullmesh((self._root / v094.FULLMESH).read_text())
            except (OSError, AbiError) as error:
                raise IpError(f"/{v094.FULLMESH}: {error}; hint: modprobe mptcp_fullmesh") from error
            if there is known:
                return
            if time.monotonic() >= until:
                does = "does not take up" if known else "does not let go of"
                raise IpError(f"endpoint {address}: {_FULLMESH} {does} it within {_KNOWN_S:g} s")
            time.sleep(_LOOK_S)

    def _marked(self, interface: str) -> bool | None:
        flags = netlink.read_link_flags(interface)
        return None if flags is None else bool(flags & v094.IFF_NOMULTIPATH)

    def _mark(self, interface: str, *, off: bool) -> None:
        if self._marked(interface) is off:
            return
        try:
            netlink.change_link_flags(interface, v094.IFF_NOMULTIPATH if off else 0, v094.IFF_NOMULTIPATH)
        except OSError as error:
            why = os.strerror(error.errno) if error.errno else str(error)
            raise IpError(f"{interface} multipath {'off' if off else 'on'}: {why}") from error
        if self._marked(interface) is not off:
            raise IpError(f"{interface} multipath {'off' if off else 'on'}: the kernel did not take it")
        if off:
            self._off.add(interface)
        else:
            self._off.discard(interface)
