"""A series that one gateway process of several writes, once a period: whichever has the lease. When it dies another one takes over."""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable

from tandem_server.registry import Registry
from tandem_server.store import StoreDown

_LOG = logging.getLogger("tandem.gateway")
PERIOD_S = 60
_END_S = 10.0
"""So long the end waits for a database that does not answer; what supervises the gateway waits longer."""


class Leased:
    """A context: a thread of its own while it is open. ``write``: told of the time, UTC ns. ``period_s``: whole seconds from point to
    point; the first comes at once."""

    def __init__(self, registry: Registry, name: str, write: Callable[[int], object], period_s: int = PERIOD_S) -> None:
        self._registry, self._name, self._write, self.period_s = registry, name, write, period_s
        self._holder = f"{os.getpid()}-{os.urandom(8).hex()}"
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)

    def __enter__(self) -> Leased:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join(_END_S)
        try:
            self._registry.seen.give_up(self._name, self._holder)
        except sqlite3.Error as error:
            _LOG.warning("the lease of the series %s runs out by itself: %s", self._name, error)

    @property
    def ending(self) -> bool:
        """Whether the end was asked for."""
        return self._end.is_set()

    def once(self, now_utc_ns: int) -> bool:
        """Write, if the lease is ours. What ``write`` raises: there are no points this time."""
        if not self._registry.seen.lease(self._name, self._holder, now_utc_ns, 2.5 * self.period_s):
            return False
        self._write(now_utc_ns)
        return True

    def whole(self, now_utc_ns: int) -> int:
        """The time of the points of now: whole periods."""
        return now_utc_ns // (self.period_s * 10**9) * self.period_s * 10**9

    def _work(self) -> None:
        wait_s = 0.0
        while not self._end.wait(wait_s):
            try:
                self.once(time.time_ns())
            except (StoreDown, sqlite3.Error) as error:
                _LOG.warning("no points of the series %s this time: %s", self._name, error)
            except Exception:  # noqa: BLE001  (for the reason below)
                # A fault of this program, told with its traceback. The next minute may be without it; a series that ended with its
                # thread would be missed by everybody, and alarms rest on it.
                _LOG.exception("no points of the series %s this time", self._name)
            wait_s = self.period_s - time.time() % self.period_s
