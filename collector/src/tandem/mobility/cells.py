"""Cells that are new to a modem: what a modem that stays does not see again and again."""

from __future__ import annotations

from collections.abc import Hashable


class NewCells:
    """Remembers one modem's serving cells for ``memory_s`` seconds after it last had each."""

    def __init__(self, memory_s: float) -> None:
        self._memory_ns = round(memory_s * 1e9)
        self._seen_ns: dict[Hashable, int] = {}

    def feed(self, monotonic_ns: int, cell: Hashable) -> bool:
        """Whether this cell is new here. The first one is not, nor is one after so long without any: nothing is known then of
        the cells of this place. Times must not decrease."""
        seen_ns = self._seen_ns.pop(cell, None)
        self._seen_ns[cell] = monotonic_ns
        # The latest seen come last, so the forgotten ones are at the front.
        for old, when_ns in list(self._seen_ns.items()):
            if monotonic_ns - when_ns <= self._memory_ns:
                break
            del self._seen_ns[old]
        known = seen_ns is not None and monotonic_ns - seen_ns <= self._memory_ns
        return not known and len(self._seen_ns) > 1
