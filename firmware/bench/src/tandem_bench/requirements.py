"""What the bench needs from this machine, and where its programs are."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tandem_bench import BenchError

PROGRAMS = {
    "ip": "iproute2",
    "nft": "nftables",
    "dnsmasq": "dnsmasq-base",
    "nsenter": "util-linux",
    "unshare": "util-linux",
    "mount": "util-linux (mount)",
}
"""Programs started, with the Debian package of each."""
REPOSITORY = Path(__file__).parents[4]
LINK, INFLUXD = "TANDEM_LINK", "TANDEM_INFLUXD"
"""Environment variables that name a program, before any other place."""


class MachineError(BenchError):
    """The machine lacks something; the message is one line with the hint. Exit status 3."""


def out_of_tree() -> bool:
    """Whether this is the v0.9x kernel of multipath-tcp.org (Linux 4.14 and its like), which shows this in every network namespace."""
    return Path("/proc/thread-self/net/mptcp_net").exists()


def require() -> None:
    """Raise MachineError for the first thing that is missing: root, Multipath TCP, TUN, a program."""
    if os.geteuid() != 0:
        raise MachineError("not root: the bench makes network namespaces; hint: run it with sudo")
    for program, package in PROGRAMS.items():
        if shutil.which(program) is None:
            raise MachineError(f"{program} not found; hint: apt-get install {package.split()[0]}")
    if not Path("/proc/sys/net/mptcp/enabled").exists() and not out_of_tree():
        raise MachineError(
            "the kernel has no Multipath TCP (CONFIG_MPTCP); hint: use Debian's or Ubuntu's kernel, 5.15 or later"
        )
    find_link()
    if not Path("/dev/net/tun").exists():
        raise MachineError("/dev/net/tun is missing; hint: modprobe tun")


def find_link() -> Path:
    """The program ``tandem-link``: what ``TANDEM_LINK`` names, else ``kit``'s. MachineError if there is none."""
    path = Path(os.environ.get(LINK) or REPOSITORY / "build/bin/tandem-link")
    if path.is_file() and os.access(path, os.X_OK):
        return path.resolve()
    why = f"the environment variable {LINK} names it" if os.environ.get(LINK) else "it is built by ./kit setup"
    raise MachineError(f"{path}: no such program ({why}); hint: ./kit setup")


def find_influxd() -> Path:
    """The InfluxDB 1.x that ``kit`` found or unpacked, else one on PATH; MachineError."""
    unpacked = REPOSITORY / "build/influxdb/usr/bin/influxd"
    for candidate in (os.environ.get(INFLUXD), unpacked, shutil.which("influxd")):
        if candidate and os.access(candidate, os.X_OK):
            return Path(candidate)
    raise MachineError("no influxd (InfluxDB 1.x); ./kit setup takes it out of the distribution's package")
