"""What is to be done when: calls with due times, run by whoever owns the clock."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count


class Agenda:
    """Times are seconds on one clock of the caller's. Calls due at the same time run in the order they were put down."""

    def __init__(self) -> None:
        self._calls: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()

    def at(self, due_s: float, call: Callable[[], None]) -> None:
        """Run ``call`` once ``due_s`` has come."""
        heapq.heappush(self._calls, (due_s, next(self._order), call))

    def next_due_s(self) -> float | None:
        """When the next call is due; None when there is none."""
        return self._calls[0][0] if self._calls else None

    def run(self, now_s: float) -> None:
        """Run all calls that are due by ``now_s``, also those that they put down."""
        while self._calls and self._calls[0][0] <= now_s:
            heapq.heappop(self._calls)[2]()
