"""The loop that makes derived series: the hours that go on, every hour when it is over, and again those that records came late for."""

from __future__ import annotations

import logging
import os
import re
import sqlite3
import threading
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from tandem_server.derived.coverage import HOUR_NS, S_NS
from tandem_server.derived.making import AFFECTED, SEEN_AFTER_S, Making
from tandem_server.derived.reading import oldest_record, probes_with_records
from tandem_server.derived.stored import DerivedRefused
from tandem_server.registry import Debounce, LateHour, Registry, Settled
from tandem_server.store import Influx, QueryError, StoreDown

_LOG = logging.getLogger("tandem.derived")
LEASE = "derived"
CONSUMER = "coverage"
"""Under this name the gateway notes late hours for us, and the registry keeps how far hours are settled."""

MADE_BY = "coverage/1"
"""Another one makes all hours anew: to be raised when the same records give other figures."""

PERIOD_S = 60.0
_SHARE = 0.05
"""No more of the time than this goes into the hours that go on: with many probes they are made less often than once a minute."""

SETTLED_AFTER_S = SEEN_AFTER_S + 300
"""After an hour's end: its records, and those around it, are here, or they are late and noted (``ingest/rolling.py``: 120 s)."""

_TURN_S = 120.0
"""So long hours of the past are made before those that go on are made again."""
_LEASE_S = 600.0


@dataclass(frozen=True, slots=True)
class Turn:
    """What one turn made: ``hours`` of probes; ``left``: there are more of the past to make."""

    hours: int
    left: bool


class DerivedSeries:
    """A context: a thread of its own while it is open. ``turn`` by itself is for tests and commands."""

    def __init__(self, registry: Registry, store: Influx, debounce: Debounce | None = None) -> None:
        self._registry, self._store, self._making = registry, store, Making(store)
        self._debounce = debounce or Debounce()
        self._holder = f"{os.getpid()}-{os.urandom(8).hex()}"
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._work, name="derived", daemon=True)
        self._oldest: int | None = None
        self._going_on_s = 0.0

    def __enter__(self) -> DerivedSeries:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()
        try:
            self._registry.seen.give_up(LEASE, self._holder)
        except sqlite3.Error as error:
            _LOG.warning("the lease of the derived series runs out by itself: %s", error)

    def turn(self, now_utc_ns: int, for_s: float = _TURN_S, *, going_on: bool = True) -> Turn | None:
        """The hours that go on, unless ``going_on`` is False; then late ones and those that are not settled yet, for ``for_s`` at most.
        None: the lease is another's.

        StoreDown, QueryError, DerivedRefused, sqlite3.Error: what was not made is made by the next turn.
        """
        if not self._leased():
            return None
        self._oldest = self._keep_from(now_utc_ns)
        through = self._through()
        if through is None:
            return Turn(0, left=False)
        this, began = now_utc_ns // HOUR_NS * HOUR_NS, time.monotonic()
        newest = (this, this - HOUR_NS) if going_on else ()
        made = sum(self._all_probes(hour, anyway=False) for hour in newest if hour >= through)
        until = time.monotonic() + for_s
        self._going_on_s = until - for_s - began
        made += self._late(through, until)
        while through + HOUR_NS + SETTLED_AFTER_S * S_NS <= now_utc_ns:
            if time.monotonic() >= until or self._end.is_set():
                return Turn(made, left=True)
            made += self._all_probes(through, anyway=True)
            if self._end.is_set():
                return Turn(made, left=True)
            through += HOUR_NS
            self._registry.late.settle(CONSUMER, Settled(MADE_BY, through // S_NS))
        return Turn(made, left=False)

    def _keep_from(self, now_utc_ns: int) -> int | None:
        return oldest_kept(self._store, now_utc_ns)

    def _leased(self) -> bool:
        return self._registry.seen.lease(LEASE, self._holder, time.time_ns(), _LEASE_S)

    def _through(self) -> int | None:
        """Hours before it are settled; None: there is no record yet."""
        settled = self._registry.late.settled().get(CONSUMER)
        if settled is not None and settled.made_by == MADE_BY:
            return settled.through_utc_s * S_NS
        oldest = oldest_record(self._store)
        return None if oldest is None else oldest // HOUR_NS * HOUR_NS

    def _all_probes(self, hour: int, *, anyway: bool) -> int:
        """Make an hour of every probe that has records in it, and what is of all together: ``anyway``, else if anything changed."""
        made, changed = 0, False
        for probe in probes_with_records(self._store, hour, hour + HOUR_NS):
            if self._end.is_set():
                return made
            self._leased()
            changed |= self._making.hour(probe, hour)
            made += 1
        if changed or (anyway and made):
            self._making.together([hour])
        return made

    def _late(self, through: int, until: float) -> int:
        """Make again what noted hours have a part in, the latest first; of what is not settled yet, it will be made anyway."""
        pending = self._registry.late.pending(CONSUMER)
        made = 0
        again: set[tuple[str, int]] = set()
        of_hour: dict[int, list[LateHour]] = defaultdict(list)
        for one in self._debounce.ready(pending, time.monotonic()):
            of_hour[one.hour_utc_s].append(one)
        for _, notes in sorted(of_hour.items(), reverse=True):
            if time.monotonic() >= until:
                return made
            wanted = affected(notes, through) - again
            for probe, hour in sorted(wanted):
                if self._end.is_set():
                    return made
                if self._oldest is not None and hour < self._oldest:
                    _LOG.warning("%s: records came for an hour that is not kept any more: it stays as it was", probe)
                    continue
                self._leased()
                self._making.hour(probe, hour)
                made += 1
            self._making.together({hour for _, hour in wanted if self._oldest is None or hour >= self._oldest})
            again |= wanted
            self._registry.late.done(CONSUMER, notes)
        return made

    def _work(self) -> None:
        wait_s = again_s = 0.0
        told = ""
        while not self._end.wait(wait_s):
            going_on, turn = time.monotonic() >= again_s, None
            try:
                turn = self.turn(time.time_ns(), going_on=going_on)
            except (StoreDown, QueryError, DerivedRefused, sqlite3.Error) as error:
                if str(error) != told:
                    _LOG.warning("no derived series this time: %s", error)
                told = str(error)
            except Exception:  # noqa: BLE001  (a fault of this program; as in ``ingest/periodic.py``: its process would go on without it)
                _LOG.exception("no derived series this time")
            else:
                told = ""
            if going_on:
                again_s = time.monotonic() + self._going_on_s / _SHARE
            wait_s = 0.0 if turn is not None and turn.left else PERIOD_S


def affected(notes: Iterable[LateHour], before_utc_ns: int) -> set[tuple[str, int]]:
    """Probes and hours (UTC ns) that have a part of what these notes are of, as far as they begin before ``before_utc_ns``."""
    hours = {
        (one.probe, one.hour_utc_s * S_NS + after * HOUR_NS)
        for one in notes
        for after in AFFECTED.get(one.measurement, ())
    }
    return {one for one in hours if one[1] < before_utc_ns}


def oldest_kept(store: Influx, now_utc_ns: int) -> int | None:
    """Before this hour raw records, or hours, may be gone: nothing is made again of what is left. None: all is kept."""
    answer = store.query(f'SHOW RETENTION POLICIES ON "{store.database}"')
    days = {row[0]: duration_s(str(row[1])) for series in answer for row in series.rows}
    kept = [s for name, s in days.items() if name in ("kept", "minute") and s]
    return None if not kept else (now_utc_ns - min(kept) * S_NS) // (24 * HOUR_NS) * 24 * HOUR_NS + 24 * HOUR_NS


def duration_s(text: str) -> int:
    """Go's way to write a duration (``168h0m0s``) in seconds; 0: without an end. ValueError."""
    match = re.fullmatch(r"(?:([0-9]+)h)?(?:([0-9]+)m)?(?:([0-9]+)s)?", text)
    if match is None or not text:
        raise ValueError(f"{text!r} is no duration")
    hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return hours * 3600 + minutes * 60 + seconds
