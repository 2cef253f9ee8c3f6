"""Mohan's mobility classes: static, low and high speed, from what a run was labelled with, from what the probe was doing, or from how
often network events came (§4.2). Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

CLASSES = ("static", "low", "high", "moving")
"""``moving``: the speed is not known."""

_OF_LABEL = {"stationary": "static", "static": "static", "walking": "low", "driving": "high"}
_OF_ACTIVITY = {
    "still": "static",
    "walk": "low",
    "tram": "high",
    "bus": "high",
    "train": "high",
    "drive": "high",
    "moving": "moving",
}


def class_of(label: str, activity: str | None) -> str | None:
    """A label given by hand goes before what the probe was doing; None when neither says it."""
    return _OF_LABEL.get(label.lower()) or _OF_ACTIVITY.get(activity or "")


class Threshold(NamedTuple):
    """From ``per_five_minutes`` events on a run is of high speed. ``accuracy``: share of right ones when each labelled run in turn is left
    out of the fitting and judged by what the others gave; None of a fit that cannot spare one. ``judged``: how many could be spared: not
    the only one of its class."""

    per_five_minutes: float
    accuracy: float | None
    judged: int


def fit(low: Sequence[float], high: Sequence[float]) -> Threshold | None:
    """The frequency that parts labelled runs with fewest errors, in the middle between two of them; None without runs of both classes."""
    at = _best(low, high)
    if at is None:
        return None
    right = known = 0
    for mine, others, is_high in ((low, high, False), (high, low, True)):
        for n, frequency in enumerate(mine):
            rest = [*mine[:n], *mine[n + 1 :]]
            parted = _best(others, rest) if is_high else _best(rest, others)
            if parted is not None:
                known += 1
                right += (frequency >= parted) is is_high
    return Threshold(at, right / known if known else None, known)


def _best(low: Sequence[float], high: Sequence[float]) -> float | None:
    if not low or not high:
        return None
    values = sorted({*low, *high})
    places = [values[0], *((a + b) / 2 for a, b in pairwise(values))]
    return min(places, key=lambda at: sum(v >= at for v in low) + sum(v < at for v in high))
