"""How well a detector tells movement: what a log knows of it, a detector played on its seconds, and the two compared. Pure."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from tandem.mobility.detectors import Detectors
from tandem.mobility.gnettrack import Second
from tandem.mobility.settings import FusedSettings, Settings
from tandem.schema.record import Record, Value

# ---------------------------------------------------------------------------------------------------------------------
# Whether a log's probe moved, second by second, where its fixes say so: the speed column alone may be minutes old.
#
# G-NetTrack Pro takes a fix when the telephone has moved a set distance (100 m in the logs that were looked at), and
# repeats place and speed of the last one in every row until then: a car that stands for ten minutes is logged as 34
# km/h for ten minutes. So a speed counts while its fix is fresh; after that the way to the next fix tells the mean
# speed in between. Where speeds are what is judged, places alone are the truth.


MOVING_KM_H = 3.0
"""Faster is moving."""

FRESH_S = 10
"""A fix speaks for itself so long."""

SURELY_KM_H = 10.0
"""From fix to fix on average; slower, and it stood or crawled for a part of the time that nobody knows."""

STOOD_KM_H = 1.0
"""So slow from fix to fix, it stood for nine tenths of the time even if it never drove faster than ``SURELY_KM_H``."""

ROLLING_S = 30
"""At either end of such a time with a speed above ``MOVING_KM_H`` it may have been rolling still, or again."""

STEP_M = 100.0
"""Places nearer to each other than this are one place: the app would have taken another fix."""

_DEGREE_M = 111_195.0


def moving_by_speed(log: Sequence[Second]) -> list[bool | None]:
    """By the speed column as it stands; None where there is none."""
    return [None if s.speed_km_h is None else s.speed_km_h > MOVING_KM_H for s in log]


def moving_by_fixes(log: Sequence[Second]) -> list[bool | None]:
    """By fixes; None where nobody knows. As ``moving_by_speed`` for rows without a place."""
    out = moving_by_speed(log)
    begins = [i for i in range(len(log)) if i == 0 or _fix(log[i]) != _fix(log[i - 1])]
    for first, end in itertools.pairwise([*begins, len(log)]):
        if log[first].place is None:
            continue
        after = log[end] if end < len(log) else None
        rolls = [s is not None and s.speed_km_h is not None and s.speed_km_h > MOVING_KM_H for s in (log[first], after)]
        for i in range(first, end):
            if log[i].at_s - log[first].at_s < FRESH_S:
                continue
            if after is None or after.place is None:
                out[i] = None if rolls[0] else False
            else:
                out[i] = _on_the_way(log[first], log[i], after, rolls)
    return out


def moving_by_places(log: Sequence[Second]) -> list[bool | None]:
    """By places alone, no speed looked at: the way from each fix to the next. None where that does not tell, and after the last fix;
    a log that stays within ``STEP_M`` for so long that it cannot have been on its way stood throughout."""
    out: list[bool | None] = [None] * len(log)
    begins = [i for i, fresh in enumerate(fixes(log)) if fresh]
    if begins and all(_distance_m(log[begins[0]], log[i]) < STEP_M for i in begins):
        stood = STEP_M / (log[-1].at_s - log[begins[0]].at_s + 1) * 3.6 < STOOD_KM_H
        return [False for _ in log] if stood else out
    for first, end in itertools.pairwise(begins):
        for i in range(first, end):
            out[i] = _on_the_way(log[first], log[i], log[end], [True, True])
    return out


def fixes(log: Sequence[Second]) -> list[bool]:
    """Whether this row tells a fix of its own, and not the last one again."""
    return [s.place is not None and (i == 0 or s.place != log[i - 1].place) for i, s in enumerate(log)]


def _fix(second: Second) -> tuple[float | None, tuple[float, float] | None]:
    return second.speed_km_h, second.place


def _on_the_way(fix: Second, now: Second, after: Second, rolls: Sequence[bool]) -> bool | None:
    """Of a second ``now`` between two fixes with places; ``rolls``: whether it may have been rolling at either end."""
    mean_km_h = _distance_m(fix, after) / (after.at_s - fix.at_s) * 3.6
    if mean_km_h > SURELY_KM_H:
        return True
    if mean_km_h > STOOD_KM_H:
        return None
    near = (rolls[0] and now.at_s - fix.at_s < ROLLING_S) or (rolls[1] and after.at_s - now.at_s <= ROLLING_S)
    return None if near else False


def _distance_m(one: Second, other: Second) -> float:
    return 0.0 if one.place is None or other.place is None else distance_m(one.place, other.place)


def distance_m(a: tuple[float, float], b: tuple[float, float]) -> float:
    """Between two places that are near each other, in metres."""
    north = (b[0] - a[0]) * _DEGREE_M
    east = (b[1] - a[1]) * _DEGREE_M * math.cos(math.radians((a[0] + b[0]) / 2))
    return math.hypot(north, east)


# ---------------------------------------------------------------------------------------------------------------------
# How well a detector tells movement, second by second, against what a log knows of it. Pure.
#
# A second is judged by the state after all its polls and nothing later; a second of which nobody knows is not
# counted. For starts and stops, a stop of less than ``SHORT_STOP_S`` is part of the ride, and a gap of more than
# ``GAP_S`` in the log ends it; its time is nobody's. Seconds of which nobody knows end nothing.


SHORT_STOP_S = 15
GAP_S = 60
"""Longer without a row, nobody knows whether it went on: what lies behind it is a log of its own."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One second: ``moving`` in truth (None: nobody knows), ``mobile`` by the detector."""

    at_s: int
    moving: bool | None
    mobile: bool


@dataclass
class Score:
    """Counts, that those of several logs can be added up; ``figures`` are their shares. ``seconds`` are those judged."""

    seconds: int = 0
    right: int = 0
    moving: int = 0
    still_judged_moving: int = 0
    moving_judged_still: int = 0
    span_s: int = 0
    starts: int = 0
    false_starts: int = 0
    missed_starts: int = 0
    start_delays_s: list[int] = field(default_factory=list)
    stop_delays_s: list[int] = field(default_factory=list)

    def __add__(self, other: Score) -> Score:
        return Score(**{name: getattr(self, name) + getattr(other, name) for name in self.__dataclass_fields__})

    def figures(self) -> dict[str, float | int | None]:
        """None where nothing of the kind was there to be judged."""
        still = self.seconds - self.moving
        return {
            "seconds": self.seconds,
            "accuracy": _share(self.right, self.seconds),
            "false_starts": self.false_starts,
            "false_starts_per_hour": round(self.false_starts / self.span_s * 3600, 3) if self.span_s else None,
            "starts": self.starts,
            "missed_starts": self.missed_starts,
            "delay_s_median": statistics.median(self.start_delays_s) if self.start_delays_s else None,
            "stop_delay_s_median": statistics.median(self.stop_delays_s) if self.stop_delays_s else None,
            "still_judged_moving": _share(self.still_judged_moving, still),
            "moving_judged_still": _share(self.moving_judged_still, self.moving),
        }


def _share(part: int, of: int) -> float | None:
    return round(part / of, 5) if of else None


def score(judged: Sequence[Judged]) -> Score:
    """Of one log, its seconds in order of time."""
    out, before = Score(), False
    for stretch in _stretches(judged):
        out.span_s += stretch[-1].at_s - stretch[0].at_s + 1
        known = [j for j in stretch if j.moving is not None]
        out.seconds += len(known)
        out.right += sum(j.moving == j.mobile for j in known)
        out.moving += sum(j.moving is True for j in known)
        out.still_judged_moving += sum(j.mobile and not j.moving for j in known)
        out.moving_judged_still += sum(j.moving is True and not j.mobile for j in known)
        for number, (moving, spell) in enumerate(_spells(known)):
            _count(out, moving, spell, before, first=number == 0)
            before = spell[-1].mobile
    return out


def _count(out: Score, moving: bool, spell: Sequence[Judged], before: bool, *, first: bool) -> None:
    """``before``: the state that the detector brings; ``first``: of a stretch, so nobody knows since when."""
    turned = next((j.at_s for j in spell if j.mobile == moving), None)
    if not moving:
        states = [before, *(j.mobile for j in spell)]
        out.false_starts += sum(now and not was for was, now in itertools.pairwise(states))
        if not first and before and turned is not None:
            out.stop_delays_s.append(turned - spell[0].at_s)
        return
    out.starts += 1
    if turned is None:
        out.missed_starts += 1
    else:
        out.start_delays_s.append(turned - spell[0].at_s)


def _stretches(judged: Sequence[Judged]) -> list[Sequence[Judged]]:
    """What lies between the gaps."""
    cuts = [i for i, j in enumerate(judged) if i == 0 or j.at_s - judged[i - 1].at_s > GAP_S]
    return [judged[a:b] for a, b in zip(cuts, [*cuts[1:], len(judged)], strict=False)]


def _spells(known: Sequence[Judged]) -> list[tuple[bool, Sequence[Judged]]]:
    """(moving, seconds) of every spell; a short stop between two spells of moving belongs to them."""
    cuts = [i for i, j in enumerate(known) if i == 0 or j.moving != known[i - 1].moving]
    spells = [(known[a].moving is True, a, b) for a, b in zip(cuts, [*cuts[1:], len(known)], strict=False)]
    out: list[tuple[bool, int, int]] = []
    for number, (moving, first, end) in enumerate(spells):
        inner = 0 < number < len(spells) - 1
        short = inner and not moving and known[end].at_s - known[first].at_s < SHORT_STOP_S
        if out and (short or out[-1][0] == moving):
            out[-1] = (out[-1][0], out[-1][1], end)
        else:
            out.append((moving, first, end))
    return [(moving, known[first:end]) for moving, first, end in out]


# ---------------------------------------------------------------------------------------------------------------------
# Plays a log's seconds to a detector and judges it.


@dataclass
class Scores:
    """One detector by both truths: ``by_fixes`` (with a receiver: by places alone), and ``by_speed``, the speed column as it stands;
    ``where_told``: of the first, the seconds in which a receiver's last fix was fresh enough to decide."""

    by_fixes: Score = field(default_factory=Score)
    by_speed: Score = field(default_factory=Score)
    where_told: Score = field(default_factory=Score)

    def __add__(self, other: Scores) -> Scores:
        return Scores(
            self.by_fixes + other.by_fixes, self.by_speed + other.by_speed, self.where_told + other.where_told
        )


@dataclass(frozen=True, slots=True)
class Round:
    """What the modems of one probe tell in one second of their logs, and what is known of its movement."""

    at_s: int
    by_fixes: bool | None
    by_speed: bool | None
    polls: list[tuple[str, Second]]
    speed_km_h: float | None = None
    """What a receiver tells in this second: the speed of a fix of its own. None where there is none, or no receiver."""


def rounds(logs: Sequence[Sequence[Second]], *, receiver: bool = False) -> list[Round]:
    """Logs as modems that were switched on together, by seconds from the start.

    Where two logs differ on whether it is moving no one truth holds for both. ``receiver``: fixes of the first log are reported, each
    once, in the second in which it came; then ``by_fixes`` is by places alone.
    """
    by_second: dict[int, list[tuple[str, Second, bool | None, bool | None]]] = {}
    truth = moving_by_places if receiver else moving_by_fixes
    for name, log in zip("abcdefgh", logs, strict=False):
        for second, moving, speed in zip(log, truth(log), moving_by_speed(log), strict=True):
            by_second.setdefault(second.at_s - log[0].at_s, []).append((name, second, moving, speed))
    fix_at = {s.at_s - logs[0][0].at_s: s.speed_km_h for s, own in zip(logs[0], fixes(logs[0]), strict=True) if own}
    return [
        Round(
            at_s,
            _agreed([moving for *_, moving, _ in judgements]),
            _agreed([speed for *_, speed in judgements]),
            [(name, second) for name, second, *_ in judgements],
            fix_at.get(at_s) if receiver else None,
        )
        for at_s, judgements in sorted(by_second.items())
    ]


def _agreed(judgements: Sequence[bool | None]) -> bool | None:
    known = {moving for moving in judgements if moving is not None}
    return known.pop() if len(known) == 1 else None


def period_s(logs: Sequence[Sequence[Second]]) -> float:
    """The usual time between two polls of a modem, in whole seconds; 1 when there is one poll only."""
    gaps = [later.at_s - sooner.at_s for log in logs for sooner, later in itertools.pairwise(log)]
    return float(max(1, round(statistics.median(gaps)))) if gaps else 1.0


def states(played: Sequence[Round], detectors: Detectors) -> list[bool]:
    """Whether the detector says moving after each round. Each log is one modem; truth is never an input."""
    out = []
    for one in played:
        if one.speed_km_h is not None:
            fields: dict[str, Value] = {"fix": "3d", "fix_age_ms": 0.0, "speed_m_per_s": one.speed_km_h / 3.6}
            detectors.feed(Record.make("position", {}, fields, one.at_s * 10**9))
        for path, second in one.polls:
            detectors.feed(second.record(path, one.at_s))
        out.append(detectors.mobile)
    return out


def scored(logs: Sequence[Sequence[Second]], detector: str, hold_s: float, *, receiver: bool = False) -> Scores:
    """``detector`` on these logs, each a modem of one probe; ``hold_s`` is the published rule's ``stop_after_s``."""
    played = rounds(logs, receiver=receiver)
    mobile = states(played, Detectors(Settings(detector=detector, stop_after_s=hold_s, period_s=period_s(logs))))
    return scores(played, mobile)


def scores(played: Sequence[Round], mobile: Sequence[bool]) -> Scores:
    """States judged by both truths."""
    pairs = list(zip(played, mobile, strict=True))
    fix_at_s: float = -math.inf
    fresh_fixes = []
    for one in played:
        fix_at_s = one.at_s if one.speed_km_h is not None else fix_at_s
        fresh_fixes.append(one.at_s - fix_at_s < FusedSettings().speed_valid_s)
    judged = [Judged(r.at_s, r.by_fixes, said) for r, said in pairs]
    return Scores(
        score(judged),
        score([Judged(r.at_s, r.by_speed, said) for r, said in pairs]),
        score([j for j, fresh in zip(judged, fresh_fixes, strict=True) if fresh]),
    )
