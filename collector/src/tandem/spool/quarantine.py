"""What cannot be used is put aside for people, within bounds: rejected records as JSON lines with the reason, damaged files.

A record may stand in ``rejected.jsonl`` twice after a crash; its ``seq`` tells. What has to leave for want of room is counted.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterable
from pathlib import Path

from tandem.spool.blob import Item
from tandem.spool.durable import sync_folder

REJECTED = "rejected.jsonl"
REJECTED_BEFORE = "rejected.1.jsonl"
REJECTED_BYTES = 4 << 20
"""Over this ``rejected.jsonl`` becomes ``rejected.1.jsonl``, whose lines of before are forgotten: 10,000 to 20,000 records are kept."""

DAMAGED_BYTES = 64 << 20
"""All damaged files together; the oldest go first. What could be read of them is in the spool."""


class Quarantine:
    """In ``folder``, made when something is put in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def reject(self, rejected: Iterable[tuple[Item, str]]) -> int:
        """Append to ``rejected.jsonl``, durable on return; how many earlier ones were forgotten. OSError when the disk takes nothing."""
        text = "".join(_line(item, reason) for item, reason in rejected)
        if not text:
            return 0
        self._made()
        file = self.folder / REJECTED
        forgotten = self._turn_over(file) if file.exists() and file.stat().st_size > REJECTED_BYTES else 0
        fd = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o640)
        try:
            size = os.fstat(fd).st_size
            if size and os.pread(fd, 1, size - 1) != b"\n":
                text = "\n" + text  # the last line was cut off by a power cut: this one must not grow out of it
            rest = memoryview(text.encode())
            while rest:
                rest = rest[os.write(fd, rest) :]
            os.fsync(fd)
        finally:
            os.close(fd)
        if not size:
            sync_folder(self.folder)
        return forgotten

    def _turn_over(self, file: Path) -> int:
        before = self.folder / REJECTED_BEFORE
        forgotten = 0
        with contextlib.suppress(FileNotFoundError), before.open("rb") as lines:
            forgotten = sum(1 for _ in lines)
        file.replace(before)
        sync_folder(self.folder)
        return forgotten

    def put(self, files: Iterable[Path]) -> int:
        """Move damaged files here; how many were deleted for it."""
        self._made()
        for source in files:
            with contextlib.suppress(FileNotFoundError):
                source.replace(self.folder / f"{source.name}.damaged-{time.time_ns()}")
        sync_folder(self.folder)
        kept = sorted((p for p in self.folder.glob("*.damaged-*")), key=lambda p: int(p.name.rpartition("-")[2]))
        size, deleted = sum(p.stat().st_size for p in kept), 0
        while size > DAMAGED_BYTES:
            oldest = kept.pop(0)
            size -= oldest.stat().st_size
            oldest.unlink()
            deleted += 1
        return deleted

    def _made(self) -> None:
        if not self.folder.is_dir():
            self.folder.mkdir()
            sync_folder(self.folder.parent)


def _line(item: Item, reason: str) -> str:
    told = {
        "seq": item.seq,
        "reason": reason,
        "measurement": item.record.measurement,
        "tags": dict(item.record.tags),
        "fields": dict(item.record.fields),
        "boot": item.boot,
        "monotonic_ns": item.record.monotonic_ns,
        "utc_ns": item.record.utc_ns,
        "rejected_utc_ns": time.time_ns(),
    }
    return json.dumps(told) + "\n"
