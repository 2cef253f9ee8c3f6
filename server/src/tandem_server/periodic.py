"""What a process of the server does by itself each so often, a thread each, and the series that it writes of its own."""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
from collections.abc import Mapping
from typing import Self

from tandem.schema.line_protocol import Point
from tandem.schema.record import Value
from tandem_server.schema.measurements import check_server, encode_point
from tandem_server.store import QueryError, SeriesStore, StoreDown

_LOG = logging.getLogger("tandem.periodic")
PERIOD_S = 60
_END_S = 10.0
"""So long the end waits for a database that does not answer; what supervises the process waits longer."""
_AGAIN_S = 600.0
_TEXT = 500


class Periodic:
    """A context: while it is open ``turn`` is called in a thread of its own, each ``period_s`` seconds (``aligned``: at whole periods of
    the clock), first ``at_once`` or after the first period, and once more ``at_end``. ``nice``: the thread's, 19 for what may wait.
    ``expected``: errors that are no fault of this program."""

    at_once, at_end, aligned = True, False, False
    nice = 0
    expected: tuple[type[Exception], ...] = (StoreDown, QueryError, sqlite3.Error, OSError)

    def __init__(self, name: str, period_s: float) -> None:
        self.name, self.period_s = name, period_s
        self._end = threading.Event()
        self._failure = ("", 0.0)
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)

    def turn(self) -> float | None:
        """Do it once. Seconds until the next, None: as ever. Those that are ``expected``: not this time."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        self.join(_END_S)

    def end(self) -> None:
        """Begin to leave the context: of several all end at once, and not one after the other."""
        self._end.set()

    def join(self, timeout_s: float) -> None:
        """Wait for the end of its thread."""
        self._thread.join(timeout_s)

    @property
    def ending(self) -> bool:
        """Whether the context is being left."""
        return self._end.is_set()

    def _work(self) -> None:
        if self.nice:
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), self.nice)  # Linux: of this thread alone
        wait_s = 0.0 if self.at_once else self._pause_s()
        while not (ended := self._end.wait(wait_s)) or self.at_end:
            own_s: float | None = None
            try:
                own_s = self.turn()
                self._failure = ("", 0.0)
            except self.expected as error:
                self._say(str(error))
            except Exception:  # noqa: BLE001  (for the reason below)
                # A fault of this program, logged with its traceback. The next time may be without it; what ended with its thread would be
                # missed by everybody, and alarms rest on it.
                _LOG.exception("%s: not this time", self.name)
            if ended:
                return
            wait_s = self._pause_s() if own_s is None else own_s

    def _pause_s(self) -> float:
        return self.period_s - time.time() % self.period_s if self.aligned else self.period_s

    def _say(self, failure: str) -> None:
        """Once, and again when it lasts."""
        if self._failure[0] != failure or time.monotonic() - self._failure[1] > _AGAIN_S:
            _LOG.warning("%s: not this time: %s", self.name, failure)
            self._failure = (failure, time.monotonic())


class OwnSeries(Periodic):
    """A series of the server's own: points at whole periods, ``period_s`` whole seconds, of which the first come at once."""

    aligned = True

    def once(self, now_utc_ns: int) -> None:
        """Write the points of this period. What it raises: there are none this time."""
        raise NotImplementedError

    def turn(self) -> None:
        """See ``once``."""
        self.once(time.time_ns())

    def whole(self, now_utc_ns: int) -> int:
        """The time of the points of now: whole periods."""
        period_ns = int(self.period_s) * 10**9
        return now_utc_ns // period_ns * period_ns


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
