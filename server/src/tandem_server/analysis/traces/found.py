"""Which captures are meant: files as named, folders searched; and in which batches they are analysed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tandem_server.analysis.traces.manifest import TOGETHER

ENDINGS = tuple(f"{kind}{packed}" for kind in (".pcap", ".pcapng") for packed in ("", ".gz", ".zst", ".xz", ".bz2"))
"""The last two cannot be read, which is told of each."""
MOST_FILES = 100
MOST_BYTES = 256 << 20
SMALL_BYTES = 16 << 20
"""MOST: of a batch, what a process is given at once. Batches do not depend on the number of processes, so that parts do not either."""


@dataclass
class Found:
    """``paths`` as named, each file once. ``unread``: folders that could not be searched, and why. ``empty``: without any capture."""

    paths: list[str] = field(default_factory=list)
    unread: list[tuple[str, str]] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)


def find(named: Iterable[Path]) -> Found:
    """Files in the order given, a folder's in order of their paths. A file that is named counts whatever it is called."""
    found = Found()
    seen: set[str] = set()
    for path in named:
        inside = _inside(path, found) if path.is_dir() else [str(path)]
        if not inside:
            found.empty.append(str(path))
        for each in inside:
            if (whole := os.path.abspath(each)) not in seen:  # noqa: PTH100  (links are left as they are)
                seen.add(whole)
                found.paths.append(each)
    return found


def _inside(folder: Path, found: Found) -> list[str]:
    def unread(error: OSError) -> None:
        found.unread.append((str(error.filename), error.strerror or str(error)))

    made = [
        Path(place) / name
        for place, _, names in os.walk(folder, onerror=unread)
        for name in names
        if name.lower().endswith(ENDINGS)
    ]
    return [str(path) for path in sorted(made)]


def batches(paths: Sequence[str], most_files: int = MOST_FILES, most_bytes: int = MOST_BYTES) -> list[list[str]]:
    """In order; a larger file is a batch of its own."""
    made: list[list[str]] = []
    size = 0
    for path in paths:
        own = _size(path)
        if not made or len(made[-1]) >= most_files or size + own > most_bytes:
            made.append([])
            size = 0
        made[-1].append(path)
        size += own
    return made


def small(batches: Sequence[list[str]]) -> bool:
    """Done sooner than a process is started, and without any need of one that may be killed in this one's stead."""
    return len(batches) <= 1 and sum(_size(path) for batch in batches for path in batch) <= SMALL_BYTES


def _size(path: str) -> int:
    try:
        return sum(Path(one).stat().st_size for one in path.split(TOGETHER))
    except OSError:  # its reading will say why
        return 0
