"""From reports to what leaves the probe: position records, and events when a fix was found or lost. Pure; time is an argument."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tandem.position.reports import Fix, Fixes, Report, Sky, Tpv
from tandem.position.zones import FIX_WORDS, Privacy
from tandem.schema.record import Record


@dataclass(frozen=True, slots=True)
class State:
    """For people, on the probe: never where, only whether.

    ``state``: ``no_gpsd``, ``silent`` (no report), ``searching``, ``fix`` or ``private`` (in a home zone, or not known to be outside).
    """

    state: str
    fix: str | None = None
    satellites_used: int | None = None
    satellites_seen: int | None = None

    def as_json(self) -> dict[str, str | int | None]:
        """For the status object."""
        return {
            "state": self.state,
            "fix": self.fix,
            "satellites_used": self.satellites_used,
            "satellites_seen": self.satellites_seen,
        }


class Observer:
    """``heard`` with each report, ``tick`` a few times a second; both return records. ``lost_after_s``: without a fix for so long
    it is lost. ``speed``: called with the speed of every fix that has one, as a position record without a place, for use on the probe
    alone: movement is judged by it in coarse mode too, whose records have none. Not in a home zone, where what the receiver does
    is nobody's business: a stop that was judged by it would tell when somebody came home.
    """

    def __init__(
        self,
        privacy: Privacy,
        utc_ns: Callable[[int], int | None],
        lost_after_s: float,
        speed: Callable[[Record], None] | None = None,
    ) -> None:
        self._privacy, self._speed = privacy, speed
        self._patience_ns = int(lost_after_s * 1e9)
        self._fixes = Fixes(utc_ns, lost_after_s)
        self._found_ns: int | None = None
        self._heard_ns: int | None = None
        self._last: Fix | None = None
        self._told: bool | None = None
        self._told_ns: int | None = None

    def heard(self, report: Report, now_ns: int) -> list[Record]:
        """One report, arrived at ``now_ns``."""
        if isinstance(report, Sky):
            self._fixes.sky(report, now_ns)
        if not isinstance(report, Tpv):
            return []
        self._heard_ns = now_ns
        return self._take(self._fixes.tpv(report, now_ns), now_ns)

    def tick(self, now_ns: int) -> list[Record]:
        """What time brings."""
        return self._take(self._fixes.tick(now_ns), now_ns)

    def state(self, now_ns: int, *, connected: bool) -> State:
        """For the status object."""
        if not connected:
            return State("no_gpsd")
        if self._heard_ns is None or now_ns - self._heard_ns > self._patience_ns:
            return State("silent")
        last = self._last
        used, seen = (None, None) if last is None else (last.satellites_used, last.satellites_seen)
        if not self._has_fix(now_ns) or last is None:
            return State("searching", None, used, seen)
        return State("private" if self._privacy.hiding else "fix", FIX_WORDS.get(last.tpv.mode), used, seen)

    def _take(self, fix: Fix | None, now_ns: int) -> list[Record]:
        records: list[Record] = []
        if fix is not None:
            self._last = fix
            if fix.found:
                self._found_ns = now_ns
            record = self._privacy.record(fix)
            if self._speed is not None and fix.found and fix.tpv.speed_m_per_s is not None and not self._privacy.hiding:
                self._speed(_speed_record(fix))
            if record is not None:
                records.append(record)
        return [*self._event(now_ns), *records]

    def _has_fix(self, now_ns: int) -> bool:
        return self._found_ns is not None and now_ns - self._found_ns <= self._patience_ns

    def _event(self, now_ns: int) -> list[Record]:
        """An event when the outcome changed; none in a home zone, where it would tell when somebody went indoors."""
        found = self._has_fix(now_ns)
        if self._privacy.hiding or found == self._told or (not found and self._told is None):
            return []
        took_ms = None if self._told_ns is None else (now_ns - self._told_ns) / 1e6
        self._told, self._told_ns = found, now_ns
        detail = self._detail(found, now_ns)
        kind = "position_fix" if found else "position_lost"
        return [Record.make("event", {"kind": kind}, {"took_ms": took_ms, "detail": detail}, now_ns)]

    def _detail(self, found: bool, now_ns: int) -> str:
        last = self._last
        if not found:
            silent = self._heard_ns is None or now_ns - self._heard_ns > self._patience_ns
            return "the receiver is silent" if silent else "the receiver finds no position"
        words = "" if last is None else FIX_WORDS.get(last.tpv.mode, "")
        used = None if last is None else last.satellites_used
        return words if used is None else f"{words}, {used} satellites"


def _speed_record(fix: Fix) -> Record:
    """What judges movement needs to know of a fix. Never to be sent."""
    fields = {
        "fix": FIX_WORDS.get(fix.tpv.mode),
        "speed_m_per_s": fix.tpv.speed_m_per_s,
        "horizontal_error_m": fix.tpv.error_m,
        "fix_age_ms": fix.age_ms,
    }
    return Record.make("position", {}, fields, fix.monotonic_ns)
