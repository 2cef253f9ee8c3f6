"""When a path is made backup because of its radio, and when it is used again: policies without clock, kernel or disk.

``drop`` acts on falls of the signal, ``handover`` on handovers, both also where service is lost; ``learned`` on all of these, unless the
probe's own history (``recovery``) says that this would cost more than the event; ``off`` on nothing. How long, the history predicts.
One path at least is always in use.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from tandem.mptcp.recovery import EVENTS, Expectation, History, RadioEvent

Policy = Literal["off", "drop", "handover", "learned"]
Action = Literal["backup", "extended", "restore", "declined", "toggled", "confirmed", "unconfirmed", "refused"]
POLICIES: tuple[Policy, ...] = ("off", "drop", "handover", "learned")
NOTED = (*EVENTS, "service_back", "path_down", "path_up")
"""Kinds of events that a policy looks at."""
_ACTS_ON: dict[str, tuple[str, ...]] = {
    "off": (),
    "drop": ("signal_drop", "service_lost"),
    "handover": ("handover", "service_lost"),
    "learned": EVENTS,
}
MOST_KEPT = 0.25
"""Until it knows better, ``learned`` leaves a path alone that is expected to keep a larger share of its goodput: as backup it carries
nothing. With the paper's growth of the round trip that is a drop of 5.2 dB."""
LEAST_S = 1.0
"""... or to recover sooner: the server follows an order after a third of a second, and the path then begins in slow start."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided at ``at_ns`` (CLOCK_MONOTONIC) for ``path``, and the event or other ``cause`` of it. ``predicted_s``: how long the
    path is left out, None where that is open. backup, extended, restore, declined are the policy's; toggled, confirmed, unconfirmed,
    refused say what came of an order (``backup``)."""

    at_ns: int
    path: str
    action: Action
    cause: str
    predicted_s: float | None = None

    def as_json(self) -> dict[str, Any]:
        """For a manifest."""
        return asdict(self)


class Steering:
    """The policy for one run over ``paths``. Feed events and time in order."""

    def __init__(self, policy: Policy, paths: Sequence[str], history: History) -> None:
        self.policy, self._paths, self._history = policy, tuple(paths), history
        self.backup: str | None = None
        """The path that is to be backup now."""
        self._until_ns: int | None = None
        self._silent: set[tuple[str, str]] = set()
        """Paths that carry nothing, each with the reason: ``service`` or ``path``."""

    @property
    def due_ns(self) -> int | None:
        """When ``tick`` has something to do; None: not before another event."""
        return self._until_ns if self.backup is not None else None

    def noted(self, event: RadioEvent) -> list[Decision]:
        """An event of a kind in ``NOTED``; others are passed over."""
        if event.path not in self._paths or len(self._paths) < 2:
            return []
        if event.kind in ("service_back", "path_up"):
            return self._back(event)
        done: list[Decision] = []
        if event.kind in ("service_lost", "path_down"):
            self._silent.add((event.path, event.kind.partition("_")[0]))
            if self.backup not in (None, event.path) and not self._others_serve(self.backup):
                done = self._restore(event.at_ns, f"{event.path}: {event.kind}")
        return done if event.kind not in _ACTS_ON[self.policy] else [*done, *self._act(event)]

    def _act(self, event: RadioEvent) -> list[Decision]:
        expected = self._history.expect(event)
        predicted_s = None if event.kind == "service_lost" else expected.recovery_s
        until_ns = None if predicted_s is None else event.at_ns + round(predicted_s * 1e9)

        def decided(action: Action, cause: str = event.kind) -> Decision:
            return Decision(event.at_ns, event.path, action, cause, predicted_s)

        if self.policy == "learned" and predicted_s is not None and (why := _costs_more(expected)) is not None:
            return [decided("declined", why)]
        if self.backup == event.path:
            if _later(self._until_ns, until_ns) == self._until_ns:
                return []
            self._until_ns = until_ns
            return [decided("extended")]
        if not self._others_serve(event.path):
            return [decided("declined", "no other path has service")]
        if self.backup is None:
            self.backup, self._until_ns = event.path, until_ns
            return [decided("backup")]
        # Another path is backup already. Both at once would leave none: the one that is expected to be bad for longer stays out.
        if _later(self._until_ns, until_ns) == self._until_ns:
            return [decided("declined", f"{self.backup} is expected to be bad for longer")]
        restored = self._restore(event.at_ns, f"{event.path} is expected to be bad for longer")
        self.backup, self._until_ns = event.path, until_ns
        return [*restored, decided("backup")]

    def tick(self, now_ns: int) -> list[Decision]:
        """Time goes on."""
        if self.backup is None or self._until_ns is None or now_ns < self._until_ns:
            return []
        return self._restore(now_ns, "recovered as predicted")

    def end(self, now_ns: int) -> list[Decision]:
        """The run is over."""
        return self._restore(now_ns, "end of the run")

    def refused(self) -> None:
        """The last order could not be given: nothing is backup."""
        self.backup, self._until_ns = None, None

    def _restore(self, now_ns: int, cause: str) -> list[Decision]:
        path, self.backup, self._until_ns = self.backup, None, None
        return [] if path is None else [Decision(now_ns, path, "restore", cause)]

    def _back(self, event: RadioEvent) -> list[Decision]:
        """The path carries again: it recovers from now on, as after any loss of service."""
        self._silent.discard((event.path, event.kind.partition("_")[0]))
        if self.backup != event.path:
            return []
        if not self._others_serve(event.path):
            return self._restore(event.at_ns, "no other path has service")
        if self._until_ns is not None:
            return []
        lost = RadioEvent("service_lost", event.path, event.at_ns, speed_class=event.speed_class)
        predicted_s = self._history.expect(lost).recovery_s
        self._until_ns = event.at_ns + round(predicted_s * 1e9)
        return [Decision(event.at_ns, event.path, "extended", event.kind, predicted_s)]

    def _others_serve(self, path: str | None) -> bool:
        silent = {name for name, _ in self._silent}
        return any(other != path and other not in silent for other in self._paths)


def _costs_more(expected: Expectation) -> str | None:
    """Why the path is left alone; None when it is to be left out."""
    if expected.alone is not None and expected.left_out is not None:
        return "left out, more was lost than left alone" if expected.left_out < expected.alone else None
    if expected.kept > MOST_KEPT:
        return "keeps enough"
    return "recovers soon" if expected.recovery_s < LEAST_S else None


def _later(now: int | None, other: int | None) -> int | None:
    """The later of two ends, None being open."""
    return None if now is None or other is None else max(now, other)
