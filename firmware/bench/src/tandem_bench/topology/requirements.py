"""What this machine must have before a bench can be built, asked before anything is touched."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

PROGRAMS = {"ip": "iproute2", "nft": "nftables", "dnsmasq": "dnsmasq-base", "setpriv": "util-linux"}


class EnvironmentLacks(RuntimeError):  # noqa: N818  # read as a sentence: the environment lacks …
    """Something is missing; one line with the mend."""


def check() -> None:
    """Raise EnvironmentLacks unless we are root and kernel and programs can carry a bench."""
    if os.geteuid() != 0:
        raise EnvironmentLacks("namespaces and links need root; start it with sudo, or by ./kit demo, which does")
    if not Path("/proc/sys/net/mptcp/enabled").exists():
        raise EnvironmentLacks(
            "this kernel has no Multipath TCP (no /proc/sys/net/mptcp); use one of 5.6 or later built with CONFIG_MPTCP, "
            "such as Debian's or Ubuntu's"
        )
    try:
        os.close(os.open("/dev/net/tun", os.O_RDWR))
    except OSError as error:
        raise EnvironmentLacks(f"/dev/net/tun: {error.strerror}; load the module tun (modprobe tun)") from None
    for program, package in PROGRAMS.items():
        if shutil.which(program) is None:
            raise EnvironmentLacks(
                f"the program {program} is missing; install the package {package} (./kit setup does)"
            )
