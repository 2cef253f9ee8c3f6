"""Ctrl-C and SIGTERM at any moment: the first ends the rehearsal in order, one that comes later ends it at once."""

from __future__ import annotations

import os
import signal
import time
from types import FrameType

DOUBLE_S = 0.7
"""A terminal sends Ctrl-C to the whole process group and the parent passes it on: two signals this close are one."""


class Stopped(Exception):  # noqa: N818  # no error: the user's wish
    """The user asked to stop; the text says how."""


class StopSignals:
    """Raises ``Stopped`` in the main thread at the first signal; exits at one that comes ``DOUBLE_S`` or more later.

    The rehearsal is the first process of its namespace, so the exit takes every program with it.
    """

    def __init__(self) -> None:
        self.first_monotonic_s: float | None = None

    def install(self) -> None:
        """Take over SIGINT, SIGTERM and SIGHUP."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._received)

    def _received(self, number: int, _frame: FrameType | None) -> None:
        now = time.monotonic()
        if self.first_monotonic_s is None:
            self.first_monotonic_s = now
            raise Stopped(
                {signal.SIGINT: "Ctrl-C", signal.SIGHUP: "terminal closed"}.get(signal.Signals(number), "SIGTERM")
            )
        if now - self.first_monotonic_s >= DOUBLE_S:
            os.write(2, b"tandem-bench: stopped at once\n")
            os._exit(130)
