"""Plays a state on the lamp: a thread that waits for the next edge of the pattern, and does nothing in between."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Protocol

from tandem.schema.status_led import NOT_RUNNING, LedState

LOOKS_EVERY_S = 4.0
"""A steady state has no edges; it is looked at and written again so often, for an LED that came late or was set by others."""


class Shows(Protocol):
    """A lamp: see ``lamp.Lamp``."""

    def show(self, colour: str) -> None:
        """Light it in this colour; ``dark`` for none."""
        ...


def at(state: LedState, since_ms: int) -> tuple[bool, int]:
    """Whether the state is lit, ``since_ms`` after it began, and the milliseconds until the next edge. Pure."""
    if not state.blinks:
        return any(lit for lit, _ in state.pattern), int(LOOKS_EVERY_S * 1000)
    left = since_ms % state.period_ms
    for lit, dark in state.pattern:
        if left < lit:
            return True, lit - left
        left -= lit
        if left < dark:
            return False, dark - left
        left -= dark
    raise AssertionError(since_ms)  # left is below the sum of all


class Player:
    """``choose`` is asked at every edge, from the player's thread, so that a collector which tells nothing any more shows it.
    ``close`` leaves the lamp in ``NOT_RUNNING``: from then on nothing runs."""

    def __init__(self, lamp: Shows, choose: Callable[[], LedState]) -> None:
        self._lamp, self._choose = lamp, choose
        self._changed = threading.Event()
        self._ending = False
        self._thread = threading.Thread(target=self._run, name="status LED", daemon=True)
        self.state = choose()

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def wake(self) -> None:
        """Something changed: ask at once. From any thread."""
        self._changed.set()

    @property
    def playing(self) -> bool:
        """Whether the thread lives."""
        return self._thread.is_alive()

    def close(self) -> None:
        """End, with the light steady."""
        self._ending = True
        self._changed.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._lamp.show(NOT_RUNNING.colour)
        self.state = NOT_RUNNING

    def _run(self) -> None:
        began_ns = time.monotonic_ns()
        while not self._ending:
            chosen = self._choose()
            if chosen is not self.state:
                self.state, began_ns = chosen, time.monotonic_ns()
            lit, left_ms = at(chosen, (time.monotonic_ns() - began_ns) // 1_000_000)
            self._lamp.show(chosen.colour if lit else "dark")
            if self._changed.wait(left_ms / 1000):
                self._changed.clear()
