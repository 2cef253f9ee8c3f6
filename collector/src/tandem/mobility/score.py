"""How well a detector tells movement, second by second, against the speed that a log holds. Pure.

A second is judged by the state after all its polls and nothing later; a second without a known speed is not counted. ``moving``
is a speed above ``MOVING_KM_H``. For starts and stops, a stop of less than ``SHORT_STOP_S`` is part of the ride, and a gap of more
than ``GAP_S`` ends it; its time is nobody's.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from tandem.mobility.gnettrack import Second
from tandem.mobility.speed_class import BOUNDARY_KM_H

MOVING_KM_H = 3.0
SHORT_STOP_S = 15
GAP_S = 60
"""Longer without a judged second, nobody knows whether it went on: what lies behind it is a log of its own."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One second: ``moving`` by the speed, ``mobile`` by the detector."""

    at_s: int
    speed_km_h: float
    mobile: bool

    @property
    def moving(self) -> bool:
        """By the speed."""
        return self.speed_km_h > MOVING_KM_H


@dataclass(frozen=True, slots=True)
class Movement:
    """A movement that a detector told, and the class that it gave it."""

    begin_s: int
    end_s: int
    speed_class: str | None


@dataclass
class Score:
    """Counts, that those of several logs can be added up; ``figures`` are their shares."""

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
    classed: int = 0
    classed_rightly: int = 0

    def __add__(self, other: Score) -> Score:
        return Score(**{name: getattr(self, name) + getattr(other, name) for name in self.__dataclass_fields__})

    def figures(self) -> dict[str, float | int | None]:
        """None where nothing of the kind was there to be judged."""
        still = self.seconds - self.moving
        return {
            "accuracy": _share(self.right, self.seconds),
            "false_starts": self.false_starts,
            "false_starts_per_hour": round(self.false_starts / self.span_s * 3600, 3) if self.span_s else None,
            "starts": self.starts,
            "missed_starts": self.missed_starts,
            "delay_s_median": statistics.median(self.start_delays_s) if self.start_delays_s else None,
            "stop_delay_s_median": statistics.median(self.stop_delays_s) if self.stop_delays_s else None,
            "still_judged_moving": _share(self.still_judged_moving, still),
            "moving_judged_still": _share(self.moving_judged_still, self.moving),
            "speed_classes": self.classed,
            "speed_class_accuracy": _share(self.classed_rightly, self.classed),
        }


def _share(part: int, of: int) -> float | None:
    return round(part / of, 5) if of else None


def score(judged: Sequence[Judged], movements: Sequence[Movement] = ()) -> Score:
    """Of one log, its seconds in order of time."""
    out = Score(
        seconds=len(judged),
        right=sum(j.moving == j.mobile for j in judged),
        moving=sum(j.moving for j in judged),
        still_judged_moving=sum(j.mobile and not j.moving for j in judged),
        moving_judged_still=sum(j.moving and not j.mobile for j in judged),
    )
    stretches = _stretches(judged)
    out.span_s = sum(judged[end - 1].at_s - judged[first].at_s + 1 for first, end in stretches)
    begins = {first for first, _ in stretches}
    for moving, first, end in (spell for stretch in stretches for spell in _spells(judged, *stretch)):
        spell = judged[first:end]
        turned = next((j.at_s for j in spell if j.mobile == moving), None)
        if moving:
            out.starts += 1
            if turned is None:
                out.missed_starts += 1
            else:
                out.start_delays_s.append(turned - spell[0].at_s)
            continue
        before = judged[first - 1].mobile if first else False
        out.false_starts += sum(
            now and not was for was, now in zip([before, *_mobile(spell)], _mobile(spell), strict=False)
        )
        if first not in begins and before and turned is not None:
            out.stop_delays_s.append(turned - spell[0].at_s)
    for movement in movements:
        speeds = [j.speed_km_h for j in judged if movement.begin_s <= j.at_s < movement.end_s]
        mean_km_h = math.fsum(speeds) / len(speeds) if speeds else 0.0
        if movement.speed_class is not None and mean_km_h > MOVING_KM_H:  # a false movement has no right class
            out.classed += 1
            out.classed_rightly += (movement.speed_class == "high") == (mean_km_h > BOUNDARY_KM_H)
    return out


def _mobile(judged: Sequence[Judged]) -> list[bool]:
    return [j.mobile for j in judged]


def _stretches(judged: Sequence[Judged]) -> list[tuple[int, int]]:
    """(first, end) of what lies between the gaps."""
    cuts = [i for i, j in enumerate(judged) if i == 0 or j.at_s - judged[i - 1].at_s > GAP_S]
    return list(zip(cuts, [*cuts[1:], len(judged)], strict=False))


def _spells(judged: Sequence[Judged], begin: int, behind: int) -> list[tuple[bool, int, int]]:
    """(moving, first, end) of every spell by the speed from ``begin`` to ``behind``; a short stop between two spells of moving belongs
    to them."""
    cuts = [i for i in range(begin, behind) if i == begin or judged[i].moving != judged[i - 1].moving]
    spells = [(judged[a].moving, a, b) for a, b in zip(cuts, [*cuts[1:], behind], strict=True)]
    out: list[tuple[bool, int, int]] = []
    for number, (moving, first, end) in enumerate(spells):
        inner = 0 < number < len(spells) - 1
        short = inner and not moving and judged[end].at_s - judged[first].at_s < SHORT_STOP_S
        if out and (short or out[-1][0] == moving):
            out[-1] = (out[-1][0], out[-1][1], end)
        else:
            out.append((moving, first, end))
    return out


def rounds(logs: Sequence[Sequence[Second]]) -> list[tuple[int, float | None, list[tuple[str, Second]]]]:
    """Logs as modems that were switched on together: (second from the start, speed, polls of that second by modem).

    The speed is None where no log knows it, or where two logs differ on whether it is moving: no one truth holds for both.
    """
    by_second: dict[int, list[tuple[str, Second]]] = {}
    for name, log in zip("abcdefgh", logs, strict=False):
        for second in log:
            by_second.setdefault(second.at_s - log[0].at_s, []).append((name, second))
    out = []
    for at_s in sorted(by_second):
        polls = by_second[at_s]
        speeds = [second.speed_km_h for _, second in polls if second.speed_km_h is not None]
        agreed = speeds and len({speed > MOVING_KM_H for speed in speeds}) == 1
        out.append((at_s, math.fsum(speeds) / len(speeds) if agreed else None, polls))
    return out
