"""When each probe was heard of: noted at every request, written down every ten seconds for all of them together."""

from __future__ import annotations

import logging
import sqlite3
import threading
import time

from tandem_server.registry import Registry

_LOG = logging.getLogger("tandem.gateway")
PERIOD_S = 10.0


class Sightings:
    """``note`` from any thread, never blocks for the disk. A context: what is noted at its end is written too."""

    def __init__(self, registry: Registry, period_s: float = PERIOD_S) -> None:
        self._registry, self._period_s = registry, period_s
        self._noted: dict[str, int] = {}
        self._lock = threading.Lock()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._work, name="sightings", daemon=True)

    def note(self, probe: str) -> None:
        """A request with this probe's token came."""
        with self._lock:
            self._noted[probe] = time.time_ns()

    def __enter__(self) -> Sightings:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _work(self) -> None:
        while not self._end.wait(self._period_s):
            self._write()
        self._write()

    def _write(self) -> None:
        with self._lock:
            noted, self._noted = self._noted, {}
        if not noted:
            return
        try:
            self._registry.seen.note(noted)
        except sqlite3.Error as error:
            _LOG.warning("the registry does not take when probes were seen: %s", error)
            with self._lock:
                self._noted = {**noted, **self._noted}
