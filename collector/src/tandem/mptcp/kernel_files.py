"""Small files of the kernel below /proc and /sys, and what its release can do."""

from __future__ import annotations

import os
import re
from pathlib import Path

AVAILABLE_CONTROLLERS = Path("proc/sys/net/ipv4/tcp_available_congestion_control")
_RELEASE = Path("proc/sys/kernel/osrelease")


def text(file: Path) -> str | None:
    """Its content, white space as single blanks; None where there is none, or it is hidden."""
    try:
        return " ".join(file.read_text().split())
    except OSError:
        return None


def controllers(root: Path) -> frozenset[str] | None:
    """Congestion controllers that are loaded or built in; None where the kernel does not tell."""
    told = text(root / AVAILABLE_CONTROLLERS)
    return None if told is None else frozenset(told.split())


def release(root: Path) -> str:
    """As ``uname -r``."""
    return text(root / _RELEASE) or os.uname().release


def since(wanted: tuple[int, int], told: str) -> bool:
    """Whether a release is that version or a later one; True when it says no version."""
    found = re.match(r"(\d{1,9})\.(\d{1,9})", told)
    return found is None or (int(found[1]), int(found[2])) >= wanted


def binding_note(root: Path) -> tuple[str, ...]:
    """Before Linux 5.7 a socket could be bound to an interface by CAP_NET_RAW only."""
    if since((5, 7), release(root)):
        return ()
    return (
        "before Linux 5.7 a path is chosen (SO_BINDTODEVICE) by CAP_NET_RAW only: give the collector that capability too",
    )
