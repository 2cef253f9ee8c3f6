"""Plays a log's seconds to a detector and judges it."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from tandem.mobility.detectors import Detectors
from tandem.mobility.fused_settings import FusedSettings
from tandem.mobility.gnettrack import Second
from tandem.mobility.score import Judged, Score, score
from tandem.mobility.settings import Settings
from tandem.mobility.truth import fixes, moving_by_fixes, moving_by_places, moving_by_speed
from tandem.schema.record import Record, Value


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

    Where two logs differ on whether it is moving no one truth holds for both. ``receiver``: fixes of the first log are told, each
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
