"""A flag that a signal handler sets and anybody waits for.

``threading.Event`` is not for handlers: ``set`` takes a lock, and a handler runs in the main thread between any two of its steps, also
while that holds the lock within ``wait``; then neither ever goes on. A descriptor can be written to at any time.
"""

from __future__ import annotations

import os
import select
import time

_LOOK_S = 0.5
"""A signal that comes just before the wait's system call does not break it off; its handler runs when the wait comes back."""


class StopFlag:
    """Set once, for good; from any thread or signal handler."""

    def __init__(self) -> None:
        self._set = False
        self._bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    def __del__(self) -> None:
        os.close(self._bell)

    def is_set(self) -> bool:
        return self._set

    def set(self) -> None:
        if not self._set:
            self._set = True
            os.eventfd_write(self._bell, 1)  # never read: it stays readable for all who wait

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is set, at most ``timeout`` seconds (None: for ever; 0 or less: not at all); whether it is set."""
        until = None if timeout is None else time.monotonic() + timeout
        poller = select.poll()
        poller.register(self._bell, select.POLLIN)
        while not self._set:
            left = _LOOK_S if until is None else min(_LOOK_S, until - time.monotonic())
            if left <= 0:
                break
            poller.poll(left * 1000)
        return self._set
