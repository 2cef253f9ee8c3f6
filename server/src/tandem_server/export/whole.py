"""Files that are whole or not there: written beside their place, synced, renamed."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write; in its place only when the block ends well. OSError with the file's name."""
    draft = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with draft.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        # What writes through others' code (Parquet) tells no name.
        raise error if error.filename else OSError(error.errno, error.strerror or str(error), str(path)) from error
    finally:
        draft.unlink(missing_ok=True)


def write_changed(path: Path, content: bytes) -> bool:
    """Write what is not there as it is; whether it was written. OSError."""
    with contextlib.suppress(FileNotFoundError):
        if path.stat().st_size == len(content) and path.read_bytes() == content:
            return False
    with whole_file(path) as file:
        file.write(content)
    return True
