"""Which mobility class each run was of, by how often network events came about it (Mohan §4.2), and how well that is known. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tandem_server.analysis.papers.mobility_class import BY_EVENTS, Fit, as_json, fit
from tandem_server.analysis.papers.network_events import FIVE_MINUTES_S, per_five_minutes, windows

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
        rate = None if span is None else per_five_minutes(_count(times, *span), span[1] - span[0])
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
            rate = per_five_minutes(_count(times, a, b), b - a)
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


def _count(times: Sequence[float], start: float, end: float) -> int:
    return bisect_left(times, end) - bisect_left(times, start)
