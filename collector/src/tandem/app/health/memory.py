"""Memory, load and uptime from /proc. Pure parsers of its texts (Documentation/filesystems/proc.rst); ValueError for other ones."""

from __future__ import annotations

import re


def available_bytes(meminfo: str) -> int:
    """What programs can get without swapping."""
    match = re.search(r"^MemAvailable:\s+([0-9]{1,15}) kB$", meminfo, re.MULTILINE | re.ASCII)
    if match is None:
        raise ValueError("meminfo has no MemAvailable")
    return int(match[1]) * 1024


def load_1min(loadavg: str) -> float:
    """The first of the three means."""
    match = re.match(r"([0-9]{1,7}\.[0-9]{1,4}) ", loadavg, re.ASCII)
    if match is None:
        raise ValueError(f"{loadavg[:40]!r} is no loadavg")
    return float(match[1])


def uptime_s(uptime: str) -> float:
    """Seconds since the boot, suspended ones included."""
    match = re.match(r"([0-9]{1,12}\.[0-9]{1,4}) ", uptime, re.ASCII)
    if match is None:
        raise ValueError(f"{uptime[:40]!r} is no uptime")
    return float(match[1])
