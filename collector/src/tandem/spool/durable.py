"""What survives a power cut or a kill: files that are the old one or the new one, and a note of the last number given out."""

from __future__ import annotations

import contextlib
import logging
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

log = logging.getLogger(__name__)

T = TypeVar("T")
_MARKER_BYTES = 200


def read_or_begin(file: Path, parse: Callable[[bytes], T], new: Callable[[], T]) -> T:
    """What ``parse`` makes of what was written durably before; ``new`` where there is none. What cannot be read, or is not as it was
    written, is kept for people as ``.broken``, and the log says so: measuring goes on."""
    try:
        return parse(file.read_bytes())
    except FileNotFoundError:
        return new()
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        aside = file.with_name(f"{file.name}.broken")
        log.error("%s: %s; it is kept as %s and begins anew", file, error, aside.name)
        with contextlib.suppress(OSError):
            file.replace(aside)
        return new()


def write_durably(path: Path, content: bytes, mode: int = 0o640) -> None:
    """``.tmp``, sync, rename, sync the folder: afterwards the file is the old one or the new one, whole."""
    temporary = path.with_name(path.name + ".tmp")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
    try:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(fd, rest) :]
        os.fsync(fd)
    finally:
        os.close(fd)
    temporary.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make renames and new names in ``folder`` durable."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


class LastSequenceMarker:
    """The last number given out, noted in the file ``fd`` beside the database: a write-ahead log that lost its end does not tell by
    itself, since SQLite takes it for one whose last commits never finished. Written after each commit and never synced for its own sake:
    after a kill it is exact, after a power cut it may be a minute old, but never ahead."""

    def __init__(self, fd: int, boot: str) -> None:
        self._fd, self._boot = fd, boot

    def note(self, last: int) -> None:
        """``last`` was given out in this boot. A disk that does not take it costs the note, not the record."""
        text = f"{last} {self._boot} "
        line = f"{text}{zlib.crc32(text.encode()):08x}\n"
        with contextlib.suppress(OSError):
            os.pwrite(self._fd, line.ljust(_MARKER_BYTES).encode(), 0)

    def noted(self) -> tuple[int, bool]:
        """The number, 0 when there is none that can be read, and whether it is exact: of this boot."""
        try:
            text, _, check = os.pread(self._fd, _MARKER_BYTES, 0).decode().rstrip().rpartition(" ")
            number, _, boot = text.partition(" ")
            if int(check, 16) != zlib.crc32(f"{text} ".encode()):
                return 0, False
            return int(number), boot == self._boot
        except (OSError, ValueError):
            return 0, False
