"""Captures that were never closed, since the collector was killed or the power went: their whole packets are kept.

A capture in progress is ``NAME.pcap.tmp``, written whole packets at a time. ``kill -9`` leaves it whole; a power cut may leave any end:
none, zeros, or what the disk held before. It is cut in place after the last packet that is whole, so that it takes no room.
"""

from __future__ import annotations

import hashlib
import logging
import os
from dataclasses import dataclass
from pathlib import Path

from tandem.capture.pcap import PcapError, Walker

log = logging.getLogger(__name__)

SUFFIX = ".pcap.tmp"
_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class Salvaged:
    """``file``: where the whole packets lie now, None when there were none (the file is gone then); ``lost_bytes``: cut off its end."""

    file: Path | None
    bytes: int
    packets: int
    sha256: str
    lost_bytes: int
    left: Path
    """What it was."""


def salvage_all(folder: Path) -> list[Salvaged]:
    """What captures left in ``folder``, nobody of which may be writing. One that cannot be read or cut stays, and is told in the log."""
    found: list[Salvaged] = []
    for left in sorted(folder.glob(f"*{SUFFIX}")) if folder.is_dir() else []:
        try:
            found.append(salvage(left))
        except OSError as error:
            log.error("%s cannot be salvaged: %s; it stays as it is", left, error.strerror or error)
    return found


def salvage(left: Path) -> Salvaged:
    """One ``.pcap.tmp``: cut, synced, renamed. OSError when the disk does not let it."""
    whole, packets, digest = _walk(left)
    lost = left.stat().st_size - whole
    if not packets:
        left.unlink()
        return Salvaged(None, 0, 0, digest, lost + whole, left)
    file = _free(left.with_name(left.name.removesuffix(".tmp")))
    opened = os.open(left, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        os.ftruncate(opened, whole)
        os.fsync(opened)
    finally:
        os.close(opened)
    left.rename(file)
    folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return Salvaged(file, whole, packets, digest, lost, left)


def _walk(left: Path) -> tuple[int, int, str]:
    """Bytes and packets that are whole from the beginning on, and the sha256 of these."""
    walker, digest = Walker(torn=True), hashlib.sha256()
    with left.open("rb", buffering=0) as stream:
        while walker.damage is None and (piece := stream.read(_PIECE)):
            try:
                whole, _ = walker.feed(piece)
            except PcapError:
                break  # not even its beginning is a capture's
            digest.update(whole)
    return walker.whole_bytes, walker.packets, digest.hexdigest()


def _free(file: Path) -> Path:
    """A name that is free; a closed capture is never written over."""
    number, free = 1, file
    while free.exists():
        number += 1
        free = file.with_name(f"{file.stem}.{number}.pcap")
    return free
