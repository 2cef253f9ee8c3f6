"""The partition table of a Raspberry Pi's card (MBR: 446 bytes of boot code, four entries, 55 AA), pure bytes in and out.

Layout: https://en.wikipedia.org/wiki/Master_boot_record; the disk's id at 440 is what PARTUUID= is made of.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace

from tandem_image.errors import ImageError

SECTOR = 512
ALIGNED = 8192  # sectors, 4 MiB: an erase block of a card, and what the stock image keeps to
FAT = frozenset({0x0B, 0x0C, 0x0E})
LINUX = 0x83
PROTECTIVE = 0xEE  # the table is a GPT
_ENTRY = struct.Struct("<B3sB3sII")
_BEYOND_CHS = b"\xfe\xff\xff"
_FIRST = 446


@dataclass(frozen=True)
class Partition:
    """One entry, in sectors of 512 bytes."""

    kind: int
    start: int
    sectors: int
    active: bool = False

    @property
    def end(self) -> int:
        """The first sector after it."""
        return self.start + self.sectors


@dataclass(frozen=True)
class Table:
    """Entries in their places (None: free), and the disk's id (0 to 2^32 - 1)."""

    disk_id: int
    entries: tuple[Partition | None, ...]

    def partuuid(self, number: int) -> str:
        """What the kernel calls partition ``number`` (from 1)."""
        return f"{self.disk_id:08x}-{number:02x}"


def parse(sector: bytes) -> Table:
    """The table in a disk's first sector.

    Raises ImageError where there is none, or one that no stock image has.
    """
    if len(sector) < SECTOR or sector[510:512] != b"\x55\xaa":
        raise ImageError(
            "there is no partition table; mend: give the image of Raspberry Pi OS Lite itself (.img or .img.xz)"
        )
    entries: list[Partition | None] = []
    for number in range(4):
        flags, _, kind, _, start, sectors = _ENTRY.unpack_from(sector, _FIRST + number * _ENTRY.size)
        if kind == PROTECTIVE:
            raise ImageError(
                "the image has a GPT partition table, which Raspberry Pi OS Lite has not; mend: take the official image"
            )
        if kind == 0 or sectors == 0:
            entries.append(None)
            continue
        if start + sectors > 1 << 32:
            raise ImageError(
                f"partition {number + 1} ends beyond what its table can say; mend: take the official image"
            )
        entries.append(Partition(kind, start, sectors, flags == 0x80))
    return Table(int.from_bytes(sector[440:444], "little"), tuple(entries))


def render(sector: bytes, table: Table) -> bytes:
    """``sector`` with this table; its boot code stays. Only LBA is told, as for everything beyond the first 8 GB anyway."""
    made = bytearray(sector[:SECTOR])
    made[440:444] = table.disk_id.to_bytes(4, "little")
    for number, entry in enumerate(table.entries):
        packed = bytes(_ENTRY.size)
        if entry is not None:
            packed = _ENTRY.pack(
                0x80 if entry.active else 0, _BEYOND_CHS, entry.kind, _BEYOND_CHS, entry.start, entry.sectors
            )
        made[_FIRST + number * _ENTRY.size : _FIRST + (number + 1) * _ENTRY.size] = packed
    made[510:512] = b"\x55\xaa"
    return bytes(made)


def stock(table: Table, image_sectors: int) -> tuple[Partition, Partition]:
    """Boot and root partition, as the stock image has them.

    Raises ImageError for every other layout.
    """
    boot, root, *others = table.entries
    if boot is None or root is None or boot.kind not in FAT or root.kind != LINUX:
        raise ImageError(
            "the image has not the two partitions of Raspberry Pi OS (FAT, then Linux); mend: take the official image"
        )
    if any(others):
        raise ImageError(
            "the image has more than two partitions: it was prepared before, or started; mend: take a fresh official image"
        )
    if boot.end > root.start or root.end > image_sectors:
        raise ImageError("the image ends before its partitions do; mend: load it again, it was cut off")
    return boot, root


def with_spool(table: Table, root_bytes: int, spool_bytes: int, disk_id: int) -> Table:
    """The root partition with ``root_bytes`` and a third one behind it.

    The third is what keeps every tool from growing the root over the rest of the card; it reaches to the card's end itself, from its
    first start on.
    Raises ImageError if the root would shrink or the table cannot say it.
    """
    boot, root = table.entries[0], table.entries[1]
    if boot is None or root is None:
        raise ValueError("not a stock table")
    sectors = root_bytes // SECTOR
    end = -(-(root.start + sectors) // ALIGNED) * ALIGNED
    if end < root.end:
        raise ImageError(
            f"a root of {root_bytes} bytes is smaller than the image's own; mend: --root-size of {root.sectors * SECTOR} bytes or more"
        )
    spool = Partition(LINUX, end, spool_bytes // SECTOR)
    if spool.end > 1 << 32:
        raise ImageError(
            "root and spool end beyond 2 TiB, which this kind of table cannot say; mend: a smaller --root-size"
        )
    return Table(disk_id, (boot, replace(root, sectors=end - root.start), spool, None))
