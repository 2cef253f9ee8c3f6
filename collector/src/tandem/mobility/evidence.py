"""What one modem's polls say about movement."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

from tandem.mobility.cells import NewCells
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
