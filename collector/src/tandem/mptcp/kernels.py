"""Which Multipath TCP this kernel has, behind one interface: how a socket is made, which schedulers and controllers there are, what a
run's record says of it. ``here()`` picks by the kernel's own files.

``Kernel``: Linux since 5.6, version 1 of the protocol (RFC 8684). ``kernel_v094``: the out-of-tree kernel of multipath-tcp.org,
version 0 (RFC 6824). The two do not speak to each other by Multipath TCP: probe and server need the same.
"""

from __future__ import annotations

import errno
import json
import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tandem import mptcp_abi as abi
from tandem.mptcp.path_manager import PathManager
from tandem.mptcp.sysctls import read_text
from tandem.mptcp_abi import COUPLED, v094

_CONTROLLERS = Path("proc/sys/net/ipv4/tcp_available_congestion_control")
_RELEASE = Path("proc/sys/kernel/osrelease")


def release(root: Path) -> str:
    """As ``uname -r``."""
    return read_text(root / _RELEASE) or os.uname().release


def binding_note(root: Path) -> tuple[str, ...]:
    """Before Linux 5.7 a socket could be bound to an interface by CAP_NET_RAW only."""
    found = re.match(r"(\d{1,9})\.(\d{1,9})", release(root))
    if found is None or (int(found[1]), int(found[2])) >= (5, 7):
        return ()
    return (
        "before Linux 5.7 a path is chosen (SO_BINDTODEVICE) by CAP_NET_RAW only: give the collector that capability too",
    )


_SYSCTLS = Path("proc/sys/net/mptcp")
_NETSTAT = Path("proc/thread-self/net/netstat")
_NO_MULTIPATH = (errno.EPROTONOSUPPORT, errno.ENOPROTOOPT, errno.EINVAL)


class Kernel:
    """The Multipath TCP of Linux itself (5.6 and later), and the base of the other. ``root``: where /proc is.

    ``name`` as results say it; ``protocol``: the version it speaks; ``untried``: None, or that this was never run on such a kernel;
    ``sysctls``: those that belong into a run's record; ``scheduler_sysctl``: the one that chooses the scheduler of new
    connections; ``brings``: by controller the command that brings it, where there is one."""

    name = "upstream"
    protocol = 1
    untried: str | None = None
    sysctls: tuple[str, ...] = (
        "net.mptcp.enabled", "net.mptcp.scheduler", "net.mptcp.path_manager", "net.mptcp.pm_type", "net.mptcp.blackhole_timeout",
        "net.mptcp.checksum_enabled", "net.mptcp.stale_loss_cnt", "net.mptcp.syn_retrans_before_tcp_fallback",
    )  # fmt: skip
    scheduler_sysctl = "net.mptcp.scheduler"
    brings: Mapping[str, str] = MappingProxyType(
        dict.fromkeys(COUPLED, "tandem-server congestion load; on a probe the role congestion, congestion_on_probe")
    )

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root

    def open_socket(self, family: socket.AddressFamily, *, multipath: bool) -> socket.socket:
        """A stream socket of Multipath TCP, or of TCP and nothing else. OSError when the kernel refuses."""
        return socket.socket(family, socket.SOCK_STREAM, abi.IPPROTO_MPTCP if multipath else 0)

    def missing_requirement(self, error: OSError, family: socket.AddressFamily) -> str | None:
        """What is missing, with its hint, when ``open_socket`` with ``multipath`` raised ``error``; None when it says nothing of that."""
        if error.errno not in _NO_MULTIPATH:
            return None
        if family == socket.AF_INET6:
            return "no Multipath TCP over IPv6 here; hint: a kernel with CONFIG_MPTCP_IPV6, or an IPv4 bearer"
        return "no Multipath TCP here; hint: sysctl net.mptcp.enabled=1, or a kernel from 5.6 with CONFIG_MPTCP"

    def fault(self, connection: socket.socket) -> str | None:  # noqa: ARG002  (the other kernel looks at it)
        """Why an open ``connection`` that was requested as Multipath TCP cannot be measured, with its hint; None when it can, also after
        a fallback, which is a result. OSError when it is closed."""
        return None

    def path_manager(self) -> PathManager:
        """What tells the kernel which of our addresses to use."""
        return PathManager()

    def scheduler(self) -> str | None:
        """The scheduler of new connections in the papers' words (``minsrtt``, ``roundrobin``, ``stock`` …); None where the kernel has no
        Multipath TCP, or hides it."""
        # ``default`` is BLEST-like and none of the papers'.
        now = self._sysctl("scheduler")
        return None if now is None else _word(now)

    def schedulers(self) -> Mapping[str, str]:
        """Those that can be had now: by the papers' word the value of ``scheduler_sysctl``."""
        # available_schedulers came with Linux 6.10; others can only be loaded as BPF.
        names = " ".join(filter(None, (self._sysctl("available_schedulers"), self._sysctl("scheduler"))))
        return {_word(name): name for name in names.split()}

    def controllers(self) -> frozenset[str] | None:
        """Congestion controllers that a socket may ask for by TCP_CONGESTION (loaded, or built in); None where the kernel does not say."""
        names = read_text(self._root / _CONTROLLERS)
        return None if names is None else frozenset(names.split())

    def counters(self) -> dict[str, int]:
        """The counters of Multipath TCP of this network namespace, ``MPCapableSYNTX`` and so on; empty where there are none."""
        try:
            return counters((self._root / _NETSTAT).read_text())
        except OSError:
            return {}

    def settings(self, connection: socket.socket | None = None) -> dict[str, Any]:  # noqa: ARG002  (as ``fault``)
        """For a run's record: ``scheduler`` and ``path_manager`` in the kernel's own words, of an open ``connection`` where it says so."""
        # A connection has the scheduler that its network namespace had when it began.
        return {"scheduler": self._sysctl("scheduler"), "path_manager": self._sysctl("path_manager")}

    def notes(self) -> tuple[str, ...]:
        """What somebody who measures on it should know, one line each."""
        if self._sysctl("enabled") is None:
            return ("this kernel has no Multipath TCP: plain TCP can be measured, nothing else",)
        off = ("Multipath TCP is off; hint: sysctl net.mptcp.enabled=1",) if self._sysctl("enabled") == "0" else ()
        return (*off, *binding_note(self._root))

    def _sysctl(self, name: str) -> str | None:
        return read_text(self._root / _SYSCTLS / name)


def _word(name: str) -> str:
    return "stock" if name == "default" else name


def counters(text: str) -> dict[str, int]:
    """``MPTcpExt`` of /proc/net/netstat; empty where the kernel has no Multipath TCP."""
    rows = [line.split()[1:] for line in text.splitlines() if line.startswith("MPTcpExt:")]
    if len(rows) < 2:
        return {}
    return {name: int(value) for name, value in zip(rows[0], rows[1], strict=False) if value.lstrip("-").isdigit()}


def here(root: Path = Path("/")) -> Kernel:
    """The kernel that runs, or, below another ``root``, whose files lie there; the stock one when it has no Multipath TCP at all."""
    if not v094.present(root):
        return Kernel(root)
    from tandem.mptcp.kernel_v094 import V094

    return V094(root)


@dataclass(frozen=True, slots=True)
class Installed:
    """A kernel of this machine. ``linux``: as ``uname -r``; ``runs``: it is the one that runs; ``schedulers``: in the papers' words, those
    known of it."""

    linux: str
    name: str
    runs: bool
    schedulers: tuple[str, ...]


_SECOND = Path("etc/tandem-kernel.json")
"""Which other kernel the role mptcp has installed: ``linux``."""


def installed(root: Path = Path("/")) -> tuple[Installed, ...]:
    """The kernel that runs and, where the role ``mptcp`` has put one beside it, the other: stock while the out-of-tree one runs, and that
    one while stock does."""
    from tandem.mptcp.kernel_v094 import BUILT_IN, name_of

    linux, now = release(root), here(root)
    running = Installed(linux, now.name, True, tuple(sorted(now.schedulers())))
    try:
        other = str(json.loads((root / _SECOND).read_text())["linux"])
    except (OSError, ValueError, KeyError, TypeError):
        return (running,)
    if other == linux:
        return (running, Installed("the distribution's", Kernel.name, False, ("stock",)))
    if not (root / "lib/modules" / other).is_dir():
        return (running,)
    return (running, Installed(other, name_of(other), False, (BUILT_IN,)))
