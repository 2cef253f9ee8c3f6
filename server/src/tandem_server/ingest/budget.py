"""How many bytes of requests the gateway holds at once. What would be more is told to come later: back-pressure instead of memory."""

from __future__ import annotations

import threading
from types import TracebackType


class Busy(Exception):  # noqa: N818  (an answer, no accident)
    """The budget is used up now: 503, and the probe keeps its records."""


class Budget:
    """``bytes_limit`` for all requests together. For several threads."""

    def __init__(self, bytes_limit: int) -> None:
        self.bytes_limit, self.held = bytes_limit, 0
        self.lock = threading.Lock()

    def share(self) -> Share:
        """One request's part; give it back with ``with``."""
        return Share(self)


class Share:
    """Takes as bytes come, so that a length that is only claimed holds nothing."""

    def __init__(self, budget: Budget) -> None:
        self._budget, self._mine = budget, 0

    def take(self, count: int) -> None:
        """Hold ``count`` bytes more; Busy when they would be too many."""
        self.hold(self._mine + count)

    def hold(self, count: int) -> None:
        """Hold ``count`` bytes in all; Busy when they would be too many."""
        with self._budget.lock:
            held = self._budget.held + count - self._mine
            if count > self._mine and held > self._budget.bytes_limit:
                raise Busy("too many bytes at once")
            self._budget.held, self._mine = held, count

    def __enter__(self) -> Share:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.hold(0)
