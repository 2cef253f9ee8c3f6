"""What the kernel tells of this machine and its disks (proc(5), statvfs(3)). What it does not tell is None."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tandem.schema.record import Value


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
        told = os.statvfs(place)
    except OSError:
        return None
    return {
        "free_bytes": told.f_bavail * told.f_frsize,
        "used_bytes": (told.f_blocks - told.f_bfree) * told.f_frsize,
        "free_inodes": told.f_favail if told.f_files else None,
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
    return {name: told for name, told in found.items() if told is not None}


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
