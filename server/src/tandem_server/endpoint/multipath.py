"""The two kernels' ways of Multipath TCP at this end: the stock one has a protocol of its own for it (IPPROTO_MPTCP), the out-of-tree
v0.9x kernel an option of TCP sockets.

They speak different versions of the protocol (``environment``): a probe of one kind gets plain TCP from a server of the other.
"""

from __future__ import annotations

import re
import socket
import subprocess

from tandem.mptcp_abi import IPPROTO_MPTCP, v094

HINT = "sysctl net.mptcp.enabled=1 on Linux 5.6 or later (net.mptcp.mptcp_enabled=1 on the v0.94 kernel)"


def open_socket(family: socket.AddressFamily, *, multipath: bool) -> socket.socket:
    """A stream socket of Multipath TCP, or of TCP alone; OSError when the kernel has none."""
    if v094.present():
        return v094.open_socket(family, multipath=multipath)
    return socket.socket(family, socket.SOCK_STREAM, IPPROTO_MPTCP if multipath else socket.IPPROTO_TCP)


def accepted_subflows() -> int | None:
    """How many subflows the kernel accepts in a connection beside its first (``ip mptcp limits``, which takes no privilege to read); None
    where that is not known (no iproute2, no Multipath TCP)."""
    try:
        done = subprocess.run(["ip", "mptcp", "limits", "show"], capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return parsed(done.stdout) if done.returncode == 0 else None


def parsed(text: str) -> int | None:
    """From what ``ip mptcp limits show`` prints: "add_addr_accepted 0 subflows 2"."""
    found = re.search(r"\bsubflows (\d{1,9})\b", text)
    return None if found is None else int(found[1])
