"""What an interface has counted, for the accounts of experiments whose payload is small beside their headers."""

from __future__ import annotations

from pathlib import Path

_COUNTERS = Path("/proc/thread-self/net/dev")
"""Of the network namespace that this process is in, which /sys may not be."""


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
