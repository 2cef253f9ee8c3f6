"""Is the probe moving: the detector that adds up the evidence of all modems, and all detectors behind one door."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import replace

from tandem.mobility.levels import Spread, cell_of, family, level_of
from tandem.mobility.radio_events import (
    HandoverDetector,
    MobilityDetector,
    PresenceDetector,
    ServiceDetector,
    SignalDropDetector,
)
from tandem.mobility.settings import FusedSettings, Settings
from tandem.mobility.speed import SpeedClassifier, SpeedJudge
from tandem.schema.record import Record


class ModemEvidence:
    """``per_s``: evidence a second from the last poll on, good until ``until_ns``; ``spread_db`` of the shortest window, None while
    unknown; ``quantities``: what was weighed, None while too few polls tell."""

    def __init__(self, settings: FusedSettings) -> None:
        self._settings = settings
        self._spreads = [Spread(window_ns) for window_ns in settings.windows_ns]
        self._cells = NewCells(settings.cell_memory_s)
        self._new_ns: deque[int] = deque()
        self._last_ns = -1
        self.per_s = 0.0
        self.until_ns = -1
        self.spread_db: float | None = None
        self.quantities: list[float] | None = None

    def knows(self, monotonic_ns: int) -> bool:
        """Whether this poll or a later one was reported."""
        return monotonic_ns <= self._last_ns

    def feed(self, record: Record) -> None:
        """Take a later, fresh poll."""
        now = self._last_ns = record.monotonic_ns
        level, cell = level_of(record), cell_of(record)
        if cell is not None and self._cells.feed(now, cell):
            self._new_ns.append(now)
        while self._new_ns and self._new_ns[0] <= now - self._settings.windows_ns[-1]:
            self._new_ns.popleft()
        if level is None:
            return
        quantity, level_db = level
        group = quantity, family(record.tags.get("rat")), cell
        spreads = [spread.feed(now, group, level_db) for spread in self._spreads]
        self.spread_db = spreads[0]
        self.quantities = self._weighed(spreads)
        self.per_s = 0.0 if self.quantities is None else self._settings.per_s(self.quantities)
        self.until_ns = now + self._settings.successive_ns

    def _weighed(self, spreads: Sequence[float | None]) -> list[float] | None:
        """Logarithms; a window with too few polls is taken as the next longer one."""
        known = spreads[-1]
        if known is None:
            return None
        out = [math.log1p(len(self._new_ns))]
        for spread in reversed(spreads):
            known = known if spread is None else spread
            out.append(math.log(known))
        return out[::-1]


class NewCells:
    """Cells that are new to one modem: what it does not see again and again where it stays. Each is remembered for ``memory_s`` seconds
    after it last served."""

    def __init__(self, memory_s: float) -> None:
        self._memory_ns = round(memory_s * 1e9)
        self._seen_ns: dict[Hashable, int] = {}

    def feed(self, monotonic_ns: int, cell: Hashable) -> bool:
        """Whether this cell is new here. The first one is not, nor is one after so long without any: nothing is known then of
        the cells of this place. Times must not decrease."""
        seen_ns = self._seen_ns.pop(cell, None)
        self._seen_ns[cell] = monotonic_ns
        # The latest seen come last, so the forgotten ones are at the front.
        for old, when_ns in list(self._seen_ns.items()):
            if monotonic_ns - when_ns <= self._memory_ns:
                break
            del self._seen_ns[old]
        known = seen_ns is not None and monotonic_ns - seen_ns <= self._memory_ns
        return not known and len(self._seen_ns) > 1


# ---------------------------------------------------------------------------------------------------------------------
# Is the probe moving? Evidence of all modems, added up over time; a good speed decides where there is one.


MICRO = 10**6
"""Evidence is kept as a whole number of units of 10⁻¹⁵ s, and rates in millionths, which times ns is such a number: what happens
does not depend on how often it was looked at, nor on the order of the modems."""


class FusedDetector:
    """A vessel of evidence (``FusedSettings``): filled and drained by every modem at the rate of its last poll.

    Moving from ``start_s`` in it until it is empty. Between records the rates are constant, so the instants at which it is
    full enough or empty are computed, not awaited: ticks change no event. Where no modem tells anything it drains slowly. A record
    that is older than what was reported is taken from now on. Feed position records too, where there are any.
    """

    def __init__(self, settings: FusedSettings) -> None:
        self._settings = settings
        self._modems: dict[str, ModemEvidence] = {}
        self._speed = SpeedJudge(settings)
        self._least_ns = round(settings.least_s * 1e9)
        self._settle_ns = round(settings.period_s * 1e9)
        self._start, self._most = round(settings.start_s * MICRO) * 10**9, round(settings.most_s * MICRO) * 10**9
        self._silent = round(settings.silent_per_s * MICRO)
        self._evidence = 0
        self._now_ns: int | None = None
        self._changed_ns: int | None = None
        self._mobile = False

    @property
    def mobile(self) -> bool:
        return self._mobile

    @property
    def mobile_since_ns(self) -> int | None:
        """CLOCK_MONOTONIC of the last start; None when not mobile."""
        return self._changed_ns if self._mobile else None

    def feed(self, record: Record) -> list[Record]:
        if record.measurement == "position":
            return self._by_speed(record)
        path = record.tags.get("path")
        if record.measurement != "radio" or path is None or record.fields.get("stale") is True:
            return []
        modem = self._modems.get(path)
        if modem is None:
            modem = self._modems[path] = ModemEvidence(self._settings)
        elif modem.knows(record.monotonic_ns):
            return []
        events = self._advance(record.monotonic_ns)
        modem.feed(record)
        return events

    def tick(self, monotonic_ns: int) -> list[Record]:
        """Time has come to ``monotonic_ns``; taken one period late, since a record of this instant may still come."""
        return self._advance(monotonic_ns - self._settle_ns)

    def _by_speed(self, record: Record) -> list[Record]:
        events = self._advance(record.monotonic_ns)
        judged = self._speed.feed(record)
        now = self._now_ns or 0
        if judged is not None and judged != self._mobile and self._may_change_ns() <= now:
            events.append(self._change(now, "by speed"))
        if self._speed_decides(now):
            self._evidence = self._most if self._mobile else 0
        return events

    def _speed_decides(self, at_ns: int) -> bool:
        until = self._speed.valid_until_ns()
        return until is not None and at_ns < until

    def _may_change_ns(self) -> int:
        return 0 if self._changed_ns is None else self._changed_ns + self._least_ns

    def _advance(self, to_ns: int) -> list[Record]:
        events: list[Record] = []
        if self._now_ns is None:
            self._now_ns = to_ns
        while self._now_ns < to_ns:
            speed_until = self._speed.valid_until_ns()
            ends = [m.until_ns for m in self._modems.values()] + ([speed_until] if speed_until is not None else [])
            until = min([to_ns, *(end for end in ends if end > self._now_ns)])
            if not self._speed_decides(self._now_ns):
                events += self._pass(self._now_ns, until, self._per_s(self._now_ns))
            self._now_ns = until
        return events

    def _per_s(self, at_ns: int) -> int:
        """Millionths of a second of evidence a second."""
        rates = [round(modem.per_s * MICRO) for modem in self._modems.values() if at_ns < modem.until_ns]
        if not rates:
            return -self._silent
        most = round(self._settings.modems * MICRO)
        moving, standing = sum(rate for rate in rates if rate > 0), sum(rate for rate in rates if rate < 0)
        if moving:
            standing = round(standing * self._settings.overruled)
        return min(most, max(-most, moving + standing))

    def _pass(self, begin_ns: int, end_ns: int, per_s: int) -> list[Record]:
        """Fill or drain from ``begin_ns`` to ``end_ns``; the changes of state in between."""
        events = []
        while (at_ns := self._change_ns(begin_ns, per_s)) is not None and at_ns <= end_ns:
            self._evidence = self._after(per_s, at_ns - begin_ns)
            events.append(self._change(at_ns, self._why(begin_ns)))
            begin_ns = at_ns
        self._evidence = self._after(per_s, end_ns - begin_ns)
        return events

    def _after(self, per_s: int, passed_ns: int) -> int:
        return min(self._most, max(0, self._evidence + per_s * passed_ns))

    def _change_ns(self, begin_ns: int, per_s: int) -> int | None:
        """When the state changes at this rate; None when never."""
        missing = self._evidence if self._mobile else self._start - self._evidence
        towards = -per_s if self._mobile else per_s
        if missing <= 0:
            reached_ns = begin_ns
        elif towards > 0:
            reached_ns = begin_ns + -(-missing // towards)
        else:
            return None
        at_ns = max(reached_ns, self._may_change_ns())
        if at_ns == reached_ns:
            return at_ns
        # It had to wait: is it still so?
        then = self._after(per_s, at_ns - begin_ns)
        return at_ns if (then <= 0 if self._mobile else then >= self._start) else None

    def _why(self, at_ns: int) -> str:
        spreads = [
            f"{path} {modem.spread_db:.1f} dB"
            for path, modem in sorted(self._modems.items())
            if modem.spread_db is not None and at_ns < modem.until_ns
        ]
        return "spread " + ", ".join(spreads) if spreads else "no poll tells"

    def _change(self, at_ns: int, why: str) -> Record:
        since_ns, self._changed_ns, self._mobile = self._changed_ns, at_ns, not self._mobile
        if self._mobile:
            kind, detail = "mobility_start", why
        else:
            kind, detail = "mobility_stop", f"mobile for {(at_ns - (since_ns or at_ns)) / 1e9:.1f} s; {why}"
        return Record.make("event", {"kind": kind}, {"detector": "fused", "detail": detail[:500]}, at_ns)


# ---------------------------------------------------------------------------------------------------------------------
# All detectors behind one door.


class Detectors:
    """Feed every radio and registration record of every path, each path's in the order in which they were made, and position
    records; others are ignored.

    ``settings.detector`` says which one judges movement: only its events are reported. A good speed (``FusedSettings``: fix, age, error)
    decides in the fused detector alone, and in both the speed class, which a stop has and, on the move, each handover and drop.
    Not safe for several threads at once: the app feeds it from one.
    """

    def __init__(self, settings: Settings, fused: FusedSettings | None = None) -> None:
        self._movement: FusedDetector | MobilityDetector
        if settings.detector == "fused":
            self._movement = FusedDetector(fused or FusedSettings(period_s=settings.period_s))
        else:
            self._movement = MobilityDetector(settings)
        self._service = ServiceDetector(settings)
        self._others = (
            SignalDropDetector(settings), HandoverDetector(settings), self._service, PresenceDetector(settings),
        )  # fmt: skip
        self._speed_class = SpeedClassifier(fused)
        self._now_ns = 0

    @property
    def mobile(self) -> bool:
        return self._movement.mobile

    @property
    def mobile_since_ns(self) -> int | None:
        """CLOCK_MONOTONIC of the last ``mobility_start``; None when not mobile."""
        return self._movement.mobile_since_ns

    @property
    def speed_class(self) -> str | None:
        """``low`` or ``high`` of the movement that goes on; None when not mobile, or in its first minute."""
        return self._speed_class.so_far(self._now_ns)

    def feed(self, record: Record) -> list[Record]:
        """The events that this record shows: presence, service, handover and drop before the change of mobility."""
        if record.measurement not in ("radio", "registration", "position"):
            return []
        self._now_ns = max(self._now_ns, record.monotonic_ns)
        events = [self._on_the_move(event) for detector in reversed(self._others) for event in detector.feed(record)]
        changes = self._movement.feed(record)
        # A stop that this record shows lies before it: the movement is classed without it.
        classed = self._classed(changes)
        self._speed_class.feed(record)
        return events + classed

    def tick(self, monotonic_ns: int) -> list[Record]:
        """Time has come to ``monotonic_ns``; call it about once a second, so that mobility ends also when no poll succeeds."""
        self._now_ns = max(self._now_ns, monotonic_ns)
        return self._service.tick(monotonic_ns) + self._classed(self._movement.tick(monotonic_ns))

    def _classed(self, changes: list[Record]) -> list[Record]:
        """The same events; a stop with the speed class of the movement that it ends."""
        out = []
        for event in changes:
            if event.tags["kind"] == "mobility_start":
                self._speed_class.begin(event.monotonic_ns)
                out.append(event)
                continue
            out.append(_with(event, self._speed_class.end(event.monotonic_ns)))
        return out

    def _on_the_move(self, event: Record) -> Record:
        """A handover or a drop with the class of the movement so far."""
        if event.tags["kind"] not in ("handover", "signal_drop"):
            return event
        return _with(event, self._speed_class.so_far(event.monotonic_ns))


def _with(event: Record, speed_class: str | None) -> Record:
    if speed_class is None:
        return event
    return replace(event, fields={**event.fields, "speed_class": speed_class, "speed_class_by": "speed"})
