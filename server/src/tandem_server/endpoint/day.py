"""What a probe may still carry of its day."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field


@dataclass(slots=True)
class Day:
    """What a probe has left of its 24 hours, for the sessions that it has open at once together."""

    left_bytes: int
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, wanted_bytes: int) -> int:
        """As much as there is of it."""
        with self._lock:
            taken = max(0, min(wanted_bytes, self.left_bytes))
            self.left_bytes -= taken
            return taken

    def give_back(self, unused_bytes: int) -> None:
        """Return what was not carried; below zero: bytes that came without being taken."""
        with self._lock:
            self.left_bytes += unused_bytes
