"""The stock image becomes one probe's: unpacked, its table rewritten, its two file systems filled, and looked at again."""

from __future__ import annotations

import os
import secrets
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from tandem_image import bookworm, mbr, parts, release, source, trixie
from tandem_image.errors import ImageError
from tandem_image.ext4 import RootPartition
from tandem_image.fat import BootPartition
from tandem_image.settings import GIB, Settings

_WAYS: dict[str, ModuleType] = {"bookworm": bookworm, "trixie": trixie}


@dataclass(frozen=True)
class Made:
    """What came of it. ``card_bytes``: the smallest card that takes it."""

    path: Path
    release: str
    architecture: str
    image_bytes: int
    card_bytes: int
    enrols: bool


def make(stock_image: Path, target: Path, settings: Settings, progress: Callable[[int], None] = lambda _: None) -> Made:
    """Make ``target``, which must not be there; it appears whole or not at all.

    Raises ImageError for what a person has to mend.
    """
    if target.exists():
        raise ImageError(f"{target} is there already; mend: remove it, or --output with another name")
    if not target.parent.is_dir():
        raise ImageError(f"there is no folder {target.parent}; mend: make it, or --output with another name")
    unfinished = target.with_name(target.name + ".tmp")
    unfinished.unlink(missing_ok=True)
    try:
        made = _make(stock_image, unfinished, settings, progress)
        with unfinished.open("rb") as file:
            os.fsync(file.fileno())
        unfinished.rename(target)
    finally:
        unfinished.unlink(missing_ok=True)
    return Made(target, *made)


def inspect(image: Path, size: int) -> tuple[mbr.Table, RootPartition, BootPartition, release.Stock]:
    """The table, both partitions and what they are of."""
    with image.open("rb") as file:
        table = mbr.parse(file.read(mbr.SECTOR))
    boot_entry, root_entry = mbr.stock(table, size // mbr.SECTOR)
    boot = BootPartition(image, boot_entry.start * mbr.SECTOR)
    root = RootPartition(image, root_entry.start * mbr.SECTOR)
    return table, root, boot, release.identify(boot, root)


def _make(
    stock_image: Path, image: Path, settings: Settings, progress: Callable[[int], None]
) -> tuple[str, str, int, int, bool]:
    size = source.unpack(stock_image, image, progress)
    old, root, boot, stock = inspect(image, size)
    root.check()
    # A disk id of its own: partitions are found by it, also where two cards are in one machine.
    table = mbr.with_spool(old, settings.root_bytes, GIB, secrets.randbelow(0xFFFFFFFE) + 1)
    way = _WAYS[stock.release]
    country = None if settings.wifi is None else settings.wifi.country
    root.put([*parts.common(stock, old.disk_id, table, settings, uuid.uuid4()), *way.root_files(stock, settings)])
    root.check()
    boot_files = {
        "cmdline.txt": parts.cmdline(stock, table, country).encode(),
        "config.txt": parts.config(stock).encode(),
        **way.boot_files(stock, settings),
    }
    for name, content in boot_files.items():
        boot.write(name, content)
    with image.open("r+b") as file:
        sector = file.read(mbr.SECTOR)
        file.seek(0)
        file.write(mbr.render(sector, table))
    last = max(entry.end for entry in table.entries if entry is not None)
    return stock.release, stock.architecture, size, last * mbr.SECTOR, settings.enrolment is not None
