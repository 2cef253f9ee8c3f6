"""What cannot be used is put aside for people, within bounds: rejected records as JSON lines with the reason, damaged files.

A record may stand in ``rejected.jsonl`` twice after a crash; its ``seq`` tells.
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
"""Over this ``rejected.jsonl`` becomes ``rejected.1.jsonl``, which replaces that of before: 10,000 to 20,000 records are kept."""


class Quarantine:
    """In ``folder``, made when something is put in. ``damaged_bytes``: of all damaged files together; the oldest go first."""

    def __init__(self, folder: Path, damaged_bytes: int) -> None:
        self.folder, self._damaged_bytes = folder, damaged_bytes

    def reject(self, rejected: Iterable[tuple[Item, str]]) -> None:
        """Append to ``rejected.jsonl``, durable on return. OSError when the disk takes nothing."""
        text = "".join(_line(item, reason) for item, reason in rejected)
        if not text:
            return
        self._make()
        file = self.folder / REJECTED
        if file.exists() and file.stat().st_size > REJECTED_BYTES:
            file.replace(self.folder / REJECTED_BEFORE)
            sync_folder(self.folder)
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

    def put(self, files: Iterable[Path]) -> None:
        """Move damaged files here, those that are there. OSError."""
        self._make()
        for source in files:
            with contextlib.suppress(FileNotFoundError):
                source.replace(self.folder / f"{source.name}.damaged-{time.time_ns()}")
        sync_folder(self.folder)
        sync_folder(self.folder.parent)
        kept = sorted((p for p in self.folder.glob("*.damaged-*")), key=lambda p: int(p.name.rpartition("-")[2]))
        size = sum(p.stat().st_size for p in kept)
        while size > self._damaged_bytes:
            oldest = kept.pop(0)
            size -= oldest.stat().st_size
            oldest.unlink()

    def _make(self) -> None:
        if not self.folder.is_dir():
            self.folder.mkdir()
            sync_folder(self.folder.parent)


def _line(item: Item, reason: str) -> str:
    row = {
        "seq": item.seq,
        "reason": reason,
        "measurement": item.record.measurement,
        "tags": dict(item.record.tags),
        "fields": dict(item.record.fields),
        "boot": item.boot,
        "monotonic_ns": item.record.monotonic_ns,
        "rejected_utc_ns": time.time_ns(),
    }
    return json.dumps(row) + "\n"
