"""An image goes onto a card and is read back from the card itself, not from this machine's memory of it."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import stat
from collections.abc import Callable
from pathlib import Path

from tandem_image.errors import RefusedError

_CHUNK = 4 << 20
_BLKFLSBUF = 0x1261  # linux/fs.h: what the kernel remembers of a block device is forgotten


def write(image: Path, device: Path, progress: Callable[[str, int], None]) -> str:
    """Write ``image`` over the start of ``device`` and compare; returns the SHA-256 of what was read back.

    ``progress`` gets "write" or "compare" and the bytes done. Raises RefusedError when the disk is in use, fails, or gives
    back something else.
    """
    try:
        # Exclusive: the kernel itself refuses a disk of which anything is mounted or held.
        out = os.open(device, os.O_RDWR | os.O_EXCL | os.O_CLOEXEC)
    except OSError as error:
        mend = "unmount it first" if error.errno == errno.EBUSY else "as root (sudo), or in group disk"
        raise RefusedError(f"{device}: {error.strerror}; mend: {mend}") from None
    try:
        with image.open("rb") as source:
            written = _copy(source.fileno(), out, progress)
        os.fsync(out)
        if stat.S_ISBLK(os.fstat(out).st_mode):
            fcntl.ioctl(out, _BLKFLSBUF)
        else:
            os.posix_fadvise(out, 0, 0, os.POSIX_FADV_DONTNEED)
        with image.open("rb") as source:
            return _compare(source.fileno(), out, written, device, progress)
    except OSError as error:
        raise RefusedError(f"{device}: {error.strerror}; mend: try another card or another reader") from None
    finally:
        os.close(out)


def _copy(source: int, out: int, progress: Callable[[str, int], None]) -> int:
    done = 0
    while chunk := os.read(source, _CHUNK):
        view = memoryview(chunk)
        while view:
            count = os.pwrite(out, view, done)
            done += count
            view = view[count:]
        progress("write", done)
    return done


def _compare(source: int, out: int, length: int, device: Path, progress: Callable[[str, int], None]) -> str:
    digest = hashlib.sha256()
    done = 0
    while done < length:
        expected = os.read(source, _CHUNK)
        got = b""
        while len(got) < len(expected):
            more = os.pread(out, len(expected) - len(got), done + len(got))
            if not more:
                break
            got += more
        if not expected or got != expected:
            differs = next((n for n, (a, b) in enumerate(zip(expected, got, strict=False)) if a != b), len(got))
            raise RefusedError(
                f"{device} gives back something else at byte {done + differs}; mend: throw this card away, and write another one"
            )
        digest.update(got)
        done += len(got)
        progress("compare", done)
    return digest.hexdigest()
