"""How long a path takes to recover from a radio event, and what it keeps meanwhile: learned from this probe's own runs. Pure.

Before anything was seen, Mohan et al. 2019 says what to expect: the round trip's peak grows 1.7-fold for each 2 dB of a drop, and is over
after 7 s at walking pace, 12 s when driving.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

FORMAT = "tandem-steering-history/1"
EVENTS = ("signal_drop", "handover", "service_lost")
"""Kinds of events after which a path recovers."""

_SLOW_S, _FAST_S = 7.0, 12.0
_PEAK_PER_DB = 1.7**0.5
_USUAL_DB = 6.0
"""Of an event that tells no drop: the least that a detector calls one."""
_WEIGHT = 3.0
"""The paper's figures count as so many runs of one's own."""
_DB_STEP, _MOST_DB = 3.0, 30.0

BEFORE_S, LONGEST_S = 3.0, 30.0
"""A recovery is measured against the mean of so long before the event, for at most the longer."""
RECOVERED, HOLDS_S = 0.7, 2.0
"""It is over when the goodput reaches this share of what it was, and holds it for so long."""
_LEAST_S = 0.25
"""Of a recovery of no time, since its logarithm is taken."""


class HistoryError(ValueError):
    """The history is none: one line."""


@dataclass(frozen=True, slots=True)
class RadioEvent:
    """Something that the radio of ``path`` did at ``at_ns`` (CLOCK_MONOTONIC). ``kind``: one of ``EVENTS`` or service_back; ``change_db``
    negative where a drop was measured; ``speed_class`` low, high or None."""

    kind: str
    path: str
    at_ns: int
    change_db: float | None = None
    speed_class: str | None = None


@dataclass(frozen=True, slots=True)
class Expectation:
    """``recovery_s`` above 0; ``kept``: the share of its goodput that the path has until then, 0 to 1; ``seen``: events it rests on."""

    recovery_s: float
    kept: float
    seen: int


@dataclass(frozen=True, slots=True)
class Recovery:
    """What one event did to a path that was not steered: seconds until it was over, share of the goodput kept until then."""

    event: RadioEvent
    recovery_s: float
    kept: float


class History:
    """Sums over recoveries by class of event: kind, steps of 3 dB, speed class."""

    def __init__(self) -> None:
        self._classes: dict[str, tuple[int, float, float]] = {}

    def expect(self, event: RadioEvent) -> Expectation:
        """What an event will do: the paper's figures, moved by what was seen of its class."""
        seen, logs, kept = self._classes.get(key_of(event), (0, 0.0, 0.0))
        usual_s = _FAST_S if event.speed_class == "high" else _SLOW_S
        usual_kept = 0.0 if event.kind == "service_lost" else _PEAK_PER_DB ** -_drop_db(event)
        whole = _WEIGHT + seen
        return Expectation(
            math.exp((_WEIGHT * math.log(usual_s) + logs) / whole), (_WEIGHT * usual_kept + kept) / whole, seen
        )

    def add(self, recoveries: Iterable[Recovery]) -> None:
        """Learn."""
        for one in recoveries:
            seen, logs, kept = self._classes.get(key_of(one.event), (0, 0.0, 0.0))
            self._classes[key_of(one.event)] = (
                seen + 1,
                logs + math.log(max(one.recovery_s, _LEAST_S)),
                kept + one.kept,
            )

    def as_json(self) -> dict[str, Any]:
        """For a file: by class how many events (``seen``), the sum of the logarithms of their seconds, the sum of the shares kept."""
        rows = {k: {"seen": n, "log_s": s, "kept": g} for k, (n, s, g) in sorted(self._classes.items())}
        return {"format": FORMAT, "classes": rows}

    @classmethod
    def from_json(cls, content: object) -> History:
        """The reverse of ``as_json``; HistoryError."""
        if not isinstance(content, Mapping) or content.get("format") != FORMAT:
            raise HistoryError(f"no history of steering ({FORMAT})")
        made, rows = cls(), content.get("classes")
        for key, row in rows.items() if isinstance(rows, Mapping) else ():
            try:
                seen, logs, kept = int(row["seen"]), float(row["log_s"]), float(row["kept"])
            except (TypeError, KeyError, ValueError, OverflowError):
                raise HistoryError(f"classes.{key}: no sums") from None
            if seen < 1 or not math.isfinite(logs) or not 0 <= kept <= seen:
                raise HistoryError(f"classes.{key}: sums out of range")
            made._classes[str(key)] = (seen, logs, kept)
        return made


def key_of(event: RadioEvent) -> str:
    """The class of an event, as in ``signal_drop/6 dB/high``."""
    depth = "" if event.kind == "service_lost" else f"/{math.floor(_drop_db(event) / _DB_STEP) * _DB_STEP:g} dB"
    return f"{event.kind}{depth}/{event.speed_class or 'unknown'}"


def _drop_db(event: RadioEvent) -> float:
    return _USUAL_DB if event.change_db is None else min(_MOST_DB, max(0.0, -event.change_db))


def recoveries(
    events: Sequence[RadioEvent],
    received: Mapping[str, Sequence[float]],
    begin_ns: int,
    step_s: float,
    steered: Sequence[tuple[str, int, int]] = (),
) -> list[Recovery]:
    """What the events of a run did, by the bytes that each path received in bins of ``step_s`` from ``begin_ns`` on. Left out is what says
    nothing: an event without traffic before it, one whose path was steered (``steered``: path, from, to) or had the next event
    before it had recovered, and one that the run's end cut off."""
    found = []
    holds, longest, before = (round(seconds / step_s) for seconds in (HOLDS_S, LONGEST_S, BEFORE_S))
    for event in events:
        bins = received.get(event.path, ())
        at = _bin(event.at_ns, begin_ns, step_s)
        had = bins[max(0, at - before) : max(0, at)]
        usual = sum(had) / len(had) if had else 0.0
        if event.kind not in EVENTS or usual <= 0 or _overlaps(event, steered):
            continue
        later = [e.at_ns for e in events if e.path == event.path and e.kind in EVENTS and e.at_ns > event.at_ns]
        cut = min([len(bins), *(_bin(ns, begin_ns, step_s) for ns in later)])
        last = min(cut, at + longest)
        good = [b >= RECOVERED * usual for b in bins]
        over = next((i for i in range(at, last - holds + 1) if all(good[i : i + holds])), None)
        if over is None and last < at + longest:
            continue
        until = last if over is None else over
        meanwhile = bins[at : max(until, at + holds)]
        found.append(Recovery(event, (until - at) * step_s, min(1.0, sum(meanwhile) / len(meanwhile) / usual)))
    return found


def _bin(at_ns: int, begin_ns: int, step_s: float) -> int:
    return math.floor((at_ns - begin_ns) / 1e9 / step_s)


def _overlaps(event: RadioEvent, steered: Sequence[tuple[str, int, int]]) -> bool:
    end_ns = event.at_ns + LONGEST_S * 1e9
    return any(path == event.path and begun < end_ns and event.at_ns < ended for path, begun, ended in steered)
