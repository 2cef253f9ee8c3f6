"""``server_health`` and ``server_disk``: the machine that the gateway is on, once a minute, as its kernel reports it (proc(5), statvfs(3)).
What it does not report is None."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tandem.schema.record import Value
from tandem_server import __version__
from tandem_server.ingest.periodic import PERIOD_S, Leased, own_line, put
from tandem_server.registry import Registry
from tandem_server.store import SeriesStore

LEASE = "machine"
_HELD_EVERY_S = 600.0
_SHARE = 100
"""A folder whose files took long to count is counted again after a hundred times as long."""
_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Processors:
    """Time of all processors since the boot, in ticks: ``busy`` of ``total``."""

    busy: int
    total: int


def processors(stat: str) -> Processors | None:
    """Of /proc/stat: its first line, in whose order idle is the fourth and iowait the fifth; guests' time is in users' already."""
    words = stat.partition("\n")[0].split()
    if len(words) < 6 or words[0] != "cpu" or not all(word.isascii() and word.isdigit() for word in words[1:9]):
        return None
    ticks = [int(word) for word in words[1:9]]
    return Processors(sum(ticks) - ticks[3] - ticks[4], sum(ticks))


def busy_percent(before: Processors | None, now: Processors | None) -> float | None:
    """Between the two, 0 to 100; None without both, or with no time between them."""
    if before is None or now is None or now.total <= before.total:
        return None
    return min(100.0, max(0.0, 100.0 * (now.busy - before.busy) / (now.total - before.total)))


def memory_bytes(meminfo: str) -> dict[str, int]:
    """Of /proc/meminfo by its names; what is in other units than kB is left out."""
    found = {}
    for line in meminfo.splitlines():
        name, colon, rest = line.partition(":")
        words = rest.split()
        if colon and len(words) == 2 and words[1] == "kB" and words[0].isascii() and words[0].isdigit():
            found[name] = int(words[0]) * 1024
    return found


def first_number(text: str) -> float | None:
    """The first word, as of /proc/loadavg and /proc/uptime; None when it is no number from 0 on."""
    word = text.partition(" ")[0].strip()
    plain = word.replace(".", "", 1)
    return float(word) if plain.isascii() and plain.isdigit() else None


def machine(proc: Path, stat: Processors | None, before: Processors | None) -> dict[str, Value | None]:
    """Fields of ``server_health`` that are the machine's."""
    memory = memory_bytes(_text(proc / "meminfo"))
    return {
        "load_1min": first_number(_text(proc / "loadavg")),
        "cores": len(os.sched_getaffinity(0)),
        "cpu_percent": busy_percent(before, stat),
        "memory_total_bytes": memory.get("MemTotal"),
        "memory_available_bytes": memory.get("MemAvailable"),
        "uptime_s": first_number(_text(proc / "uptime")),
    }


def processors_now(proc: Path) -> Processors | None:
    """Of the kernel."""
    return processors(_text(proc / "stat"))


def disk(place: Path) -> dict[str, int | None] | None:
    """Fields of ``server_disk`` but for ``held_bytes``; None where there is no such place."""
    try:
        status = os.statvfs(place)
    except OSError:
        return None
    return {
        "free_bytes": status.f_bavail * status.f_frsize,
        "used_bytes": (status.f_blocks - status.f_bfree) * status.f_frsize,
        "free_inodes": status.f_favail if status.f_files else None,
    }


def held_bytes(place: Path) -> int:
    """On disk, of all files in a folder, or of a file and those beside it whose names begin as its own (SQLite's log). What goes or may
    not be read meanwhile counts as nothing."""
    if not place.is_dir():
        return sum(_blocks(entry) for entry in _entries(place.parent) if entry.name.startswith(place.name))
    total, folders = 0, [place]
    while folders:
        for entry in _entries(folders.pop()):
            if entry.is_dir(follow_symlinks=False):
                folders.append(Path(entry.path))
            else:
                total += _blocks(entry)
    return total


def of_places(places: Mapping[str, Path]) -> dict[str, dict[str, int | None]]:
    """``disk`` of those that are there, by name."""
    found = {name: disk(place) for name, place in places.items()}
    return {name: usage for name, usage in found.items() if usage is not None}


class MachineSeries(Leased):
    """``places``: the server's folders, and its registry's file, by their names in SERVER_PLACES (tandem_server.schema.measurements)."""

    def __init__(
        self, registry: Registry, store: SeriesStore, places: Mapping[str, Path], period_s: int = PERIOD_S
    ) -> None:
        super().__init__(registry, LEASE, self._put, period_s)
        self._registry_of_probes, self._store, self._places = registry.probes, store, places
        self._before = processors_now(_PROC)
        self._next_s: dict[str, float] = {}

    def _put(self, now_utc_ns: int) -> None:
        at_utc_ns = self.whole(now_utc_ns)
        began_s = time.perf_counter()
        version = self._store.ping()
        answer_ms = 1e3 * (time.perf_counter() - began_s)
        now = processors_now(_PROC)
        fields: dict[str, Value | None] = {
            **machine(_PROC, now, self._before),
            "database_answer_ms": answer_ms,
            "database": version or None,
            "version": __version__,
            "probes": sum(probe.revoked_utc_ns is None for probe in self._registry_of_probes.all()),
        }
        self._before = now
        lines = [own_line("server_health", {}, fields, at_utc_ns)]
        for name, usage in of_places(self._places).items():
            lines.append(own_line("server_disk", {"place": name}, {**usage, "held_bytes": self._held(name)}, at_utc_ns))
        put(self._store, [line for line in lines if line is not None])

    def _held(self, name: str) -> int | None:
        """Counted now, or None while it is not due."""
        start_s = time.monotonic()
        if start_s < self._next_s.get(name, 0.0):
            return None
        held = held_bytes(self._places[name])
        self._next_s[name] = start_s + max(_HELD_EVERY_S, _SHARE * (time.monotonic() - start_s))
        return held


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return list(found)
    except OSError:
        return []


def _blocks(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_blocks * 512
    except OSError:
        return 0


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
