"""What else shapes an experiment's figures: kernel, sysctls, paths; and what an interface has counted."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from tandem.experiment.asked import Asked
from tandem.mptcp import sysctls

_COUNTERS = Path("/proc/thread-self/net/dev")
"""Of the network namespace that this process is in, which /sys may not be."""


def machine(asked: Asked) -> dict[str, Any]:
    """The environment of a result, for experiments without one measured connection."""
    values, own, times = sysctls.read(), os.uname(), os.times()
    return {
        "kernel": own.release,
        "machine": own.machine,
        "python": sys.version.split()[0],
        "scheduler": values.get("net.mptcp.scheduler"),
        "path_manager": values.get("net.mptcp.path_manager"),
        "sysctls": values,
        "paths": [{"name": p.name, "interface": p.interface, "operator": p.operator} for p in asked.paths],
        "cpu_seconds": times.user + times.system,
    }


def interface_bytes(interface: str, since: dict[str, int | None] | None = None) -> dict[str, int | None]:
    """What the kernel counted on ``interface``, headers and all, after the reading ``since``. None: it is gone, or was made anew."""
    try:
        rows = (line.partition(":") for line in _COUNTERS.read_text().splitlines())
        counted = next((row.split() for name, _, row in rows if name.strip() == interface), None)
    except OSError:
        counted = None
    now = (
        {"received": None, "sent": None} if counted is None else {"received": int(counted[0]), "sent": int(counted[8])}
    )
    if since is None:
        return dict(now)
    found: dict[str, int | None] = {}
    for key, value in now.items():
        before = since[key]
        found[key] = None if value is None or before is None or value < before else value - before
    return found
