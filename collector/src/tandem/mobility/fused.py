"""Is the probe moving? Evidence of all modems, added up over time; a good speed decides where there is one."""

from __future__ import annotations

from tandem.mobility.evidence import ModemEvidence
from tandem.mobility.fused_settings import FusedSettings
from tandem.mobility.speed import SpeedJudge
from tandem.schema.record import Record

MICRO = 10**6
UNITS = 10**15
"""Evidence is kept as a whole number of units of 10⁻¹⁵ s, and rates in millionths, which times ns is such a number: what happens
does not depend on how often it was looked at, nor on the order of the modems."""


class FusedDetector:
    """A vessel of evidence (``FusedSettings``): filled and drained by every modem at the rate of its last poll.

    Moving from ``start_s`` in it until it is empty. Between records the rates are constant, so the instants at which it is
    full enough or empty are computed, not awaited: ticks change no event. Where no modem tells anything it drains slowly. A record
    that is older than what was told is taken from now on. Feed position records too, where there are any.
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
        """The state after all that was fed."""
        return self._mobile

    @property
    def mobile_since_ns(self) -> int | None:
        """CLOCK_MONOTONIC of the last start; None when not mobile."""
        return self._changed_ns if self._mobile else None

    @property
    def evidence_s(self) -> float:
        """What the vessel holds, 0 to ``most_s``."""
        return self._evidence / UNITS

    def feed(self, record: Record) -> list[Record]:
        """The events that this record shows."""
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
