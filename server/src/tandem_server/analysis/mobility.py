"""Mobility state found against mobility played."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tandem_server.analysis.handovers import TOLERANCE_S

Change = tuple[float, bool]
"""Time in s and the state (moving or not) from then on."""


@dataclass(frozen=True, slots=True)
class MobilityScore:
    """``accuracy`` 0 to 1: share of time in the right state; ``false_starts`` found while standing; ``missed_starts``: moving
    spans in which the probe never said so. ``lag_s``: from each true start to its being found."""

    accuracy: float | None
    false_starts: int
    missed_starts: int
    lag_s: list[float]


def state_at(changes: Sequence[Change], t: float, before: bool = False) -> bool:
    """The state at ``t``; ``before`` holds until the first change."""
    state = before
    for at, value in changes:
        if at > t:
            break
        state = value
    return state


def spans(
    changes: Sequence[Change], start_s: float, end_s: float, before: bool = False
) -> list[tuple[float, float, bool]]:
    """The states over [start, end] as (from, to, state), neighbours with the same state joined."""
    out: list[tuple[float, float, bool]] = []
    at, state = start_s, state_at(changes, start_s, before)
    last_at = dict(changes)  # of several changes at one moment the last holds
    for t, value in last_at.items():
        if t <= start_s or t >= end_s or value == state:
            continue
        out.append((at, t, state))
        at, state = t, value
    if end_s > at:
        out.append((at, end_s, state))
    return out


def score_lives(
    true: Sequence[Change],
    found: Sequence[Change],
    lives: Sequence[tuple[float, float]],
    tolerance_s: float = TOLERANCE_S,
) -> MobilityScore:
    """Over a collector's lives, each from its first poll to its last: each begins as one that knows of no movement, and what is between
    them nobody could see. Movement that goes on over an end was missed only if no life of it said so; its lag is the first one's."""
    agreed = seconds = 0.0
    false, lags, saw, told = 0, [], set(), set()
    moving = [(a, b) for a, b, state in spans(true, lives[0][0], lives[-1][1]) if state] if lives else []
    for start_s, end_s in lives:
        own = [(t, state) for t, state in found if start_s <= t <= end_s]
        part = score(true, own, start_s, end_s, tolerance_s)
        agreed, seconds = agreed + (part.accuracy or 0.0) * (end_s - start_s), seconds + end_s - start_s
        false += part.false_starts
        said = [(a, b) for a, b, state in spans(own, start_s, end_s) if state]
        for number, (a, b) in enumerate(moving):
            if a >= end_s or b <= start_s:
                continue
            times = [max(c, a) for c, d in said if min(b, d) > max(a, c)]
            if times and number not in told and a >= start_s:
                lags.append(min(times) - a)
            saw.add(number)
            told |= {number} if times else set()
    return MobilityScore(agreed / seconds if seconds else None, false, len(saw - told), lags)


def score(
    true: Sequence[Change], found: Sequence[Change], start_s: float, end_s: float, tolerance_s: float = TOLERANCE_S
) -> MobilityScore:
    """Compare over [start, end]: from the first poll to the last. Both lists in order of time; standing before the first."""
    true_spans, found_spans = spans(true, start_s, end_s), spans(found, start_s, end_s)
    if not true_spans:
        return MobilityScore(None, 0, 0, [])
    agree = sum(
        max(0.0, min(b, d) - max(a, c)) for a, b, state in true_spans for c, d, other in found_spans if state == other
    )
    moving = [(a, b) for a, b, state in true_spans if state]
    starts = [a for a, _, state in found_spans if state]
    false = sum(not any(a - tolerance_s <= t <= b + tolerance_s for a, b in moving) for t in starts)
    missed, lags = 0, []
    for a, b in moving:
        said = [max(c, a) for c, d, state in found_spans if state and min(b, d) > max(a, c)]
        if said:
            lags.append(min(said) - a)
        else:
            missed += 1
    return MobilityScore(agree / (end_s - start_s), false, missed, lags)
