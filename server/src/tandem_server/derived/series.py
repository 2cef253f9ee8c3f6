"""Derived series, a turn at a time: the hours that go on, every hour when it is over, and again those that records came late for."""

from __future__ import annotations

import logging
import re
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from tandem_server.derived.coverage import HOUR_NS, S_NS
from tandem_server.derived.making import AFFECTED, SEEN_AFTER_S, Making
from tandem_server.derived.reading import oldest_record, probes_with_records
from tandem_server.derived.stored import DerivedRefused
from tandem_server.periodic import Periodic
from tandem_server.registry import Debounce, LateHour, Registry, Settled
from tandem_server.store import Influx

_LOG = logging.getLogger("tandem.derived")
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


@dataclass(frozen=True, slots=True)
class Turn:
    """What one turn made: ``hours`` of probes; ``left``: there are more of the past to make."""

    hours: int
    left: bool


class DerivedSeries(Periodic):
    """What makes them, with what little others leave it."""

    nice = 19
    expected = (*Periodic.expected, DerivedRefused)

    def __init__(self, registry: Registry, store: Influx, debounce: Debounce | None = None) -> None:
        super().__init__("derived series", PERIOD_S)
        self._registry, self._store, self._making = registry, store, Making(store)
        self._debounce = debounce or Debounce()
        self._oldest: int | None = None
        self._going_on_s = self._again_s = 0.0

    def turn(self) -> float | None:
        """See ``once``; the hours that go on only as often as their share of the time allows."""
        going_on = time.monotonic() >= self._again_s
        try:
            return 0.0 if self.once(time.time_ns(), going_on=going_on).left else None
        finally:
            if going_on:
                self._again_s = time.monotonic() + self._going_on_s / _SHARE

    def once(self, now_utc_ns: int, for_s: float = _TURN_S, *, going_on: bool = True) -> Turn:
        """The hours that go on, unless ``going_on`` is False; then late ones and those that are not settled yet, for ``for_s`` at most.

        StoreDown, QueryError, DerivedRefused, sqlite3.Error: what was not made is made by the next turn.
        """
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
            if time.monotonic() >= until or self.ending:
                return Turn(made, left=True)
            made += self._all_probes(through, anyway=True)
            if self.ending:
                return Turn(made, left=True)
            through += HOUR_NS
            self._registry.late.settle(CONSUMER, Settled(MADE_BY, through // S_NS))
        return Turn(made, left=False)

    def _keep_from(self, now_utc_ns: int) -> int | None:
        return oldest_kept(self._store, now_utc_ns)

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
            if self.ending:
                return made
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
                if self.ending:
                    return made
                if self._oldest is not None and hour < self._oldest:
                    _LOG.warning("%s: records came for an hour that is not kept any more: it stays as it was", probe)
                    continue
                self._making.hour(probe, hour)
                made += 1
            self._making.together({hour for _, hour in wanted if self._oldest is None or hour >= self._oldest})
            again |= wanted
            self._registry.late.done(CONSUMER, notes)
        return made


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
