"""The out-of-tree Multipath TCP kernel of multipath-tcp.org: v0.94 (Linux 4.14) and its like. See ``kernels.Kernel``.

Made after its public documentation and source (``mptcp_abi.v094``) and tried on a tree of files made likewise. **It has not run on that
kernel**; whoever runs it there first should compare a run's subflows with ``/proc/net/mptcp_net/mptcp``.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tandem.mptcp import kernel_files
from tandem.mptcp.full_mesh import PATH_MANAGER, FullMesh
from tandem.mptcp.path_manager import PathManager
from tandem.mptcp_abi import AbiError, v094, v094_sockets

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


class V094:
    """``root``: where /proc and /sys are."""

    protocol = 0
    untried: str | None = "made after its public documentation; it has not run on that kernel"
    sysctls: tuple[str, ...] = (
        "net.mptcp.mptcp_enabled", "net.mptcp.mptcp_version", "net.mptcp.mptcp_checksum", "net.mptcp.mptcp_syn_retries",
        PATH_MANAGER, "net.mptcp.mptcp_scheduler", "net.mptcp.mptcp_debug",
    )  # fmt: skip
    scheduler_sysctl = "net.mptcp.mptcp_scheduler"
    brings: Mapping[str, str] = MappingProxyType({name: f"modprobe {module}" for name, module in _CONTROLLERS.items()})

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root
        linux = ".".join(kernel_files.release(root).split(".")[:2])
        self.name = _RELEASES.get(linux, "v0.9x")

    def open_socket(self, family: socket.AddressFamily, *, multipath: bool) -> socket.socket:
        """See ``Kernel``."""
        return v094_sockets.open_socket(family, multipath=multipath, root=self._root)

    def lack(self, error: OSError, family: socket.AddressFamily) -> str | None:
        """See ``Kernel``. EPERM: mptcp_enabled is 0, or Multipath TCP could not start when the machine did."""
        if error.errno in (errno.EPERM, errno.ENOPROTOOPT):
            return f"no Multipath TCP here; mend: sysctl net.mptcp.mptcp_enabled=1 on the {self.name} kernel"
        if family == socket.AF_INET6 and error.errno == errno.EAFNOSUPPORT:
            return "no IPv6 in this kernel; mend: an IPv4 bearer"
        return None

    def path_manager(self) -> PathManager:
        """See ``Kernel``."""
        return FullMesh()

    def scheduler(self) -> str | None:
        """See ``Kernel``."""
        now = self._sysctl("mptcp_scheduler")
        return None if now is None else _word(now)

    def schedulers(self) -> dict[str, str]:
        """See ``Kernel``: the built-in one, that in force, and those whose modules are there."""
        now = self._sysctl("mptcp_scheduler")
        if now is None:
            return {}
        there = [name for name, module in _SCHEDULERS.items() if self._module(module)]
        return {_word(name): name for name in ("default", now, *there)}

    def controllers(self) -> frozenset[str] | None:
        """See ``Kernel``."""
        return kernel_files.controllers(self._root)

    def counters(self) -> dict[str, int]:
        """See ``Kernel``."""
        try:
            return v094.parse_counters((self._root / v094.FOLDER / "snmp").read_text())
        except (OSError, AbiError):
            return {}

    def told(self, connection: socket.socket | None = None) -> dict[str, Any]:
        """See ``Kernel``."""
        told = {"scheduler": self._sysctl("mptcp_scheduler"), "path_manager": self._sysctl("mptcp_path_manager")}
        if connection is not None:
            own = {"scheduler": v094.MPTCP_SCHEDULER, "path_manager": v094.MPTCP_PATH_MANAGER}
            told |= {what: name for what, option in own.items() if (name := _named(connection, option))}
        return told

    def notes(self) -> tuple[str, ...]:
        """See ``Kernel``."""
        notes = [f"Multipath TCP {self.name} kernel: {self.untried}"]
        if self._sysctl("mptcp_enabled") == "0":
            notes.append("Multipath TCP is off; mend: sysctl net.mptcp.mptcp_enabled=1")
        if self._sysctl("mptcp_enabled") is None:
            notes.append("its sysctls are hidden here: they exist in the first network namespace only")
        if self._sysctl("mptcp_version") == "1":
            notes.append(
                "net.mptcp.mptcp_version is 1, an experiment of that kernel's; mend: sysctl net.mptcp.mptcp_version=0"
            )
        if not self._module("mptcp_fullmesh"):
            notes.append("the path manager fullmesh is not there; mend: modprobe mptcp_fullmesh")
        elif self._parameter("mptcp_fullmesh", "create_on_err") in ("0", None):
            notes.append(
                "a lost subflow comes back only with: echo 1 > /sys/module/mptcp_fullmesh/parameters/create_on_err (as root); "
                "this kernel tells of no subflow that is lost, so records have no losses"
            )
        notes.append(
            "the server must run such a kernel too: version 0 and version 1 of the protocol do not speak to each other"
        )
        notes.append("a connection that leaves Multipath TCP after its handshake is not seen to do so")
        return (*notes, *kernel_files.binding_note(self._root))

    def _sysctl(self, name: str) -> str | None:
        return kernel_files.text(self._root / _FOLDER / name)

    def _module(self, name: str) -> bool:
        """Loaded, or built in (then it is shown only when it has parameters, but listed with the modules)."""
        if (self._root / "sys/module" / name).exists():
            return True
        builtin = self._root / "lib/modules" / kernel_files.release(self._root) / "modules.builtin"
        return f"/{name}.ko" in (kernel_files.text(builtin) or "")

    def _parameter(self, module: str, name: str) -> str | None:
        return kernel_files.text(self._root / "sys/module" / module / "parameters" / name)


def _word(name: str) -> str:
    return "minsrtt" if name == "default" else name


def _named(connection: socket.socket, option: int) -> str | None:
    try:
        raw = connection.getsockopt(socket.IPPROTO_TCP, option, v094.NAME_BYTES)
    except OSError:
        return None  # closed meanwhile
    return raw.split(b"\0")[0].decode("ascii", "replace") or None
