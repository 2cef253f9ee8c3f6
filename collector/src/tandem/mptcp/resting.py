"""Paths that carry no further subflows for a while: told by any thread, made by the one that checks the paths."""

from __future__ import annotations

import threading
from collections.abc import Collection


class Resting:
    """``told``: which paths rest; ``made``: which rested as of the last check."""

    def __init__(self) -> None:
        self.told: frozenset[str] = frozenset()
        self.made: frozenset[str] = frozenset()
        self._changed = threading.Condition()

    def tell(self, names: Collection[str]) -> None:
        """From the next check on these paths rest, and all others do not."""
        with self._changed:
            self.told = frozenset(names)

    @property
    def due(self) -> bool:
        """Whether a check has to be made for it."""
        return self.told != self.made

    def done(self, names: frozenset[str]) -> None:
        """A check has made it so."""
        with self._changed:
            self.made = names
            self._changed.notify_all()

    def wait(self, timeout_s: float) -> bool:
        """Until a check has made what was told; whether one did in time."""
        with self._changed:
            return self._changed.wait_for(lambda: not self.due, timeout_s)
