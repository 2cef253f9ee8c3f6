"""What one modem's polls say about movement."""

from __future__ import annotations

import math

from tandem.mobility.cells import NewCells
from tandem.mobility.fused_settings import FusedSettings
from tandem.mobility.levels import Spread, cell_of, family, level_of
from tandem.schema.record import Record


class ModemEvidence:
    """``per_s``: evidence a second from the last poll on, good until ``until_ns``; ``spread_db`` behind it, None while unknown."""

    def __init__(self, settings: FusedSettings) -> None:
        self._settings = settings
        self._spread = Spread(settings.window_ns)
        self._cells = NewCells(settings.cell_memory_s)
        self._last_ns = -1
        self.per_s = 0.0
        self.until_ns = -1
        self.spread_db: float | None = None

    def knows(self, monotonic_ns: int) -> bool:
        """Whether this poll or a later one was told."""
        return monotonic_ns <= self._last_ns

    def feed(self, record: Record) -> float:
        """Take a later, fresh poll; the evidence in seconds that it brings at once."""
        now = self._last_ns = record.monotonic_ns
        level, cell = level_of(record), cell_of(record)
        if level is not None:
            quantity, level_db = level
            group = (quantity, family(record.tags.get("rat")), cell)
            self.spread_db = self._spread.feed(now, group, level_db)
            self.per_s = self._weight(self.spread_db)
            self.until_ns = now + self._settings.successive_ns
        new = cell is not None and self._cells.feed(now, cell)
        return self._settings.new_cell_s if new else 0.0

    def _weight(self, spread_db: float | None) -> float:
        if spread_db is None:
            return 0.0
        return min(1.0, max(-self._settings.quiet_per_s, math.log(spread_db / self._settings.neutral_db)))
