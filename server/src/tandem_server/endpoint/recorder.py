"""Carries the sender's records into the store from a thread of its own, so that no download ever waits for the database."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tandem.schema.line_protocol import Point, encode_point
from tandem.schema.record import RecordError, check
from tandem_server.store import SeriesStore, StoreDown

_LOG = logging.getLogger("tandem.endpoint.recorder")
_BATCH = 2000
_PERIOD_S = 0.5
_LONGEST_PAUSE_S = 10.0


@dataclass(slots=True)
class Account:
    """What became of the records: ``made`` = ``stored`` + ``dropped`` + ``rejected`` + those still waiting."""

    made: int = 0
    stored: int = 0
    dropped: int = 0
    rejected: int = 0


class Recorder:
    """``put`` never blocks. At most ``room`` records wait; when more come, the oldest are dropped and counted."""

    def __init__(self, store: Callable[[], SeriesStore], room: int = 50_000) -> None:
        self._store, self._room = store, room
        self._waiting: deque[Point] = deque()
        self._lock = threading.Condition()
        self._closing_at_s: float | None = None
        self.account = Account()
        self._thread = threading.Thread(target=self._work, name="recorder", daemon=True)
        self._thread.start()

    def put(self, points: Iterable[Point]) -> None:
        """Hand records over."""
        with self._lock:
            for point in points:
                self.account.made += 1
                self._waiting.append(point)
                if len(self._waiting) > self._room:
                    self._waiting.popleft()
                    self.account.dropped += 1

    def close(self, timeout_s: float = 5.0) -> Account:
        """Write what waits, for at most ``timeout_s``; what is left then counts as dropped."""
        with self._lock:
            self._closing_at_s = time.monotonic() + timeout_s
            self._lock.notify_all()
        self._thread.join(timeout_s + 1.0)
        with self._lock:
            self.account.dropped += len(self._waiting)
            self._waiting.clear()
        if self.account.dropped or self.account.rejected:
            _LOG.warning("records of the sender: %d dropped, %d rejected", self.account.dropped, self.account.rejected)
        return self.account

    def _work(self) -> None:
        pause_s = _PERIOD_S
        while True:
            with self._lock:
                self._lock.wait_for(lambda: self._closing_at_s is not None, pause_s)
                batch = [self._waiting.popleft() for _ in range(min(_BATCH, len(self._waiting)))]
                closing_at_s = self._closing_at_s
            if not batch:
                if closing_at_s is not None:
                    return
                pause_s = _PERIOD_S
                continue
            if self._write(batch):
                pause_s = 0.0 if len(batch) == _BATCH else _PERIOD_S
                continue
            with self._lock:
                room = max(0, self._room - len(self._waiting))
                self.account.dropped += max(0, len(batch) - room)
                self._waiting.extendleft(reversed(batch[len(batch) - min(room, len(batch)) :]))
            if closing_at_s is not None and time.monotonic() > closing_at_s:
                return
            pause_s = min(max(pause_s, _PERIOD_S) * 2, _LONGEST_PAUSE_S)
            if closing_at_s is not None:
                time.sleep(min(0.2, pause_s))

    def _write(self, batch: list[Point]) -> bool:
        """False when the store is down and the batch must be kept."""
        lines = []
        for point in batch:
            try:
                check(point.measurement, point.tags, point.fields)
                lines.append(encode_point(point))
            except RecordError as error:
                self.account.rejected += 1
                _LOG.warning("a record of the sender breaks the schema: %s", error)
        try:
            rejected = self._store().write(lines)
        except StoreDown as error:
            self.account.rejected -= len(batch) - len(lines)  # they come again with the batch
            _LOG.warning("records of the sender wait: %s", error)
            return False
        for one in rejected:
            _LOG.warning("the database rejected %r: %s", lines[one.index][:200], one.reason)
        self.account.rejected += len(rejected)
        self.account.stored += len(lines) - len(rejected)
        return True
