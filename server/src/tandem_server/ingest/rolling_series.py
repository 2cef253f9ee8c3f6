"""The loop that does the work of ``rolling.py``: a thread of whichever gateway process has the lease."""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time

from tandem_server.ingest.rolling import Rollups
from tandem_server.registry import Registry
from tandem_server.store import Influx, QueryError, StoreDown
from tandem_server.store.preparing import Kept

_LOG = logging.getLogger("tandem.gateway")
LEASE = "rollups"
LEASE_S = 660.0
"""Longer than a statement may take."""
_PERIOD_S = 10.0
_SETTLE_S = 5.0
_BUSY_S = 1.0
"""Between rounds while more is due: long enough for another one to have its turn."""
_END_S = 10.0
_SAID_AGAIN_S = 600.0


class RollingSeries:
    """A context: a thread of its own while it is open. The lease is given up after each round, so that ``tandem-server series recompute``
    has its turn."""

    def __init__(self, registry: Registry, store: Influx, kept: Kept, settle_s: float) -> None:
        # Often enough that a ripe note does not wait much longer.
        self._registry, self._store, self._period_s = registry, store, min(_PERIOD_S, settle_s / 3)
        self._rollups = Rollups(registry, store, kept, settle_s=settle_s)
        self._holder = f"{os.getpid()}-{os.urandom(8).hex()}"
        self._end = threading.Event()
        self._said: tuple[str, float] = ("", 0.0)
        self._thread = threading.Thread(target=self._work, name="rollups", daemon=True)

    def __enter__(self) -> RollingSeries:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join(_END_S)
        self._store.close()

    def _work(self) -> None:
        wait_s = 0.0
        while not self._end.wait(wait_s):
            wait_s = self._period_s
            try:
                if not self._leased():
                    continue
                try:
                    if self._round():
                        wait_s = _BUSY_S
                finally:
                    self._registry.seen.give_up(LEASE, self._holder)
            except (StoreDown, sqlite3.Error) as error:
                self._say(f"no roll-ups now: {error}")
            except QueryError as error:
                self._say(f"no roll-ups: {error}; hint: tandem-server series prepare")
            except Exception:  # noqa: BLE001  (a fault of this program; as in ``leased.py``: nobody else makes them)
                _LOG.exception("no roll-ups now")

    def _round(self) -> bool:
        """What is new, all late hours that are ripe, then settling for a few seconds; whether more is due."""
        self._rollups.fresh(time.time())
        for _ in self._rollups.late(time.time(), time.monotonic()):
            if not self._goes_on():
                return True
        until_s = time.monotonic() + _SETTLE_S
        settled = self._rollups.settle(time.time())
        return any(time.monotonic() > until_s or not self._goes_on() for _ in settled)

    def _goes_on(self) -> bool:
        """After each piece: what is new comes first. False when the end was asked for."""
        if self._end.is_set() or not self._leased():
            return False
        self._rollups.fresh(time.time())
        return True

    def _leased(self) -> bool:
        return self._registry.seen.lease(LEASE, self._holder, time.time_ns(), LEASE_S)

    def _say(self, what: str) -> None:
        """Once, and again when it lasts."""
        if self._said[0] != what or time.monotonic() - self._said[1] > _SAID_AGAIN_S:
            _LOG.warning("%s", what)
            self._said = (what, time.monotonic())
