"""Files that are whole or not there: written beside their place, synced, renamed; and the hash of one that is there."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def whole_file(path: Path, mode: int | None = None) -> Iterator[BinaryIO]:
    """A file to write; in its place only when the block ends well. ``mode``: exactly, from the first byte on; None: as the umask leaves it.
    OSError with the file's name."""
    draft = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with draft.open("wb") if mode is None else _of_mode(draft, mode) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        # What writes through others' code (Parquet) tells no name.
        raise error if error.filename else OSError(error.errno, error.strerror or str(error), str(path)) from error
    finally:
        with contextlib.suppress(IsADirectoryError):
            draft.unlink(missing_ok=True)


def _of_mode(draft: Path, mode: int) -> BinaryIO:
    draft.unlink(missing_ok=True)
    file = os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb")
    os.fchmod(file.fileno(), mode)
    return file


def write_whole(path: Path, content: bytes, mode: int | None = None) -> None:
    """The same of what is there at once."""
    with whole_file(path, mode) as file:
        file.write(content)


def write_changed(path: Path, content: bytes) -> bool:
    """Write what is not there as it is; whether it was written. OSError."""
    with contextlib.suppress(FileNotFoundError):
        if path.stat().st_size == len(content) and path.read_bytes() == content:
            return False
    write_whole(path, content)
    return True


def sync(path: Path) -> None:
    """What this file holds, or which entries this folder has, is on the disk when it returns."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sha256_of(path: Path) -> str:
    """Of a file's content, in hexadecimal digits. OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
