"""Mohan's mobility classes: static, low and high speed, from what a run was labelled with, from what the probe was doing, or from how
often network events came about it (§4.2), and how well that is known. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from tandem_server.analysis.events import FIVE_MINUTES_S, count_in, per_five_minutes, windows

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


LABELLED = "this campaign’s labelled runs"
PLAYED = "the phases that the bench played"
WINDOWS_S = (FIVE_MINUTES_S, 60.0, 10.0)
"""Of the samples: the first length that gives ``ENOUGH`` of each class; short campaigns have few of five minutes."""
ENOUGH = 3


@dataclass(frozen=True, slots=True)
class Judged:
    """A run. ``per_five_minutes`` None where no modem was polled about it; ``mobility`` None without that or without a fit."""

    per_five_minutes: float | None
    mobility: str | None


@dataclass(frozen=True, slots=True)
class RunClasses:
    """``fit`` None: ``fitted_on`` says why."""

    fit: Fit | None = None
    fitted_on: str = "no runs"
    runs: Mapping[str, Judged] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """What mobility.json holds, and ``report --mobility`` takes."""
        known = {"fitted_on": self.fitted_on} if self.fit is None else as_json(self.fit, self.fitted_on)
        runs = {
            run: {"events_per_five_minutes": j.per_five_minutes, "mobility": j.mobility} for run, j in self.runs.items()
        }
        return {**known, "runs": runs}

    def accuracy_text(self) -> str:
        """One or two sentences for a figure's note."""
        if self.fit is None:
            return f"No classes by the frequency of events: {self.fitted_on}."
        names, bounds = self.fit.classifier
        told = ", ".join(f"{name} from {bound:.1f}" for name, bound in zip(names[1:], bounds, strict=True))
        known = f"Classes by events in five minutes: {told}, below that {names[0]}; fitted on {self.fitted_on}"
        if self.fit.accuracy is None:
            return f"{known}; too few to leave one out."
        return f"{known}: right for {self.fit.accuracy * 100:.0f} % of {self.fit.judged}, each left out of the fitting in turn."


Spans = Sequence[tuple[float, float, str]]


class Times(NamedTuple):
    """Of one kit. ``events_s``: of all modems. ``polled_s``: first and last poll. ``labelled``, ``played``: spans of one class; the
    labelled are taken where there are two classes of them. ``runs``: begin, end and labelled class."""

    events_s: Sequence[float]
    polled_s: tuple[float, float] | None
    labelled: Spans
    played: Spans
    runs: Mapping[str, tuple[float, float, str | None]]


def run_classes(of: Times, given: tuple[Fit | None, str] | None = None) -> RunClasses:
    """``given``: a fit that goes before the campaign's own."""
    times, polled_s, runs = sorted(of.events_s), of.polled_s, of.runs
    found, on = given or fitted([of])
    judged = {}
    for run, (start, end, label) in runs.items():
        span = None if polled_s is None else _about(start, end, polled_s, _strangers(runs, label))
        rate = None if span is None else per_five_minutes(count_in(times, *span), span[1] - span[0])
        judged[run] = Judged(rate, None if rate is None or found is None else found.classifier.of(rate))
    return RunClasses(found, on, judged)


def fitted(kits: Sequence[Times]) -> tuple[Fit | None, str]:
    """Of the windows of all kits, each cut out of its own time; and what it was fitted on, or why there is none."""
    if all(kit.polled_s is None for kit in kits):
        return None, "no polls of the modems"
    for on in (LABELLED, PLAYED):
        for longest in WINDOWS_S:
            samples: dict[str, list[float]] = {}
            for times, polled_s, labelled, played, _ in kits:
                spans = labelled if on == LABELLED else played
                for name, rates in _samples(sorted(times), polled_s, spans, longest).items():
                    samples.setdefault(name, []).extend(rates)
            found = fit(samples)
            if found is not None and (min(map(len, samples.values())) >= ENOUGH or longest == WINDOWS_S[-1]):
                return found, f"{sum(map(len, samples.values()))} windows of about {longest:g} s of {on}"
    return None, "no two classes of labelled runs to fit them on, and no fit was given (report --mobility FILE)"


def _samples(
    times: Sequence[float], polled_s: tuple[float, float] | None, spans: Spans, longest_s: float
) -> dict[str, list[float]]:
    """Events in five minutes, of each window of each class that has any."""
    samples: dict[str, list[float]] = {}
    if polled_s is None:
        return samples
    for start, end, name in spans:
        for a, b in windows(max(start, polled_s[0]), min(end, polled_s[1]), longest_s, longest_s / 5):
            rate = per_five_minutes(count_in(times, a, b), b - a)
            if name in BY_EVENTS and rate is not None:
                samples.setdefault(name, []).append(rate)
    return samples


def _strangers(runs: Mapping[str, tuple[float, float, str | None]], label: str | None) -> list[tuple[float, float]]:
    """Runs of another label than this one's: what came about them is not this one's."""
    return [] if label is None else [(a, b) for a, b, other in runs.values() if other is not None and other != label]


def _about(
    start: float, end: float, polled_s: tuple[float, float], strangers: Sequence[tuple[float, float]]
) -> tuple[float, float] | None:
    """Five minutes about a run, or the run where it is longer, as far as the modems were polled; None of nothing."""
    more = max(0.0, FIVE_MINUTES_S - (end - start)) / 2
    low = max(start - more, polled_s[0], *(b for _, b in strangers if b <= start))
    high = min(end + more, polled_s[1], *(a for a, _ in strangers if a >= end))
    return (low, high) if high > low else None
