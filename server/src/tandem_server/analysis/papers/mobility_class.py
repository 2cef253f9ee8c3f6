"""Mohan's mobility classes: static, low and high speed, from what a run was labelled with, from what the probe was doing, or from how
often network events came (§4.2). Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

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
    values = sorted({value for found in known.values() for value in found})
    places = [values[0], *((a + b) / 2 for a, b in pairwise(values)), values[-1] + 1.0]
    # below[c][p]: how many of class c lie under place p; of the best way to part the classes so far, errors and bounds by place.
    below = [_below(sorted(found), places) for found in known.values()]
    best: list[tuple[int, tuple[float, ...]]] = [(count, ()) for count in [0] * len(places)]
    errors = [len(found) for found in known.values()]
    for n in range(len(below) - 1):
        # The class between the last bound and this one errs with what lies outside of both.
        chosen: list[tuple[int, tuple[float, ...]]] = []
        least: tuple[int, tuple[float, ...]] | None = None
        for p, place in enumerate(places):
            start = best[p][0] + below[n][p] if n else 0
            if least is None or start < least[0]:
                least = (start, best[p][1])
            outside = errors[n] - below[n][p]
            chosen.append((least[0] + outside, (*least[1], place)))
        best = chosen
    _, bounds = min(((cost + below[-1][p], bounds) for p, (cost, bounds) in enumerate(best)), key=lambda one: one[0])
    return bounds


def _below(values: Sequence[float], places: Sequence[float]) -> list[int]:
    counts, at = [], 0
    for place in places:
        while at < len(values) and values[at] < place:
            at += 1
        counts.append(at)
    return counts


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
