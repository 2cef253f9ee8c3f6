"""How many further subflows the kernel accepts in a connection (``ip mptcp limits``); reading it takes no privilege."""

from __future__ import annotations

import re
import subprocess


def accepted_subflows() -> int | None:
    """Beside a connection's first; None where it cannot be told (no iproute2, no Multipath TCP)."""
    try:
        done = subprocess.run(["ip", "mptcp", "limits", "show"], capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return parsed(done.stdout) if done.returncode == 0 else None


def parsed(text: str) -> int | None:
    """From what ``ip mptcp limits show`` prints: "add_addr_accepted 0 subflows 2"."""
    found = re.search(r"\bsubflows (\d{1,9})\b", text)
    return None if found is None else int(found[1])
