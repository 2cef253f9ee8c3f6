"""What the collector's own machine says: interface counters, processor time, memory, versions."""

from __future__ import annotations

import os
import platform
import re
import resource
import shutil
import sqlite3
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path

import tandem

NET_DEV = Path("/proc/net/dev")  # not /sys, which shows the network namespace in which it was mounted


def read_counters(text: str) -> dict[str, tuple[int, int]]:
    """Received and sent bytes by interface from the text of /proc/net/dev."""
    found: dict[str, tuple[int, int]] = {}
    for line in text.splitlines()[2:]:
        name, colon, rest = line.partition(":")
        words = rest.split()
        if colon and len(words) >= 9 and words[0].isdigit() and words[8].isdigit():
            found[name.strip()] = (int(words[0]), int(words[8]))
    return found


class UsageAccount:
    """Bytes over each path's interface since the start; ``interfaces`` may change. One that came back with its counters at 0 is gone
    on with. From any thread."""

    def __init__(self, interfaces: Mapping[str, str | None]) -> None:
        self._interfaces = interfaces
        self._lock = threading.Lock()
        self._totals = {path: [0, 0] for path in interfaces}
        self._before = self._read()

    @staticmethod
    def _read() -> dict[str, tuple[int, int]]:
        return read_counters(NET_DEV.read_text())

    def update(self) -> dict[str, tuple[int, int]]:
        """Received and sent bytes by path."""
        with self._lock:
            now = self._read()
            for path, interface in self._interfaces.items():
                if interface is None or interface not in now:
                    continue
                before = self._before.get(interface, (0, 0))
                for side in (0, 1):
                    grown = now[interface][side] - before[side]
                    self._totals[path][side] += grown if grown >= 0 else now[interface][side]
            self._before = {**self._before, **now}
            return {path: (received, sent) for path, (received, sent) in self._totals.items()}


def cpu_seconds() -> float:
    """User and system time of this process and of its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def rss_bytes() -> int:
    """Resident memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def peak_rss_bytes() -> int:
    """The most there ever was of it."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def versions() -> dict[str, str]:
    """Of everything that shapes what is measured."""
    found = {
        "tandem": tandem.__version__,
        "python": platform.python_version(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "sqlite": sqlite3.sqlite_version,
    }
    for program in ("tcpdump",):
        path = shutil.which(program, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")
        if path is not None:
            try:
                done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=5, check=False)
            except (OSError, subprocess.TimeoutExpired):
                continue
            match = re.search(r"version (\S+)", done.stdout + done.stderr)
            found[program] = match[1] if match else "unknown"
    return found
