"""What the state folder is on: room left, the card or disk below it, what that tells of its wear.

Source: Documentation/driver-api/mmc/mmc-dev-attrs.rst, Documentation/block/stat.rst (512-byte sectors), JESD84-B51 (extended CSD
registers 267 to 269). The kernel reads an eMMC's wear once, when it finds it: at boot. SD cards tell none.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from tandem.app.health.roots import Roots, text_of

SECTOR = 512
_CARD = re.compile(r"mmcblk[0-9]+")
_MOST = 4
"""Cards of one machine that are told of."""


@dataclass(frozen=True, slots=True)
class Room:
    """Of a file system: bytes, and inodes, None where it has no fixed number of them."""

    free_bytes: int
    used_bytes: int
    free_inodes: int | None
    used_inodes: int | None

    @property
    def size_bytes(self) -> int:
        """Free and used; not what is kept for the superuser."""
        return self.free_bytes + self.used_bytes


def room_of(folder: Path) -> Room:
    """OSError when it cannot be asked."""
    told = os.statvfs(folder)
    fixed = told.f_files > 0
    return Room(
        free_bytes=told.f_bavail * told.f_frsize,
        used_bytes=(told.f_blocks - told.f_bfree) * told.f_frsize,
        free_inodes=told.f_favail if fixed else None,
        used_inodes=told.f_files - told.f_ffree if fixed else None,
    )


def devices(roots: Roots, folder: Path) -> list[Path]:
    """The block device's folder in sysfs of the one that ``folder`` is on, and those of all SD cards and eMMCs."""
    found: list[Path] = []
    number = folder.stat().st_dev
    own = roots.sys / "dev" / "block" / f"{os.major(number)}:{os.minor(number)}"
    if own.exists():  # not a tmpfs, an overlay, a volume over several disks
        block = own.resolve()
        found.append(block.parent if (block / "partition").exists() else block)
    for card in sorted((roots.sys / "block").glob("mmcblk*")):
        if _CARD.fullmatch(card.name) and card.resolve() not in found:
            found.append(card.resolve())
    return found[:_MOST]


def card_fields(block: Path) -> dict[str, int | str | None]:
    """Fields of a ``card`` record from a block device's folder; ValueError for a file that says something else than it should."""
    device = block / "device"
    read, written = _moved(block / "stat")
    size = _number(block / "size", 10)
    life = codes(text_of(device / "life_time"), 2)
    eol = codes(text_of(device / "pre_eol_info"), 1)
    return {
        "kind": _kind(block.name, text_of(device / "type")),
        "name": (text_of(device / "name") if _CARD.match(block.name) else text_of(device / "model")) or None,
        "made": text_of(device / "date") if _CARD.match(block.name) else None,
        "size_bytes": None if size is None else size * SECTOR,
        "erase_bytes": _number(device / "preferred_erase_size", 10),
        "read_bytes": read,
        "written_bytes": written,
        "life_time_a_code": life[0] if life else None,
        "life_time_b_code": life[1] if life else None,
        "life_used_a_percent": used_percent(life[0]) if life else None,
        "life_used_b_percent": used_percent(life[1]) if life else None,
        "pre_eol_code": eol[0] if eol else None,
    }


def used_percent(code: int) -> int | None:
    """The upper end of the tenth that a life time code tells; 110 when the estimate is exceeded, None when it is not defined."""
    return code * 10 if 1 <= code <= 11 else None


def codes(text: str | None, count: int) -> tuple[int, ...] | None:
    """``0x01 0x02`` → (1, 2); None without text. ValueError for other texts."""
    if text is None:
        return None
    if re.fullmatch(r"0x[0-9a-fA-F]{2}(?: 0x[0-9a-fA-F]{2})*", text) is None or len(text.split()) != count:
        raise ValueError(f"{text[:40]!r} is not {count} codes")
    return tuple(int(word, 16) for word in text.split())


def moved_bytes(stat: str) -> tuple[int, int]:
    """Read and written bytes from the text of a block device's ``stat``: its fields 3 and 7."""
    words = stat.split()
    if len(words) < 11 or not all(re.fullmatch("[0-9]{1,20}", word, re.ASCII) for word in words[:11]):
        raise ValueError(f"{stat[:40]!r} is no block device's stat")
    return int(words[2]) * SECTOR, int(words[6]) * SECTOR


def _moved(file: Path) -> tuple[int | None, int | None]:
    text = text_of(file)
    return (None, None) if text is None else moved_bytes(text)


def _number(file: Path, base: int) -> int | None:
    text = text_of(file)
    if text is None:
        return None
    if re.fullmatch("[0-9]{1,20}", text, re.ASCII) is None:
        raise ValueError(f"{file.name}: {text[:40]!r} is no number")
    return int(text, base)


def _kind(name: str, told: str | None) -> str:
    """Of a block device by its name; of an mmcblk by what the bus found (SD, or MMC for an eMMC)."""
    if _CARD.match(name):
        return "emmc" if told == "MMC" else "sd"
    if name.startswith("nvme"):
        return "nvme"
    return "disk" if name.startswith("sd") else "virtual"
