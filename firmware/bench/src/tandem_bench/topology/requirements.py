"""What the bench needs from the machine."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

PROGRAMS = {
    "ip": "iproute2",
    "nft": "nftables",
    "dnsmasq": "dnsmasq-base",
    "nsenter": "util-linux",
    "unshare": "util-linux",
    "mount": "util-linux (mount)",
}
"""Programs started, with the Debian package of each."""


class MachineError(RuntimeError):
    """The machine lacks something; the message is one line with the mend. Exit status 3."""


def out_of_tree() -> bool:
    """Whether this is the v0.9x kernel of multipath-tcp.org (Linux 4.14 and its like), which shows this in every network namespace."""
    return Path("/proc/thread-self/net/mptcp_net").exists()


def require() -> None:
    """Raise MachineError for the first thing that is missing: root, Multipath TCP, a program. Links say themselves what they lack."""
    if os.geteuid() != 0:
        raise MachineError("not root: the bench makes network namespaces; hint: run it with sudo")
    for program, package in PROGRAMS.items():
        if shutil.which(program) is None:
            raise MachineError(f"{program} not found; hint: apt-get install {package.split()[0]}")
    if not Path("/proc/sys/net/mptcp/enabled").exists() and not out_of_tree():
        raise MachineError(
            "the kernel has no Multipath TCP (CONFIG_MPTCP); hint: use Debian's or Ubuntu's kernel, 5.15 or later"
        )
