"""The probe's mobility state at any time, from what it said of it. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable

from tandem_server.analysis.coverage.seen import S_NS, Telling

HOLDS_S = 60
"""A telling holds until the next, and no longer than this: health is told every ten seconds."""

CLASS_WITHIN_S = 90
"""A movement has a class from its first minute on: until then it has the one that is told first, if that is told within this."""


class States:
    """Asked by time. Tellings in any order; of several at one time an event goes before the health record."""

    def __init__(self, tellings: Iterable[Telling]) -> None:
        ordered = sorted(tellings, key=lambda t: (t.utc_ns, not (t.begins or t.ends)))
        self._times = [telling.utc_ns for telling in ordered]
        self._states: list[str] = []
        told: tuple[str, int] | None = None  # the class told next in this movement, and when
        for telling in reversed(ordered):
            known = None if telling.speed_class is None else (telling.speed_class, telling.utc_ns)
            if not telling.mobile:
                self._states.append("still")
                told = known if telling.ends else None
                continue
            told = known or told
            near = told is not None and told[1] - telling.utc_ns <= CLASS_WITHIN_S * S_NS
            self._states.append(told[0] if told is not None and near else "moving")
            if telling.begins:
                told = None
        self._states.reverse()

    def at(self, utc_ns: int) -> str:
        """One of ``tandem.schema.metrics.coverage.MOBILITY``; empty where nothing was told lately."""
        i = bisect_right(self._times, utc_ns) - 1
        return "" if i < 0 or utc_ns - self._times[i] > HOLDS_S * S_NS else self._states[i]

    def most(self, start_utc_ns: int, end_utc_ns: int) -> str:
        """The state of most seconds of the span; of the span's beginning when it is shorter; the first of several in the alphabet."""
        seconds = Counter(self.at(t) for t in range(start_utc_ns, max(end_utc_ns, start_utc_ns + 1), S_NS))
        return min(seconds, key=lambda state: (-seconds[state], state))
