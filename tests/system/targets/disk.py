"""A machine's disk: made of a root file system, and honest about power cuts.

The machine writes to an overlay; the emulator's log (QEMU's ``blklogwrites``, the format of the kernel's dm-log-writes) has every write
and every flush in its order. ``settle`` puts into the disk what was on it for certain when the power went: the log up to its last flush.
What came after it is lost, as in the cache of a real disk.
"""

from __future__ import annotations

import os
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

from targets.ground import run

_SUPER = struct.Struct("<QQQI")
"""Magic, version, number of entries (behind what is written: not read), bytes of a sector."""
_ENTRY = struct.Struct("<QQQQ")
"""First sector, number of sectors, flags, bytes of a mark. What was written follows in the next sectors; nothing after a discard."""
_MAGIC = 0x6A736677736872
_FLUSH, _FUA, _DISCARD = 1, 2, 4
ROOM = 1 << 30
"""Free bytes of a disk."""
SIZES = ("-N", "200000")
"""Inodes: of a root with many small files."""


@dataclass(frozen=True, slots=True)
class Settled:
    """``kept``, ``lost``: bytes written and flushed, and written only; ``flushes``."""

    kept: int
    lost: int
    flushes: int


@dataclass(frozen=True, slots=True)
class _Write:
    offset: int
    size: int
    at: int | None
    """Where the content is in the log; None: zeros."""


class Disk:
    """``image``: what is on the disk for certain, a raw image; the overlay and the log lie beside it while the machine runs."""

    def __init__(self, image: Path) -> None:
        self.image = image
        self._overlay, self._log = image.with_suffix(".overlay"), image.with_suffix(".log")

    def options(self) -> list[str]:
        """Of the emulator, for a start from what is on the disk."""
        self._overlay.unlink(missing_ok=True)
        run("qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", self.image, self._overlay)
        self._log.write_bytes(b"")
        # Neither file need outlive this machine: only the emulator is killed, so what it handed to the kernel is there.
        careless = "cache.no-flush=on"
        return [
            *("-blockdev", f"driver=qcow2,node-name=overlay,{careless},file.driver=file,file.filename={self._overlay}"),
            *("-blockdev", f"driver=file,node-name=log,{careless},filename={self._log}"),
            *("-blockdev", "driver=blklogwrites,node-name=disk,file=overlay,log=log"),
            *("-device", "virtio-blk-pci,drive=disk"),
        ]  # fmt: skip

    def settle(self) -> Settled:
        """After the machine ended: the disk as a power cut leaves it."""
        if not self._log.exists():
            return Settled(0, 0, 0)
        kept = lost = flushes = 0
        pending: list[_Write] = []
        with self._log.open("rb") as log, self.image.open("r+b") as image:
            for write in _entries(log.fileno()):
                if write is not None:
                    pending.append(write)
                    continue
                for each in pending:
                    content = os.pread(log.fileno(), each.size, each.at) if each.at is not None else bytes(each.size)
                    os.pwrite(image.fileno(), content, each.offset)
                kept += sum(each.size for each in pending)
                flushes += 1
                pending.clear()
            lost = sum(each.size for each in pending)
        self._log.unlink()
        self._overlay.unlink()
        return Settled(kept, lost, flushes)


def _entries(log: int) -> list[_Write | None]:
    """Writes in their order; None: what was written before is on the disk."""
    end = os.fstat(log).st_size
    magic, version, _, sector = _SUPER.unpack(os.pread(log, _SUPER.size, 0).ljust(_SUPER.size, b"\0"))
    if not magic:
        return []  # it wrote nothing
    if (magic, version) != (_MAGIC, 1):
        raise ValueError(f"no log of writes: {magic:x}, version {version}")
    found: list[_Write | None] = []
    at = sector
    while at + sector <= end:
        first, count, flags, _ = _ENTRY.unpack(os.pread(log, _ENTRY.size, at))
        at += sector
        size = count * sector
        if not (count or flags) or (not flags & _DISCARD and at + size > end):
            break  # the emulator ended in the middle of this one
        if flags & _FLUSH:
            found.append(None)
        if flags & _DISCARD:
            found.append(_Write(first * sector, size, None))
        elif size:
            found.append(_Write(first * sector, size, at))
            at += size
        if flags & _FUA:
            found.append(None)
    return found


def image_of(root: Path, file: Path) -> None:
    """``root`` as a raw ext4 image with its journal and ROOM to spare."""
    used = int(run("du", "-s", "--block-size=1", root).split()[0])
    with file.open("wb") as made:
        made.truncate((used * 9 // 8 + ROOM) // 4096 * 4096)
    # Its tables are made whole now: on the first mount that would be the machine's work.
    options = ["-q", "-F", "-m", "0", *SIZES, "-E", "lazy_itable_init=0,lazy_journal_init=1"]
    subprocess.run(["mkfs.ext4", *options, "-d", root, file], check=True)
