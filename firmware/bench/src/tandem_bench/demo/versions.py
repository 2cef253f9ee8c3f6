"""Which versions a rehearsal ran with, as each program says itself."""

from __future__ import annotations

import platform
import re
import subprocess
from pathlib import Path

from tandem_bench import __version__

_NUMBER = re.compile(r"\d+(?:\.\d+)+[\w.+~-]*")


def _says(argv: list[str]) -> str | None:
    """The first version number in what ``argv`` prints; None when it cannot be run or prints none."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _NUMBER.search(done.stdout + done.stderr)
    return found.group() if found else None


def versions(influxd: Path, link: Path | None) -> dict[str, str | None]:
    """Program to version; None where a program does not tell."""
    return {
        "tandem": __version__,
        "kernel": platform.release(),
        "python": platform.python_version(),
        "influxdb": _says([str(influxd), "version"]),
        "tandem-link": None if link is None else _says([str(link), "--version"]),
        "tcpdump": _says(["tcpdump", "--version"]),
        "iproute2": _says(["ip", "-V"]),
        "nftables": _says(["nft", "--version"]),
        "dnsmasq": _says(["dnsmasq", "--version"]),
    }
