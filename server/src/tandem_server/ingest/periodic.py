"""What the gateway does by itself each so often: a thread each, a lease where one process of several does it; and its own series."""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping
from typing import Self

from tandem.schema.line_protocol import Point
from tandem.schema.record import Value
from tandem_server.registry import Registry
from tandem_server.schema.measurements import check_server, encode_point
from tandem_server.store import QueryError, SeriesStore, StoreDown

_LOG = logging.getLogger("tandem.gateway")
PERIOD_S = 60
_END_S = 10.0
"""So long the end waits for a database that does not answer; what supervises the gateway waits longer."""
_AGAIN_S = 600.0
_TEXT = 500


class Periodic:
    """A context: while it is open ``turn`` is called in a thread of its own, each ``period_s`` seconds (``aligned``: at whole periods of
    the clock), first ``at_once`` or after the first period, and once more ``at_end``."""

    at_once, at_end, aligned = True, False, False

    def __init__(self, name: str, period_s: float) -> None:
        self.name, self._every_s = name, period_s
        self._end = threading.Event()
        self._failure = ("", 0.0)
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)

    def turn(self) -> float | None:
        """Do it once. Seconds until the next, None: as ever. StoreDown, QueryError, sqlite3.Error, OSError: not this time."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join(_END_S)

    @property
    def ending(self) -> bool:
        """Whether the context is being left."""
        return self._end.is_set()

    def _work(self) -> None:
        wait_s = 0.0 if self.at_once else self._pause_s()
        while not (ended := self._end.wait(wait_s)) or self.at_end:
            own_s: float | None = None
            try:
                own_s = self.turn()
            except (StoreDown, QueryError, sqlite3.Error, OSError) as error:
                self._say(str(error))
            except Exception:  # noqa: BLE001  (for the reason below)
                # A fault of this program, logged with its traceback. The next time may be without it; what ended with its thread would be
                # missed by everybody, and alarms rest on it.
                _LOG.exception("%s: not this time", self.name)
            if ended:
                return
            wait_s = self._pause_s() if own_s is None else own_s

    def _pause_s(self) -> float:
        return self._every_s - time.time() % self._every_s if self.aligned else self._every_s

    def _say(self, failure: str) -> None:
        """Once, and again when it lasts."""
        if self._failure[0] != failure or time.monotonic() - self._failure[1] > _AGAIN_S:
            _LOG.warning("%s: not this time: %s", self.name, failure)
            self._failure = (failure, time.monotonic())


class Lease:
    """What one process of several does: whichever has the lease; when it dies another one takes over after ``for_s``."""

    def __init__(self, registry: Registry, name: str, for_s: float) -> None:
        self._seen, self._name, self._for_s = registry.seen, name, for_s
        self._holder = f"{os.getpid()}-{os.urandom(8).hex()}"

    def taken(self, now_utc_ns: int) -> bool:
        """Whether it is ours from now on."""
        return self._seen.lease(self._name, self._holder, now_utc_ns, self._for_s)

    def give_up(self) -> None:
        """sqlite3.Error: it runs out by itself."""
        self._seen.give_up(self._name, self._holder)


class Leased(Periodic):
    """A series that the process with the lease writes. ``write`` gets the time, UTC ns. ``period_s``: whole seconds from point to point;
    the first comes at once."""

    aligned = True

    def __init__(self, registry: Registry, name: str, write: Callable[[int], object], period_s: int = PERIOD_S) -> None:
        super().__init__(name, period_s)
        self._registry, self._write, self.period_s = registry, write, period_s
        self._lease = Lease(registry, name, 2.5 * period_s)

    def __exit__(self, *how: object) -> None:
        super().__exit__(*how)
        try:
            self._lease.give_up()
        except sqlite3.Error as error:
            _LOG.warning("the lease of %s runs out by itself: %s", self.name, error)

    def turn(self) -> None:
        """See ``once``."""
        self.once(time.time_ns())

    def once(self, now_utc_ns: int) -> bool:
        """Write, if the lease is ours. What ``write`` raises: there are no points this time."""
        if not self._lease.taken(now_utc_ns):
            return False
        self._write(now_utc_ns)
        return True

    def whole(self, now_utc_ns: int) -> int:
        """The time of the points of now: whole periods."""
        return now_utc_ns // (self.period_s * 10**9) * self.period_s * 10**9


def own_line(
    measurement: str, tags: Mapping[str, str | None], fields: Mapping[str, Value | None], utc_ns: int
) -> str | None:
    """One line of the server's own, checked as a probe's is; what is None is absent, and a line without any field is none. RecordError: a
    fault of this program."""
    kept = {name: value for name, value in tags.items() if value}
    content = {
        name: value[:_TEXT] if isinstance(value, str) else value for name, value in fields.items() if value is not None
    }
    if not content:
        return None
    check_server(measurement, kept, content)
    return encode_point(Point(measurement, kept, content, utc_ns))


def put(store: SeriesStore, lines: list[str]) -> None:
    """Write them; what the database refuses is said in the log. StoreDown."""
    for refused in store.write(lines):
        _LOG.warning("the database refuses %s: %s", lines[refused.index][:200], refused.reason)


_LAST_SEEN_S = 10.0


class LastSeen(Periodic):
    """``note`` from any thread, never blocks for the disk. What is noted at its end is written too."""

    at_once, at_end = False, True

    def __init__(self, registry: Registry, period_s: float = _LAST_SEEN_S) -> None:
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
