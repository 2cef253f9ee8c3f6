"""Work for a poller's own thread: what others want done with a modem waits there until the thread is between two polls."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from typing import Any, TypeVar

T = TypeVar("T")


class Errands:
    """``wake_fd`` ends the owner's waits: readable while an errand waits or ``wake`` was called; -1 once closed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.wake_fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._waiting: deque[tuple[Callable[[], Any], Future[Any]]] = deque()

    def wake(self) -> None:
        """End the owner's wait; nothing when it has ended. From any thread."""
        with self._lock:  # not a descriptor that is closed, or another's by now
            if self.wake_fd >= 0:
                os.eventfd_write(self.wake_fd, 1)

    def ask(self, work: Callable[[], T], timeout: float) -> T:
        """From any other thread: have ``work`` done and get what it returns or raises; TimeoutError after ``timeout`` seconds,
        then it is not done any more unless it has begun."""
        done: Future[T] = Future()
        self._waiting.append((work, done))
        if self.wake_fd < 0:
            raise TimeoutError("its owner has ended")
        self.wake()
        try:
            return done.result(timeout)
        except CancelledError as error:
            raise TimeoutError("its owner has ended") from error
        except TimeoutError:
            done.cancel()
            raise

    def run(self) -> bool:
        """By the owner: do all that waits; whether it had been woken, by this or by ``wake``."""
        try:
            os.eventfd_read(self.wake_fd)
        except BlockingIOError:
            return False
        while self._waiting:
            work, done = self._waiting.popleft()
            if not done.set_running_or_notify_cancel():
                continue
            try:
                done.set_result(work())
            except Exception as error:  # noqa: BLE001 - it is raised in the thread that asked
                done.set_exception(error)
        return True

    def close(self) -> None:
        """Give the descriptor back. Whoever still waits is told that nothing was done."""
        with self._lock:
            fd, self.wake_fd = self.wake_fd, -1
            os.close(fd)
        while self._waiting:
            self._waiting.popleft()[1].cancel()
