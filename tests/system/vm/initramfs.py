"""An initramfs without cpio, mknod or root: the kernel's "newc" format (Documentation/driver-api/early-userspace/buffer-format)."""

from __future__ import annotations

import lzma
import subprocess
from pathlib import Path

MODULES_FIRST = (
    "virtio_pci",
    "virtio_blk",
    "crc32c_generic",
    "ext4",
    "9pnet_virtio",
    "9p",
    "virtio_rng",
    "overlay",
    "tcp_diag",
)
"""What must be there before modprobe is: disk, root file system, shared folders; a kernel
whose modules are not in the root has no others."""


class Archive:
    """Files, and the folders above them, in the order in which they were put in."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._folders: set[str] = set()
        self._number = 0

    def file(self, name: str, content: bytes, mode: int) -> None:
        """Put ``content`` at ``name`` (relative, no leading slash)."""
        for folder in list(Path(name).parents)[-2::-1]:
            if str(folder) not in self._folders:
                self._folders.add(str(folder))
                self._entry(str(folder), b"", 0o040755)
        self._entry(name, content, 0o100000 | mode)

    def bytes(self) -> bytes:
        self._entry("TRAILER!!!", b"", 0)
        return b"".join(self._parts)

    def _entry(self, name: str, content: bytes, mode: int) -> None:
        self._number += 1
        path = name.encode() + b"\0"
        # ino, mode, uid, gid, nlink, mtime, filesize, device and rdevice numbers, namesize, check
        numbers = (self._number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(path), 0)
        head = b"070701" + b"".join(b"%08X" % number for number in numbers) + path
        self._parts += [head, b"\0" * (-len(head) % 4), content, b"\0" * (-len(content) % 4)]


def plain_module(file: Path) -> bytes:
    """A kernel module as insmod takes it: Debian 13 and Ubuntu compress theirs."""
    if file.suffix == ".xz":
        return lzma.decompress(file.read_bytes())
    if file.suffix == ".zst":
        return subprocess.run(["zstd", "-dc", file], capture_output=True, check=True).stdout
    return file.read_bytes()
