"""When each probe was heard of: noted at every request, written down every ten seconds for all of them together."""

from __future__ import annotations

import sqlite3
import threading
import time

from tandem_server.ingest.periodic import Periodic
from tandem_server.registry import Registry

PERIOD_S = 10.0


class Sightings(Periodic):
    """``note`` from any thread, never blocks for the disk. What is noted at its end is written too."""

    at_once, at_end = False, True

    def __init__(self, registry: Registry, period_s: float = PERIOD_S) -> None:
        super().__init__("sightings", period_s)
        self._registry = registry
        self._noted: dict[str, int] = {}
        self._lock = threading.Lock()

    def note(self, probe: str) -> None:
        """A request with this probe's token came."""
        with self._lock:
            self._noted[probe] = time.time_ns()

    def turn(self) -> None:
        """Write what was noted; sqlite3.Error: it stays noted."""
        with self._lock:
            noted, self._noted = self._noted, {}
        if not noted:
            return
        try:
            self._registry.seen.note(noted)
        except sqlite3.Error:
            with self._lock:
                self._noted = {**noted, **self._noted}
            raise
