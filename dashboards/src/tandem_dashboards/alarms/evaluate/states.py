"""What becomes of a rule's label sets from evaluation to evaluation: pending, alerting, resolved.

After ``pkg/services/ngalert/state`` of Grafana 11 (``manager.go``, ``state.go``). A label set that alerts is Pending until it has done so
for the rule's ``for``, then Alerting. No data and errors are what the rule says they are. A label set that is missing while others are
there is dropped after ``missing`` evaluations (Grafana 11: 2) and thereby *resolved*: the trap for silent series. When there is no data
or an error at all, every label set that there is gets the rule's state for it, so that none is missing then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from tandem_dashboards.alarms.evaluate.evaluation import Outcome, Result
from tandem_dashboards.alarms.evaluate.values import Labels

Name = Literal["Normal", "Pending", "Alerting", "Recovering", "NoData", "Error"]
NoDataState = Literal["NoData", "Alerting", "OK", "KeepLast"]
ErrorState = Literal["Error", "Alerting", "OK", "KeepLast"]


@dataclass
class State:
    """Of one label set. ``since_ms``: in this state; ``reason``: why, where it is not the figures; ``values``: of the newest result."""

    labels: Labels
    name: Name
    since_ms: int
    evaluated_ms: int
    reason: str = ""
    values: Mapping[str, float | None] = field(default_factory=dict)
    error: str = ""

    def turn(self, name: Name, at_ms: int) -> None:
        """Into that state now; nothing when it is in it."""
        if self.name != name:
            self.name, self.since_ms = name, at_ms


@dataclass(frozen=True)
class Change:
    """A state that another followed."""

    labels: Labels
    before: Name
    after: Name
    at_ms: int
    reason: str

    @property
    def resolved(self) -> bool:
        """People are told that it is over."""
        return self.before in ("Alerting", "Recovering") and self.after == "Normal"


@dataclass
class Watch:
    """A rule's states. Times in ms; ``interval_s`` is that of the rule's group; ``keep_firing_s`` needs Grafana 12.1.2 in files."""

    for_s: int
    interval_s: int = 60
    no_data: NoDataState = "NoData"
    on_error: ErrorState = "Error"
    keep_firing_s: int = 0
    missing: int = 2
    states: dict[Labels, State] = field(default_factory=dict)

    @property
    def firing(self) -> frozenset[Labels]:
        """Label sets that people are told of: alerting, or not long enough recovered."""
        return frozenset(labels for labels, s in self.states.items() if s.name in ("Alerting", "Recovering"))

    def told(self, results: Sequence[Result], at_ms: int) -> list[Change]:
        """One evaluation; what changed by it."""
        before = {labels: state.name for labels, state in self.states.items()}
        if self._for_all(results):
            for state in self.states.values():
                self._take(state, Result(state.labels, results[0].outcome, {}, results[0].error), at_ms)
        else:
            for result in results:
                new = State(result.labels, "Normal", at_ms, at_ms)
                self._take(self.states.setdefault(result.labels, new), result, at_ms)
        gone = self._missing(at_ms)
        after = [*self.states.values(), *gone]
        return [
            Change(s.labels, before.get(s.labels, "Normal"), s.name, at_ms, s.reason)
            for s in after
            if before.get(s.labels, "Normal") != s.name
        ]

    def _for_all(self, results: Sequence[Result]) -> bool:
        """No data, or errors, and nothing else: what is there is kept, if the rule has a word for it."""
        outcomes: set[Outcome] = {result.outcome for result in results}
        if outcomes == {"NoData"}:
            return bool(self.states) and self.no_data != "NoData"
        return outcomes == {"Error"} and bool(self.states) and self.on_error != "Error"

    def _take(self, state: State, result: Result, at_ms: int) -> None:
        state.evaluated_ms, state.values, state.reason = at_ms, result.values or state.values, ""
        state.error = result.error
        if result.outcome == "Normal":
            self._recover(state, at_ms)
        elif result.outcome == "Alerting":
            self._alert(state, at_ms)
        else:
            self._told_nothing(state, result.outcome, at_ms)

    def _told_nothing(self, state: State, outcome: Outcome, at_ms: int) -> None:
        word = self.no_data if outcome == "NoData" else self.on_error
        if word == "Alerting":
            self._alert(state, at_ms)
        elif word == "OK":
            state.turn("Normal", at_ms)
        elif word == "NoData":
            state.turn("NoData", at_ms)
        elif word == "Error":
            state.turn("Error", at_ms)
        elif state.name in ("Alerting", "Pending", "Recovering"):
            if state.name != "Pending" or at_ms - state.since_ms >= self.for_s * 1000:
                state.turn("Alerting", at_ms)
        else:
            state.turn("Normal", at_ms)
        if state.name != outcome:
            state.reason = f"{outcome}, KeepLast" if word == "KeepLast" else outcome

    def _alert(self, state: State, at_ms: int) -> None:
        if state.name == "Pending":
            if at_ms - state.since_ms >= self.for_s * 1000:
                state.turn("Alerting", at_ms)
        elif state.name != "Alerting":
            again = state.name == "Recovering"
            state.turn("Alerting" if again or self.for_s <= 0 else "Pending", at_ms)

    def _recover(self, state: State, at_ms: int) -> None:
        if state.name == "Alerting" and self.keep_firing_s > 0:
            state.turn("Recovering", at_ms)
        elif state.name != "Recovering" or at_ms - state.since_ms >= self.keep_firing_s * 1000:
            state.turn("Normal", at_ms)

    def _missing(self, at_ms: int) -> list[State]:
        gone: list[State] = []
        for labels, state in list(self.states.items()):
            evaluations = 1 if state.name in ("Error", "NoData") else self.missing
            if state.evaluated_ms != at_ms and at_ms - state.evaluated_ms >= evaluations * self.interval_s * 1000:
                state.turn("Normal", at_ms)
                state.reason = "MissingSeries"
                gone.append(self.states.pop(labels))
        return gone
