"""The disk space that all captures share."""

from __future__ import annotations

import threading


class Budget:
    """``limit_bytes`` for all captures together, of which ``used_bytes`` lie on disk already. For any number of threads."""

    def __init__(self, limit_bytes: int, used_bytes: int = 0) -> None:
        self.limit_bytes = limit_bytes
        self._used = used_bytes
        self._lock = threading.Lock()

    @property
    def used_bytes(self) -> int:
        """What is taken; may exceed the limit when there was more on disk from the start."""
        return self._used

    @property
    def left_bytes(self) -> int:
        """What can still be taken."""
        return max(0, self.limit_bytes - self._used)

    def take(self, count: int) -> bool:
        """Take ``count`` bytes, or nothing and False when they are not left."""
        with self._lock:
            if self._used + count > self.limit_bytes:
                return False
            self._used += count
            return True

    def give_back(self, count: int) -> None:
        """Return bytes of a capture that is no longer on this disk."""
        with self._lock:
            self._used = max(0, self._used - count)
