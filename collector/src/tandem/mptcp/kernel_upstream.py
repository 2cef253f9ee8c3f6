"""The Multipath TCP of Linux itself (5.6 and later). See ``kernels.Kernel``."""

from __future__ import annotations

import errno
import socket
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tandem import mptcp_abi as abi
from tandem.mptcp import kernel_files
from tandem.mptcp.path_manager import PathManager, UpstreamKernel
from tandem.mptcp_abi.controllers import COUPLED

_FOLDER = Path("proc/sys/net/mptcp")
_NETSTAT = Path("proc/thread-self/net/netstat")
_NO_MULTIPATH = (errno.EPROTONOSUPPORT, errno.ENOPROTOOPT, errno.EINVAL)


class Upstream:
    """``root``: where /proc is."""

    name = "upstream"
    protocol = 1
    untried: str | None = None
    sysctls: tuple[str, ...] = (
        "net.mptcp.enabled", "net.mptcp.scheduler", "net.mptcp.path_manager", "net.mptcp.pm_type", "net.mptcp.blackhole_timeout",
        "net.mptcp.checksum_enabled", "net.mptcp.stale_loss_cnt", "net.mptcp.syn_retrans_before_tcp_fallback",
    )  # fmt: skip
    scheduler_sysctl = "net.mptcp.scheduler"
    brings: Mapping[str, str] = MappingProxyType(
        dict.fromkeys(
            COUPLED,
            "tandem-server congestion load; on a probe the role congestion, congestion_on_probe",
        )
    )

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root

    def open_socket(self, family: socket.AddressFamily, *, multipath: bool) -> socket.socket:
        """See ``Kernel``."""
        return socket.socket(family, socket.SOCK_STREAM, abi.IPPROTO_MPTCP if multipath else 0)

    def lack(self, error: OSError, family: socket.AddressFamily) -> str | None:
        """See ``Kernel``."""
        if error.errno not in _NO_MULTIPATH:
            return None
        if family == socket.AF_INET6:
            return "no Multipath TCP over IPv6 here; mend: a kernel with CONFIG_MPTCP_IPV6, or an IPv4 bearer"
        return "no Multipath TCP here; mend: sysctl net.mptcp.enabled=1, or a kernel from 5.6 with CONFIG_MPTCP"

    def fault(self, connection: socket.socket) -> str | None:  # noqa: ARG002  (as the other kernel's)
        """See ``Kernel``."""
        return None

    def path_manager(self) -> PathManager:
        """See ``Kernel``."""
        return UpstreamKernel()

    def scheduler(self) -> str | None:
        """See ``Kernel``. ``default`` is BLEST-like and none of the papers': ``stock``."""
        now = self._sysctl("scheduler")
        return None if now is None else _word(now)

    def schedulers(self) -> dict[str, str]:
        """See ``Kernel``. ``available_schedulers`` came with Linux 6.10; others can only be loaded as BPF."""
        told = " ".join(filter(None, (self._sysctl("available_schedulers"), self._sysctl("scheduler"))))
        return {_word(name): name for name in told.split()}

    def controllers(self) -> frozenset[str] | None:
        """See ``Kernel``."""
        return kernel_files.controllers(self._root)

    def counters(self) -> dict[str, int]:
        """See ``Kernel``."""
        try:
            return counters((self._root / _NETSTAT).read_text())
        except OSError:
            return {}

    def told(self, connection: socket.socket | None = None) -> dict[str, Any]:  # noqa: ARG002  (as the other kernel's)
        """See ``Kernel``. A connection has the scheduler that its network namespace had when it began."""
        return {"scheduler": self._sysctl("scheduler"), "path_manager": self._sysctl("path_manager")}

    def notes(self) -> tuple[str, ...]:
        """See ``Kernel``."""
        if self._sysctl("enabled") is None:
            return ("this kernel has no Multipath TCP: plain TCP can be measured, nothing else",)
        off = ("Multipath TCP is off; mend: sysctl net.mptcp.enabled=1",) if self._sysctl("enabled") == "0" else ()
        return (*off, *kernel_files.binding_note(self._root))

    def _sysctl(self, name: str) -> str | None:
        return kernel_files.text(self._root / _FOLDER / name)


def _word(name: str) -> str:
    return "stock" if name == "default" else name


def counters(text: str) -> dict[str, int]:
    """``MPTcpExt`` of /proc/net/netstat; empty where the kernel has no Multipath TCP."""
    rows = [line.split()[1:] for line in text.splitlines() if line.startswith("MPTcpExt:")]
    if len(rows) < 2:
        return {}
    return {name: int(value) for name, value in zip(rows[0], rows[1], strict=False) if value.lstrip("-").isdigit()}
