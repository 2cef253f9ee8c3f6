"""How well a detector tells movement, second by second, against what a log knows of it (``truth``). Pure.

A second is judged by the state after all its polls and nothing later; a second of which nobody knows is not counted. For starts and
stops, a stop of less than ``SHORT_STOP_S`` is part of the ride, and a gap of more than ``GAP_S`` in the log ends it; its time is
nobody's. Seconds of which nobody knows end nothing.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

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
