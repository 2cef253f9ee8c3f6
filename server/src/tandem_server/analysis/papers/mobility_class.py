"""Mohan's mobility classes: static, low and high speed, from what a run was labelled with, from what the probe was doing, or from how
often network events came (§4.2). Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

CLASSES = ("static", "low", "high", "moving")
"""``moving``: the speed is not known."""
BY_EVENTS = CLASSES[:3]
"""That the frequency of events may tell, in order of it."""
FORMAT = "tandem-mobility-fit/1"

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


class Classifier(NamedTuple):
    """``classes`` in order; ``bounds[n]``: from so many events in five minutes on it is ``classes[n + 1]`` at least."""

    classes: tuple[str, ...]
    bounds: tuple[float, ...]

    def of(self, per_five_minutes: float) -> str:
        """The class of a frequency."""
        return self.classes[sum(per_five_minutes >= bound for bound in self.bounds)]


class Fit(NamedTuple):
    """``accuracy``: share of right ones when each sample in turn is left out of the fitting and judged by what the others gave; None of
    a fit that cannot spare one. ``judged``: how many could be spared: not the only one of its class. ``confusion``: how many of each true
    class (rows, in the classifier's order) were taken for which."""

    classifier: Classifier
    accuracy: float | None
    judged: int
    confusion: tuple[tuple[int, ...], ...]


def fit(samples: Mapping[str, Sequence[float]]) -> Fit | None:
    """The frequencies that part labelled samples with fewest errors, each in the middle between two of them; None without two classes.
    ``samples``: events in five minutes by class; other classes than ``BY_EVENTS`` are left out."""
    known = {name: list(samples[name]) for name in BY_EVENTS if samples.get(name)}
    if len(known) < 2:
        return None
    names = tuple(known)
    counts = [[0] * len(names) for _ in names]
    for true, values in enumerate(known.values()):
        judged: dict[float, int] = {}
        for value in values if len(values) > 1 else ():
            if value not in judged:  # of equal samples one is judged as the other
                rest = list(values)
                rest.remove(value)
                parted = Classifier(names, _bounds({**known, names[true]: rest}))
                judged[value] = names.index(parted.of(value))
            counts[true][judged[value]] += 1
    total = sum(map(sum, counts))
    right = sum(counts[n][n] for n in range(len(names)))
    return Fit(
        Classifier(names, _bounds(known)), right / total if total else None, total, tuple(tuple(row) for row in counts)
    )


def _bounds(known: Mapping[str, Sequence[float]]) -> tuple[float, ...]:
    """Between neighbouring classes, in order; the lowest of those with fewest errors altogether."""
    values = np.unique(np.concatenate([np.asarray(found, dtype=np.float64) for found in known.values()]))
    places = np.concatenate([values[:1], (values[:-1] + values[1:]) / 2, values[-1:] + 1.0])
    below = [np.searchsorted(np.sort(np.asarray(found, dtype=np.float64)), places) for found in known.values()]
    # By place of the newest bound: the fewest errors so far, and where the bounds before it are.
    cost = len(next(iter(known.values()))) - below[0]
    chosen = np.arange(len(places))[:, None]
    for found, under in zip(list(known.values())[1:-1], below[1:-1], strict=True):
        start = cost + under  # the class between two bounds errs with what lies outside of them
        least = np.minimum.accumulate(start)
        better = np.append(True, start[1:] < least[:-1])
        at = np.maximum.accumulate(np.where(better, np.arange(len(places)), 0))
        cost = least + len(found) - under
        chosen = np.column_stack([chosen[at], np.arange(len(places))])
    best = int(np.argmin(cost + below[-1]))
    return tuple(float(places[n]) for n in chosen[best])


def as_json(found: Fit, fitted_on: str) -> dict[str, Any]:
    """As a file keeps it; ``fitted_on``: what the samples were."""
    return {
        "format": FORMAT,
        "classes": list(found.classifier.classes),
        "bounds_per_five_minutes": list(found.classifier.bounds),
        "fitted_on": fitted_on,
        "cross_validation": "leave one out",
        "accuracy": found.accuracy,
        "judged": found.judged,
        "confusion": [list(row) for row in found.confusion],
    }


def from_json(told: object) -> tuple[Fit, str]:
    """What ``as_json`` made, and what it was fitted on; ValueError of anything else."""
    try:
        if not isinstance(told, dict) or told["format"] != FORMAT:
            raise ValueError(f"no fit of mobility classes ({FORMAT})")
        classes, bounds = tuple(map(str, told["classes"])), tuple(map(float, told["bounds_per_five_minutes"]))
        accuracy = None if told["accuracy"] is None else float(told["accuracy"])
        confusion = tuple(tuple(map(int, row)) for row in told["confusion"])
        found = Fit(Classifier(classes, bounds), accuracy, int(told["judged"]), confusion)
        fitted_on = str(told["fitted_on"])
    except (KeyError, TypeError) as error:
        raise ValueError(f"no fit of mobility classes ({FORMAT}): {error}") from error
    if len(classes) < 2 or set(classes) - set(BY_EVENTS) or len(bounds) != len(classes) - 1:
        raise ValueError(
            f"no fit of mobility classes ({FORMAT}): as many bounds as classes of {', '.join(BY_EVENTS)}, less one"
        )
    if list(bounds) != sorted(bounds):
        raise ValueError(f"no fit of mobility classes ({FORMAT}): bounds not in order")
    return found, fitted_on
