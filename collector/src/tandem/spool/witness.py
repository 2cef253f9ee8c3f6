"""The last number given out, noted beside the database, in the lock file: a write-ahead log that lost its end does not tell by itself.

SQLite takes such a log for one whose last commits never finished, so their numbers would be given out again. The note is written after
each commit and never synced for its own sake: after a kill it is exact, after a power cut it may be a minute old, but never ahead.
"""

from __future__ import annotations

import contextlib
import os
import zlib

_BYTES = 200


def note(fd: int, last: int, boot: str) -> None:
    """``last`` was given out in ``boot``. A disk that does not take it costs the note, not the record."""
    text = f"{last} {boot} "
    line = f"{text}{zlib.crc32(text.encode()):08x}\n"
    with contextlib.suppress(OSError):
        os.pwrite(fd, line.ljust(_BYTES).encode(), 0)


def noted(fd: int, boot: str) -> tuple[int, bool]:
    """The number noted, 0 when there is none that can be read, and whether it is exact: of this ``boot``."""
    try:
        text, _, check = os.pread(fd, _BYTES, 0).decode().rstrip().rpartition(" ")
        number, _, noted_boot = text.partition(" ")
        if int(check, 16) != zlib.crc32(f"{text} ".encode()):
            return 0, False
        return int(number), noted_boot == boot
    except (OSError, ValueError):
        return 0, False
