"""The presentations in the content folder, read file by file: real files, and those that exist only as a size.

A synthetic presentation of ten minutes up to 15 Mbit/s, in three segment lengths, would be tens of gigabytes of random bytes. Its folder
holds ``virtual.json`` instead: ``{"files": {PATH: {"bytes": N[, "head": BASE64]}}}``. What is read behind the head is one block of random
bytes again and again, so that nothing on the way can compress it.
"""

from __future__ import annotations

import base64
import json
import os
import random
import re
import stat
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from tandem_server.durable import write_whole

VIRTUAL = "virtual.json"
_PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")
_DEEPEST = 6
_BLOCK_BYTES = 1 << 20
_KINDS = {".mpd": "application/dash+xml", ".m4s": "video/iso.segment", ".mp4": "video/mp4"}


class ContentError(ValueError):
    """A presentation whose ``virtual.json`` cannot be read; one line."""


def media_type(name: str) -> str:
    """For Content-Type."""
    return _KINDS.get(Path(name).suffix, "application/octet-stream")


def _block() -> memoryview:
    block = random.Random(1).randbytes(_BLOCK_BYTES)
    return memoryview(block + block)


class Item:
    """One file that is open. ``size`` in bytes; close it."""

    def __init__(self, size: int, head: bytes, filler: memoryview, file: BinaryIO | None) -> None:
        self.size, self._head, self._filler, self._file = size, head, filler, file

    def read(self, offset: int, count: int) -> bytes | memoryview:
        """Up to ``count`` bytes from ``offset``, at least one unless there is none."""
        count = max(0, min(count, self.size - offset))
        if self._file is not None:
            return os.pread(self._file.fileno(), count, offset)
        if offset < len(self._head):
            return self._head[offset : offset + count]
        start = offset % _BLOCK_BYTES
        return self._filler[start : start + min(count, _BLOCK_BYTES)]

    def close(self) -> None:
        """Close it."""
        if self._file is not None:
            self._file.close()


@dataclass(frozen=True, slots=True)
class _Virtual:
    stamp: tuple[int, int]
    files: dict[str, tuple[int, bytes]]


class Library:
    """The content in ``folder``, which need not exist. From any thread."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._filler = _block()
        self._lock = threading.Lock()
        self._virtual: dict[str, _Virtual] = {}

    def open(self, path: str) -> Item | None:
        """``NAME/FILE``; None when there is no such file, also for names that no file here has (``..``, hidden ones) and for links, which
        could lead out of the folder. ContentError, OSError."""
        parts = path.split("/")
        if not 2 <= len(parts) <= _DEEPEST or not all(map(_PART.match, parts)) or parts[1:] == [VIRTUAL]:
            return None
        real = self._real(parts)
        if real is not None:
            return real
        found = self._files(parts[0]).get("/".join(parts[1:]))
        return None if found is None else Item(*found, self._filler, None)

    def _real(self, parts: list[str]) -> Item | None:
        at = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY) if self._folder.is_dir() else -1
        if at < 0:
            return None
        try:
            for part in parts[:-1]:
                below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=at)
                os.close(at)
                at = below
            number = os.open(parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=at)
        except OSError:
            return None  # no such file, or a link: the same to who asks
        finally:
            os.close(at)
        file = os.fdopen(number, "rb")
        status = os.fstat(number)
        if not stat.S_ISREG(status.st_mode):
            file.close()
            return None
        return Item(status.st_size, b"", self._filler, file)

    def _files(self, name: str) -> dict[str, tuple[int, bytes]]:
        index = self._folder / name / VIRTUAL
        try:
            status = index.stat()
        except OSError:
            return {}
        stamp = (status.st_mtime_ns, status.st_size)
        with self._lock:
            known = self._virtual.get(name)
            if known is None or known.stamp != stamp:
                known = self._virtual[name] = _Virtual(stamp, _read(index))
            return known.files


def _read(index: Path) -> dict[str, tuple[int, bytes]]:
    try:
        files = json.loads(index.read_text(encoding="utf-8"))["files"]
        return {
            path: (int(row["bytes"]), base64.b64decode(row.get("head", ""), validate=True))
            for path, row in files.items()
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ContentError(f"{index}: {error!r}; hint: build it anew (tandem-server dash build)") from error


def write_index(folder: Path, files: dict[str, tuple[int, bytes]]) -> None:
    """Write ``virtual.json`` into ``folder``: path → size and head."""
    rows = {
        path: {"bytes": size, **({"head": base64.b64encode(head).decode()} if head else {})}
        for path, (size, head) in files.items()
    }
    write_whole(folder / VIRTUAL, json.dumps({"files": rows}, separators=(",", ":")).encode())
