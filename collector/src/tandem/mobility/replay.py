"""Plays a log's seconds to a detector and judges it."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from tandem.mobility.detectors import Detectors
from tandem.mobility.gnettrack import Second
from tandem.mobility.score import Judged, Score, score
from tandem.mobility.settings import Settings
from tandem.mobility.truth import moving_by_fixes, moving_by_speed


@dataclass
class Scores:
    """One detector by both truths: ``by_fixes``, and ``by_speed``, the speed column as it stands."""

    by_fixes: Score = field(default_factory=Score)
    by_speed: Score = field(default_factory=Score)

    def __add__(self, other: Scores) -> Scores:
        return Scores(self.by_fixes + other.by_fixes, self.by_speed + other.by_speed)


@dataclass(frozen=True, slots=True)
class Round:
    """What the modems of one probe tell in one second of their logs, and what is known of its movement."""

    at_s: int
    by_fixes: bool | None
    by_speed: bool | None
    polls: list[tuple[str, Second]]


def rounds(logs: Sequence[Sequence[Second]]) -> list[Round]:
    """Logs as modems that were switched on together, by seconds from the start.

    Where two logs differ on whether it is moving no one truth holds for both.
    """
    by_second: dict[int, list[tuple[str, Second, bool | None, bool | None]]] = {}
    for name, log in zip("abcdefgh", logs, strict=False):
        for second, fixes, speed in zip(log, moving_by_fixes(log), moving_by_speed(log), strict=True):
            by_second.setdefault(second.at_s - log[0].at_s, []).append((name, second, fixes, speed))
    return [
        Round(
            at_s,
            _agreed([fixes for *_, fixes, _ in told]),
            _agreed([speed for *_, speed in told]),
            [(name, second) for name, second, *_ in told],
        )
        for at_s, told in sorted(by_second.items())
    ]


def _agreed(told: Sequence[bool | None]) -> bool | None:
    known = {moving for moving in told if moving is not None}
    return known.pop() if len(known) == 1 else None


def period_s(logs: Sequence[Sequence[Second]]) -> float:
    """The usual time between two polls of a modem, in whole seconds; 1 when there is one poll only."""
    gaps = [later.at_s - sooner.at_s for log in logs for sooner, later in itertools.pairwise(log)]
    return float(max(1, round(statistics.median(gaps)))) if gaps else 1.0


def states(played: Sequence[Round], detectors: Detectors) -> list[bool]:
    """Whether the detector says moving after each round. Each log is one modem; truth is never an input."""
    out = []
    for one in played:
        for path, second in one.polls:
            detectors.feed(second.record(path, one.at_s))
        out.append(detectors.mobile)
    return out


def scored(logs: Sequence[Sequence[Second]], detector: str, hold_s: float) -> Scores:
    """``detector`` on these logs, each a modem of one probe; ``hold_s`` is the published rule's ``stop_after_s``."""
    played = rounds(logs)
    mobile = states(played, Detectors(Settings(detector=detector, stop_after_s=hold_s, period_s=period_s(logs))))
    return scores(played, mobile)


def scores(played: Sequence[Round], mobile: Sequence[bool]) -> Scores:
    """States judged by both truths."""
    pairs = list(zip(played, mobile, strict=True))
    return Scores(
        score([Judged(r.at_s, r.by_fixes, said) for r, said in pairs]),
        score([Judged(r.at_s, r.by_speed, said) for r, said in pairs]),
    )
