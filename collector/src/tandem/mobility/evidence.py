"""What one modem's polls say about movement."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Hashable, Sequence

from tandem.mobility.fused_settings import FusedSettings
from tandem.mobility.levels import Spreads, cell_of, family, level_of
from tandem.schema.record import Record


class ModemEvidence:
    """``per_s``: evidence a second from the last poll on, good until ``until_ns``; ``spread_db`` of the shortest window, None while
    unknown; ``quantities``: what was weighed, None while too few polls tell."""

    def __init__(self, settings: FusedSettings) -> None:
        self._settings = settings
        self._spreads = Spreads(settings.windows_ns)
        self._cells = NewCells(settings.cell_memory_s)
        self._new_ns: deque[int] = deque()
        self._last_ns = -1
        self.per_s = 0.0
        self.until_ns = -1
        self.spread_db: float | None = None
        self.quantities: list[float] | None = None

    def knows(self, monotonic_ns: int) -> bool:
        """Whether this poll or a later one was told."""
        return monotonic_ns <= self._last_ns

    def feed(self, record: Record) -> None:
        """Take a later, fresh poll."""
        now = self._last_ns = record.monotonic_ns
        level, cell = level_of(record), cell_of(record)
        if cell is not None and self._cells.feed(now, cell):
            self._new_ns.append(now)
        while self._new_ns and self._new_ns[0] <= now - self._settings.windows_ns[-1]:
            self._new_ns.popleft()
        if level is None:
            return
        quantity, level_db = level
        spreads = self._spreads.feed(now, (quantity, family(record.tags.get("rat")), cell), level_db)
        self.spread_db = spreads[0]
        self.quantities = self._weighed(spreads)
        self.per_s = 0.0 if self.quantities is None else self._settings.per_s(self.quantities)
        self.until_ns = now + self._settings.successive_ns

    def _weighed(self, spreads: Sequence[float | None]) -> list[float] | None:
        """Logarithms; a window with too few polls is taken as the next longer one."""
        known = spreads[-1]
        if known is None:
            return None
        out = [math.log1p(len(self._new_ns))]
        for spread in reversed(spreads):
            known = known if spread is None else spread
            out.append(math.log(known))
        return out[::-1]


class NewCells:
    """Cells that are new to one modem: what it does not see again and again where it stays. Each is remembered for ``memory_s`` seconds
    after it last served."""

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
