"""Which Multipath TCP this kernel has, behind one interface: how a socket is made, which schedulers and controllers there are, what a
run's record says of it. ``here()`` picks by the kernel's own files.

``kernel_upstream``: Linux since 5.6, version 1 of the protocol (RFC 8684). ``kernel_v094``: the out-of-tree kernel of
multipath-tcp.org, version 0 (RFC 6824). The two do not speak to each other by Multipath TCP: probe and server need the same.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from tandem.mptcp import kernel_files
from tandem.mptcp.kernel_upstream import Upstream
from tandem.mptcp.kernel_v094 import BUILT_IN, V094, name_of
from tandem.mptcp.path_manager import PathManager
from tandem.mptcp_abi import v094


class Kernel(Protocol):
    """``name`` as results say it; ``protocol``: the version it speaks; ``untried``: None, or that this was never run on such a kernel;
    ``sysctls``: those that belong into a run's record; ``scheduler_sysctl``: the one that chooses the scheduler of new
    connections; ``brings``: by controller the command that brings it, where there is one."""

    name: str
    protocol: int
    untried: str | None
    sysctls: tuple[str, ...]
    scheduler_sysctl: str
    brings: Mapping[str, str]

    def open_socket(self, family: socket.AddressFamily, *, multipath: bool) -> socket.socket:
        """A stream socket of Multipath TCP, or of TCP and nothing else. OSError when the kernel refuses."""
        ...

    def lack(self, error: OSError, family: socket.AddressFamily) -> str | None:
        """What is missing, with the mend, when ``open_socket`` with ``multipath`` raised ``error``; None when it says nothing of that."""
        ...

    def fault(self, connection: socket.socket) -> str | None:
        """Why an open ``connection`` that was asked for as Multipath TCP cannot be measured, with its hint; None when it can, also after
        a fallback, which is a result. OSError when it is closed."""
        ...

    def path_manager(self) -> PathManager:
        """What tells the kernel which of our addresses to use."""
        ...

    def scheduler(self) -> str | None:
        """The scheduler of new connections in the papers' words (``minsrtt``, ``roundrobin``, ``stock`` …); None where the kernel has no
        Multipath TCP, or hides it."""
        ...

    def schedulers(self) -> Mapping[str, str]:
        """Those that can be had now: by the papers' word the value of ``scheduler_sysctl``."""
        ...

    def controllers(self) -> frozenset[str] | None:
        """Congestion controllers that a socket may ask for by TCP_CONGESTION; None where the kernel does not tell."""
        ...

    def counters(self) -> dict[str, int]:
        """The counters of Multipath TCP of this network namespace, ``MPCapableSYNTX`` and so on; empty where there are none."""
        ...

    def told(self, connection: socket.socket | None = None) -> dict[str, Any]:
        """For a run's record: ``scheduler`` and ``path_manager`` in the kernel's own words, of an open ``connection`` where it says so."""
        ...

    def notes(self) -> tuple[str, ...]:
        """What somebody who measures on it should know, one line each."""
        ...


def here(root: Path = Path("/")) -> Kernel:
    """The kernel that runs, or, below another ``root``, whose files lie there; the stock one when it has no Multipath TCP at all."""
    return V094(root) if v094.present(root) else Upstream(root)


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
    linux, now = kernel_files.release(root), here(root)
    running = Installed(linux, now.name, True, tuple(sorted(now.schedulers())))
    try:
        other = str(json.loads((root / _SECOND).read_text())["linux"])
    except (OSError, ValueError, KeyError, TypeError):
        return (running,)
    if other == linux:
        return (running, Installed("the distribution's", Upstream.name, False, ("stock",)))
    if not (root / "lib/modules" / other).is_dir():
        return (running,)
    return (running, Installed(other, name_of(other), False, (BUILT_IN,)))
