"""What a radio event does to a path and to the whole transfer: learned from this probe's own runs. Pure.

Of a path left alone: how long it took to recover, what share of its goodput it kept meanwhile. Of the whole transfer: what share of its
goodput it kept in the ten seconds after the event, once where the path was left alone, once where it was left out; which of the
two is larger says whether steering costs more than the event. Both come from the runs of every policy: a probe that always steers, or
never does, learns one side only. Before anything was seen, Mohan et al. 2019 says what to expect: the round trip's peak grows 1.7-fold
for each 2 dB of a drop (a window that stays as it is then brings as many times less), and is over after 7 s at walking pace, 12 s when
driving.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
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
AFTER_S = 10.0
"""In so long after the event the whole transfer is compared, whatever was done."""
ACTED_S = 2.0
"""A path was left out because of an event when it became backup within so long after it."""
ENOUGH = 3
"""Events on each side before they are compared."""
_MOST_WHOLE = 2.0
"""A transfer that had just begun, or had hit a bad moment before the event, says no more than this."""
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
    """``recovery_s`` above 0; ``kept``: the share of its goodput that the path has until then, 0 to 1; ``alone``, ``left_out``: the share
    of its goodput that the whole transfer keeps with the path left alone and left out, 0 to 2, None before ``ENOUGH`` was seen."""

    recovery_s: float
    kept: float
    alone: float | None
    left_out: float | None


@dataclass(frozen=True, slots=True)
class Recovery:
    """What one event did: seconds until it was over and share of the path's goodput kept until then, None where that could not be seen;
    ``whole``: share of the whole transfer's goodput kept, None likewise; ``steered``: the path was left out because of it."""

    event: RadioEvent
    recovery_s: float | None
    kept: float | None
    whole: float | None
    steered: bool


@dataclass(slots=True)
class _Sums:
    """``seen`` recoveries: sums of the logarithms of their seconds and of the shares kept; events left alone and left out, with the sums
    of the shares that the whole transfer kept."""

    seen: int = 0
    log_s: float = 0.0
    kept: float = 0.0
    alone: int = 0
    alone_kept: float = 0.0
    left_out: int = 0
    left_out_kept: float = 0.0

    @property
    def sane(self) -> bool:
        """Whether these can be sums."""
        whole = (self.alone_kept, _MOST_WHOLE * self.alone), (self.left_out_kept, _MOST_WHOLE * self.left_out)
        shares = ((self.kept, self.seen), *whole)
        return math.isfinite(self.log_s) and all(0 <= total <= count for total, count in shares)


class History:
    """Sums by class of event: kind, steps of 3 dB, speed class."""

    def __init__(self) -> None:
        self._classes: dict[str, _Sums] = {}

    def expect(self, event: RadioEvent) -> Expectation:
        """What an event will do: the paper's figures, moved by what was seen of its class."""
        sums = self._classes.get(key_of(event), _Sums())
        usual_s, usual_kept = _usual(event)
        whole = _WEIGHT + sums.seen
        return Expectation(
            math.exp((_WEIGHT * math.log(usual_s) + sums.log_s) / whole),
            (_WEIGHT * usual_kept + sums.kept) / whole,
            sums.alone_kept / sums.alone if sums.alone >= ENOUGH else None,
            sums.left_out_kept / sums.left_out if sums.left_out >= ENOUGH else None,
        )

    def add(self, recoveries: Iterable[Recovery]) -> None:
        for one in recoveries:
            sums = self._classes.setdefault(key_of(one.event), _Sums())
            if one.recovery_s is not None and one.kept is not None:
                sums.seen += 1
                sums.log_s += math.log(max(one.recovery_s, _LEAST_S))
                sums.kept += one.kept
            if one.whole is not None and one.steered:
                sums.left_out += 1
                sums.left_out_kept += one.whole
            elif one.whole is not None:
                sums.alone += 1
                sums.alone_kept += one.whole

    def as_json(self) -> dict[str, Any]:
        return {"format": FORMAT, "classes": {key: asdict(sums) for key, sums in sorted(self._classes.items())}}

    def rows(self) -> list[dict[str, Any]]:
        """For people, by class: what is expected now, and from how many events."""
        found = []
        for key, sums in sorted(self._classes.items()):
            expected = self.expect(_event_of(key))
            counts = {"seen": sums.seen, "seen_alone": sums.alone, "seen_left_out": sums.left_out}
            found.append({"class": key, **asdict(expected), **counts})
        return found

    @classmethod
    def from_json(cls, content: object) -> History:
        """The reverse of ``as_json``; HistoryError."""
        if not isinstance(content, Mapping) or content.get("format") != FORMAT:
            raise HistoryError(f"no history of steering ({FORMAT})")
        made, rows = cls(), content.get("classes")
        for key, row in rows.items() if isinstance(rows, Mapping) else ():
            try:
                sums = _Sums()
                for one in fields(_Sums):
                    setattr(sums, one.name, (int if one.type == "int" else float)(row[one.name]))
                _event_of(str(key))
            except (TypeError, KeyError, ValueError, OverflowError):
                raise HistoryError(f"classes.{key}: no sums") from None
            if not sums.sane:
                raise HistoryError(f"classes.{key}: sums out of range")
            made._classes[str(key)] = sums
        return made


def _usual(event: RadioEvent) -> tuple[float, float]:
    """Seconds and share kept, by the paper."""
    kept = 0.0 if event.kind == "service_lost" else _PEAK_PER_DB ** -_drop_db(event)
    return (_FAST_S if event.speed_class == "high" else _SLOW_S), kept


def key_of(event: RadioEvent) -> str:
    """The class of an event, as in ``signal_drop/6 dB/high``."""
    depth = "" if event.kind == "service_lost" else f"/{math.floor(_drop_db(event) / _DB_STEP) * _DB_STEP:g} dB"
    return f"{event.kind}{depth}/{event.speed_class or 'unknown'}"


def _event_of(key: str) -> RadioEvent:
    """An event of the class, of its least drop. ValueError for what is no class."""
    kind, *depth, speed = key.split("/")
    change_db = -float(depth[0].removesuffix(" dB")) if depth else None
    if kind not in EVENTS or len(depth) > 1:
        raise ValueError(key)
    return RadioEvent(kind, "", 0, change_db, None if speed == "unknown" else speed)


def _drop_db(event: RadioEvent) -> float:
    return _USUAL_DB if event.change_db is None else min(_MOST_DB, max(0.0, -event.change_db))


def recoveries(
    events: Sequence[RadioEvent],
    received: Mapping[str, Sequence[float]],
    begin_ns: int,
    step_s: float,
    steered: Sequence[tuple[str, int, int]] = (),
) -> list[Recovery]:
    """What the events of a run did, by the bytes that each path received in bins of ``step_s`` from ``begin_ns`` on; ``steered``: path,
    from, to. Left out is what says nothing: an event without traffic before it, one that the run's end cut off, one beside another order.
    How long a path needed is seen only where it was left alone until it recovered and no other event came before that."""
    found = []
    length = max(map(len, received.values()), default=0)
    every = [sum(bins[i] for bins in received.values() if i < len(bins)) for i in range(length)]
    before, after = round(BEFORE_S / step_s), round(AFTER_S / step_s)
    for event in events:
        bins = received.get(event.path, ())
        at = math.floor((event.at_ns - begin_ns) / 1e9 / step_s)
        since = max(0, at - before)
        if event.kind not in EVENTS or at <= since or sum(bins[since:at]) <= 0:
            continue
        usual, usual_whole = (sum(one[since:at]) / (at - since) for one in (bins, every))
        orders = sorted((begun, path) for path, begun, ended in steered if event.at_ns < ended)
        orders = [(begun, path) for begun, path in orders if begun < event.at_ns + AFTER_S * 1e9]
        whole = None
        if at + after <= length:
            whole = min(_MOST_WHOLE, sum(every[at : at + after]) / after / usual_whole)
        if not orders:
            later = [ns for path, ns, _ in steered if path == event.path and ns > event.at_ns]
            seconds, kept = _recovered(event, events, later, bins, at, usual, begin_ns, step_s)
            one = Recovery(event, seconds, kept, whole, steered=False)
        elif orders[0][1] == event.path and 0 <= orders[0][0] - event.at_ns <= ACTED_S * 1e9:
            one = Recovery(event, None, None, whole, steered=True)
        else:
            continue
        if one.recovery_s is not None or one.whole is not None:
            found.append(one)
    return found


def _recovered(
    event: RadioEvent,
    events: Sequence[RadioEvent],
    orders_ns: Sequence[int],
    bins: Sequence[float],
    at: int,
    usual: float,
    begin_ns: int,
    step_s: float,
) -> tuple[float | None, float | None]:
    """Seconds, and the share kept until then; None where the path's next event, an order for it or the end came before."""
    holds, longest = (round(seconds / step_s) for seconds in (HOLDS_S, LONGEST_S))
    later = [e.at_ns for e in events if e.path == event.path and e.kind in EVENTS and e.at_ns > event.at_ns]
    cut = min([len(bins), *(math.floor((ns - begin_ns) / 1e9 / step_s) for ns in (*later, *orders_ns))])
    last = min(cut, at + longest)
    good = [b >= RECOVERED * usual for b in bins]
    over = next((i for i in range(at, last - holds + 1) if all(good[i : i + holds])), None)
    if over is None and last < at + longest:
        return None, None
    until = last if over is None else over
    meanwhile = bins[at : max(until, at + holds)]
    return (until - at) * step_s, min(1.0, sum(meanwhile) / len(meanwhile) / usual)
