"""A capture on disk: whole packets only, under a budget, ``.tmp`` until it is synced and whole."""

from __future__ import annotations

import hashlib
import os
from itertools import accumulate
from pathlib import Path

from tandem.capture.budget import Budget
from tandem.capture.pcap import HEADER_BYTES, PcapError, Walker


class CaptureFile:
    """Writes a pcap stream to ``path``. ``reason``: why it was cut, None while everything was written."""

    def __init__(self, path: Path, budget: Budget) -> None:
        self.path = path
        self._budget = budget
        self._temporary = path.with_name(path.name + ".tmp")
        path.parent.mkdir(parents=True, exist_ok=True)
        self._fd = os.open(self._temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o640)
        self._walker = Walker()
        self._sha256 = hashlib.sha256()
        self.bytes = 0
        self.packets = 0
        self.reason: str | None = None

    def write(self, piece: bytes) -> bool:
        """Take a piece of the stream; False once the capture is cut, after which nothing is taken any more."""
        if self.reason is not None:
            return False
        try:
            whole, sizes = self._walker.feed(piece)
        except PcapError as error:
            self.reason = f"damaged stream: {error}"
            return False
        if self._walker.damage is not None:
            self.reason = f"damaged stream: {self._walker.damage}"
        if not self._budget.take(len(whole)):
            whole, sizes = self._as_much_as_fits(whole, sizes)
            self.reason = f"capture budget of {self._budget.limit_bytes} bytes used up"
        if whole:
            self._put(whole, sizes)
        return self.reason is None

    def _as_much_as_fits(self, whole: bytes, sizes: list[int]) -> tuple[bytes, list[int]]:
        """The longest row of whole units that the budget still has room for, taken from it."""
        ends = list(accumulate(sizes))
        while ends and not self._budget.take(ends[-1]):
            left = self._budget.left_bytes
            while ends and ends[-1] > left:
                ends.pop()
        return (whole[: ends[-1]], sizes[: len(ends)]) if ends else (b"", [])

    def _put(self, whole: bytes, sizes: list[int]) -> None:
        done = 0
        try:
            while done < len(whole):
                done += os.write(self._fd, memoryview(whole)[done:])
        except OSError as error:
            # Disk full (or quota, or I/O error): back to the last whole unit.
            self.reason = f"disk: {os.strerror(error.errno or 0).lower()}"
            ends = [end for end in accumulate(sizes) if end <= done]
            kept = ends[-1] if ends else 0
            self._budget.give_back(len(whole) - kept)
            os.ftruncate(self._fd, self.bytes + kept)
            os.lseek(self._fd, self.bytes + kept, os.SEEK_SET)
            whole, sizes = whole[:kept], sizes[: len(ends)]
        header = self.bytes == 0 and sizes[:1] == [HEADER_BYTES]
        self._sha256.update(whole)
        self.bytes += len(whole)
        self.packets += len(sizes) - header

    def close(self) -> str:
        """Sync, rename to the final name, sync the folder; the sha256 in hex."""
        try:
            try:
                os.fsync(self._fd)
            finally:
                os.close(self._fd)
        except OSError as error:
            self.reason = self.reason or f"disk: {os.strerror(error.errno or 0).lower()}"
        self._temporary.replace(self.path)
        folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        return self._sha256.hexdigest()

    def discard(self) -> None:
        """Nothing came: leave no file behind."""
        os.close(self._fd)
        self._temporary.unlink(missing_ok=True)
        self._budget.give_back(self.bytes)
