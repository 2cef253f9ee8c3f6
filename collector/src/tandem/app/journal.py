"""The spool's one writer: gathers records in memory for at most a second, and longer only while the disk takes nothing."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from tandem.schema.record import Record
from tandem.spool import Spool, SpoolFullError
from tandem.spool.blob import KEPT_LONGEST

log = logging.getLogger(__name__)

MEMORY_RECORDS = 20_000
"""Records that may wait in memory: about five minutes of runs, hours of polls; 20 MB."""


class Journal:
    """Used by one thread. ``dropped``: records given up since the start because memory was full too."""

    def __init__(self, spool: Spool, limit: int = MEMORY_RECORDS) -> None:
        self._spool, self._limit = spool, limit
        self._waiting: list[Record] = []
        self._given_up = 0
        self._full = False
        self.dropped = 0

    @property
    def full(self) -> bool:
        """Whether the disk took nothing the last time."""
        return self._full

    @property
    def waiting(self) -> int:
        """Records in memory."""
        return len(self._waiting)

    def add(self, records: Sequence[Record]) -> None:
        """Take records; they are durable after the next ``commit``. Without UTC: they get it when they are sent (``app/clock``)."""
        self._waiting.extend(r if r.utc_ns is None else replace(r, utc_ns=None) for r in records)
        excess = len(self._waiting) - self._limit
        if excess > 0:
            # Oldest first, what everything else is read by last; as the spool does.
            series = [n for n, record in enumerate(self._waiting) if record.measurement not in KEPT_LONGEST][:excess]
            gone = set(series if len(series) == excess else range(excess))
            self._waiting = [record for n, record in enumerate(self._waiting) if n not in gone]
            self._given_up += excess
            self.dropped += excess

    def commit(self) -> bool:
        """Put what waits into the spool; False (and one line in the log) when the disk takes nothing."""
        try:
            self._spool.append(self._waiting, dropped=self._given_up)
        except SpoolFullError as error:
            if not self._full:
                log.error("%s", error)
            self._full = True
            return False
        if self._full:
            log.warning("the disk takes records again; %d were given up meanwhile", self._given_up)
        self._waiting, self._given_up, self._full = [], 0, False
        return True
