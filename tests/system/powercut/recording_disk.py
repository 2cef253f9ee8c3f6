"""A disk with a volatile write cache that remembers every write and every flush, in their order.

A FUSE file system of one file, in a process of its own; a loop device on that file is the disk, and the kernel's ext4 lies on it. What
the file system writes comes here as FUSE writes (unbuffered: ``FOPEN_DIRECT_IO``), what it flushes as an fsync: the loop device
tells the kernel that it has a write cache and no FUA, so a barrier is a flush before and after. Protocol: ``linux/fuse.h``, 7.31.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import stat
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SECTOR = 512
_GROUP_BLOCKS = 2048
"""Blocks of a group of the file system: 8 MB, so that a small disk has copies of its superblock, as every large one has."""
_MAX_WRITE = 1 << 20
_LOOKUP, _FORGET, _GETATTR, _SETATTR, _OPEN, _READ, _WRITE, _STATFS = 1, 2, 3, 4, 14, 15, 16, 17
_RELEASE, _FSYNC, _FLUSH, _INIT, _INTERRUPT, _DESTROY, _BATCH_FORGET = 18, 20, 25, 26, 36, 38, 42
_FOPEN_DIRECT_IO = 1
_BIG_WRITES, _MAX_PAGES = 1 << 5, 1 << 22
_ENOSYS = 38
_MNT_DETACH = 2
_HEADER = struct.Struct("<IIQQIIIHH")
_LOG = struct.Struct("<qI")
"""Offset (−1: a flush) and length of one entry of the log; the bytes follow."""


class MountError(OSError):
    """The kernel does not mount it."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One write (``content`` at ``offset`` bytes), or a flush (``content`` None)."""

    offset: int
    content: bytes | None


class Position:
    """How many entries the log has: a number in memory that both processes see, one behind the other by nothing."""

    def __init__(self) -> None:
        self._shared = mmap.mmap(-1, mmap.PAGESIZE)

    def __call__(self) -> int:
        return int(struct.unpack_from("<Q", self._shared)[0])

    def advance(self) -> None:
        """By one; called by the disk, after the entry is in the log and before the kernel has its answer."""
        struct.pack_into("<Q", self._shared, 0, self() + 1)


def read_log(path: Path) -> list[Entry]:
    entries, raw, at = [], path.read_bytes(), 0
    while at < len(raw):
        offset, length = _LOG.unpack_from(raw, at)
        at += _LOG.size
        entries.append(Entry(offset, None if offset < 0 else raw[at : at + length]))
        at += length
    return entries


class _Server:
    """Answers the kernel until the file is unmounted."""

    def __init__(self, fuse: int, image: bytearray, log: int, position: Position) -> None:
        self._fuse, self._image, self._log, self._position = fuse, image, log, position

    def run(self) -> None:
        while True:
            try:
                request = os.read(self._fuse, _MAX_WRITE + 4096)
            except OSError:
                return  # unmounted
            if not request:
                return
            _, opcode, unique, *_ = _HEADER.unpack_from(request)
            if opcode in (_FORGET, _BATCH_FORGET, _INTERRUPT):
                continue
            answer = self._answer(opcode, memoryview(request)[_HEADER.size :])
            code, body = (0, answer) if isinstance(answer, bytes) else (-_ENOSYS, b"")
            with contextlib.suppress(OSError):
                os.write(self._fuse, struct.pack("<IiQ", 16 + len(body), code, unique) + body)
            if opcode == _DESTROY:
                return

    def _answer(self, opcode: int, body: memoryview) -> bytes | None:
        if opcode == _INIT:
            major, _, readahead, flags = struct.unpack_from("<IIII", body)
            wanted = flags & (_BIG_WRITES | _MAX_PAGES)
            return struct.pack("<IIIIHHIIHH8I", major, 31, readahead, wanted, 16, 12, _MAX_WRITE, 1, 256, 0, *[0] * 8)
        if opcode in (_GETATTR, _SETATTR):
            blocks = len(self._image) // SECTOR
            attributes = (1, len(self._image), blocks, 0, 0, 0, 0, 0, 0, stat.S_IFREG | 0o600, 1, 0, 0, 0, 4096, 0)
            return struct.pack("<QII6Q10I", 3600, 0, 0, *attributes)
        if opcode == _OPEN:
            return struct.pack("<QII", 1, _FOPEN_DIRECT_IO, 0)
        if opcode == _READ:
            _, offset, size = struct.unpack_from("<QQI", body)
            return bytes(self._image[offset : offset + size])
        if opcode == _WRITE:
            _, offset, size = struct.unpack_from("<QQI", body)
            content = body[40 : 40 + size]
            self._image[offset : offset + size] = content
            self._note(offset, content)
            return struct.pack("<II", size, 0)
        if opcode == _FSYNC:
            self._note(-1, memoryview(b""))
            return b""
        if opcode == _STATFS:
            return struct.pack("<5Q4I6I", 1, 1, 1, 1, 1, 4096, 255, 4096, 0, *[0] * 6)
        return b"" if opcode in (_FLUSH, _RELEASE, _DESTROY) else None

    def _note(self, offset: int, content: memoryview) -> None:
        os.writev(self._log, [_LOG.pack(offset, len(content)), content])
        self._position.advance()


@contextlib.contextmanager
def mounted(image: bytes, folder: Path, log: Path) -> Iterator[tuple[Path, Position]]:
    """``image`` (an ext4) as a disk, mounted: its folder and the log's position. Afterwards ``log`` is whole.

    Root, in a mount namespace of its own: whatever becomes of this process, the mounts and the loop device go with it.
    """
    file, place = folder / "disk", folder / "place"
    file.touch()
    place.mkdir(exist_ok=True)
    position = Position()
    fuse = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    _mount("tandem-disk", file, "fuse", f"fd={fuse},rootmode=100600,user_id=0,group_id=0,max_read={_MAX_WRITE}")
    server = os.fork()
    if server == 0:
        log_fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            _Server(fuse, bytearray(image), log_fd, position).run()
        finally:
            os._exit(0)
    os.close(fuse)
    try:
        _mount_loop(file, place)
        try:
            yield place, position
        finally:
            unmount(place)
    finally:
        unmount(file, _MNT_DETACH)  # the loop device lets go of it a little later; the server ends when it has
        os.waitpid(server, 0)


@contextlib.contextmanager
def mounted_plainly(image: Path, place: Path) -> Iterator[Path]:
    """The ext4 in the file ``image``, mounted at ``place``: the kernel replays its journal. MountError when it is none any more."""
    place.mkdir(exist_ok=True)
    _mount_loop(image, place)
    try:
        yield place
    finally:
        unmount(place)


def mend(image: Path) -> bool:
    """What a system does at boot before it mounts: e2fsck, from the copy of the superblock where the first one is torn (on a disk of the
    usual size e2fsck finds that by itself). Whether it can be mounted afterwards."""
    for copy in ([], ["-b", str(_GROUP_BLOCKS), "-B", "4096"]):
        done = subprocess.run(["e2fsck", "-y", "-f", *copy, str(image)], capture_output=True, check=False)
        if done.returncode in (0, 1):
            return True
    return False


def _mount_loop(file: Path, place: Path) -> None:
    """On a loop device of its own: mount(8)'s ``-o loop`` takes one that is being given up, with the old content in its cache."""
    device = subprocess.run(
        ["losetup", "--find", "--show", str(file)], check=True, capture_output=True, text=True
    ).stdout.strip()
    try:
        _mount(device, place, "ext4", "")
    finally:
        # With the file system mounted it goes when that is unmounted, also when we are killed.
        subprocess.run(["losetup", "--detach", device], check=True)


def make_ext4(path: Path, megabytes: int = 24) -> bytes:
    """An empty ext4 with a journal, as the distribution's mkfs makes it."""
    with path.open("wb") as file:
        file.truncate(megabytes << 20)
    options = "lazy_itable_init=0,lazy_journal_init=0,nodiscard"
    subprocess.run(
        ["mkfs.ext4", "-q", "-b", "4096", "-g", str(_GROUP_BLOCKS), "-E", options, "-J", "size=4", str(path)],
        check=True,
    )
    return path.read_bytes()


_libc = ctypes.CDLL(None, use_errno=True)


def _mount(source: str, target: Path, kind: str, options: str) -> None:
    if _libc.mount(source.encode(), str(target).encode(), kind.encode(), 0, options.encode()) != 0:
        error = ctypes.get_errno()
        raise MountError(error, f"mount {kind}: {os.strerror(error)}")


def unmount(target: Path, flags: int = 0) -> None:
    """OSError when something still uses it."""
    if _libc.umount2(str(target).encode(), flags) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"umount {target}: {os.strerror(error)}")
