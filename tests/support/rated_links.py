"""The only maker of veth pairs here: each has a rate, far under what any machine gives, so that the link decides and not the machine.

``test_links_have_a_rate`` refuses a pair made elsewhere. Links with delay or loss, or that change: ``two_ends``, ``radio_pair``.
"""

from __future__ import annotations

import subprocess

BIT_PER_S = 20e6
_QUEUE_MS = 100


def join(
    here: int, near: str, there: int, far: str, *, bit_per_s: float = BIT_PER_S, address: str = "", upwards: bool = True
) -> None:
    """A link from ``near`` in the network namespace of process ``here`` to ``far`` in that of process ``there``; both ends are down.

    ``address``: the far end's MAC, any when empty; ``upwards``: False leaves ``near`` without a queue of ours, for a test that gives it
    its own."""
    mac = ["address", address] if address else []
    _ip(here, "ip", "link", "add", near, "type", "veth", "peer", "name", far, *mac, "netns", str(there))
    for process, name in ((there, far), *([(here, near)] if upwards else [])):
        limit = ["rate", f"{bit_per_s:.0f}bit", "burst", "16kb", "latency", f"{_QUEUE_MS}ms"]
        _ip(process, "tc", "qdisc", "add", "dev", name, "root", "tbf", *limit)


def _ip(process: int, *command: str) -> None:
    done = subprocess.run(
        ["nsenter", "-t", str(process), "-n", "--", *command], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
