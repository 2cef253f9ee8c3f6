"""One file that is made of sources, and how a fresh one is compared with the one that is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Comparison = Callable[[bytes, bytes], str | None]
"""(kept, fresh) → None when they show the same, else in a few words what differs."""


def exactly(kept: bytes, fresh: bytes) -> str | None:
    """For text: byte by byte; the first line that differs is named."""
    if kept == fresh:
        return None
    was, now = kept.splitlines(), fresh.splitlines()
    for number, (one, other) in enumerate(zip(was, now, strict=False), start=1):
        if one != other:
            return f"line {number} differs"
    return f"{len(was)} lines, now {len(now)}"


@dataclass(frozen=True, slots=True)
class Product:
    """``path``: below ``hardware/``; ``make``: its bytes, from the sources (SourceError, LackError); ``drawn``: by a program that takes
    seconds and that not every machine has."""

    path: Path
    make: Callable[[], bytes]
    same: Comparison = exactly
    drawn: bool = False
