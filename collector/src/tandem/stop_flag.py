"""A flag that a signal handler sets and anybody waits for.

``threading.Event`` is not for handlers: ``set`` takes a lock, and a handler runs in the main thread between any two of its steps, also
while that holds the lock within ``wait``; then neither ever goes on. ``queue.SimpleQueue`` may be put to at any time.
"""

from __future__ import annotations

import contextlib
import queue


class StopFlag:
    """Set once, for good; from any thread or signal handler."""

    def __init__(self) -> None:
        self._set = False
        self._bell: queue.SimpleQueue[None] = queue.SimpleQueue()

    def is_set(self) -> bool:
        """Whether it was set."""
        return self._set

    def set(self) -> None:
        """Set it, and wake whoever waits."""
        self._set = True
        self._bell.put(None)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is set, at most ``timeout`` seconds (None: for ever; 0 or less: not at all); whether it is set."""
        if not self._set:
            with contextlib.suppress(queue.Empty):
                self._bell.get(timeout=None if timeout is None else max(0.0, timeout))
        if self._set:
            self._bell.put(None)  # for whoever else waits
        return self._set
