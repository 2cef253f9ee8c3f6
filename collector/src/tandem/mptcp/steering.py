"""When a path is made backup because of its radio, and when it is used again: policies without clock, kernel or disk.

``drop`` acts on falls of the signal, ``handover`` on handovers, both also where service is lost; ``learned`` on all of these where the
probe's own history (``recovery``) says that the path would keep little of its goodput anyway; ``off`` on nothing. How long, the history
predicts. One path at least is always in use.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from tandem.mptcp.recovery import EVENTS, History, RadioEvent

Policy = Literal["off", "drop", "handover", "learned"]
Action = Literal["backup", "extended", "restore", "declined", "toggled", "confirmed", "unconfirmed", "refused"]
POLICIES: tuple[Policy, ...] = ("off", "drop", "handover", "learned")
_ACTS_ON: dict[str, tuple[str, ...]] = {
    "off": (),
    "drop": ("signal_drop", "service_lost"),
    "handover": ("handover", "service_lost"),
    "learned": EVENTS,
}
MOST_KEPT = 0.25
"""``learned`` leaves a path alone that is expected to keep a larger share of its goodput: as backup it would carry nothing."""
LEAST_S = 1.0
"""... or to recover sooner: the server follows an order after a third of a second, and the path then begins in slow start."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided at ``at_ns`` (CLOCK_MONOTONIC) for ``path``, and the event or other ``cause`` of it. ``predicted_s``: how long the
    path is left out, None where that is open. backup, extended, restore, declined are the policy's; toggled, confirmed, unconfirmed, refused
    say what came of an order (``backup``)."""

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
        self._silent: set[str] = set()
        """Paths without service."""

    @property
    def due_ns(self) -> int | None:
        """When ``tick`` has something to do; None: not before another event."""
        return self._until_ns if self.backup is not None else None

    def noted(self, event: RadioEvent) -> list[Decision]:
        """An event of the radio."""
        if event.path not in self._paths or len(self._paths) < 2:
            return []
        if event.kind == "service_back":
            return self._back(event)
        if event.kind == "service_lost":
            self._silent.add(event.path)
        if event.kind not in _ACTS_ON[self.policy]:
            return []
        expected = self._history.expect(event)
        predicted_s = None if event.kind == "service_lost" else expected.recovery_s
        until_ns = None if predicted_s is None else event.at_ns + round(predicted_s * 1e9)

        def decided(action: Action, cause: str = event.kind) -> Decision:
            return Decision(event.at_ns, event.path, action, cause, predicted_s)

        if (
            self.policy == "learned"
            and predicted_s is not None
            and (expected.kept > MOST_KEPT or predicted_s < LEAST_S)
        ):
            return [decided("declined", "keeps enough" if expected.kept > MOST_KEPT else "recovers soon")]
        if self.backup == event.path:
            if _later(self._until_ns, until_ns) == self._until_ns:
                return []
            self._until_ns = until_ns
            return [decided("extended")]
        if self.backup is None:
            if not self._others_serve(event.path):
                return [decided("declined", "no other path has service")]
            self.backup, self._until_ns = event.path, until_ns
            return [decided("backup")]
        # Another path is backup already. Both at once would leave none: the one that is expected to be bad for longer stays out.
        if _later(self._until_ns, until_ns) == self._until_ns:
            return [decided("declined", f"{self.backup} is expected to be bad for longer")]
        restored = Decision(event.at_ns, self.backup, "restore", f"{event.path} is expected to be bad for longer")
        self.backup, self._until_ns = event.path, until_ns
        return [restored, decided("backup")]

    def tick(self, now_ns: int) -> list[Decision]:
        """Time goes on."""
        if self.backup is None or self._until_ns is None or now_ns < self._until_ns:
            return []
        return self._restore(now_ns, "recovered as predicted")

    def end(self, now_ns: int) -> list[Decision]:
        """The run is over."""
        return [] if self.backup is None else self._restore(now_ns, "end of the run")

    def refused(self) -> None:
        """The last order could not be given: nothing is backup."""
        self.backup, self._until_ns = None, None

    def _restore(self, now_ns: int, cause: str) -> list[Decision]:
        path, self.backup, self._until_ns = self.backup, None, None
        return [] if path is None else [Decision(now_ns, path, "restore", cause)]

    def _back(self, event: RadioEvent) -> list[Decision]:
        """Service is back: from now on the path recovers as after any loss of it."""
        self._silent.discard(event.path)
        if self.backup != event.path or self._until_ns is not None:
            return []
        lost = RadioEvent("service_lost", event.path, event.at_ns, speed_class=event.speed_class)
        predicted_s = self._history.expect(lost).recovery_s
        self._until_ns = event.at_ns + round(predicted_s * 1e9)
        return [Decision(event.at_ns, event.path, "extended", "service_back", predicted_s)]

    def _others_serve(self, path: str) -> bool:
        return any(other != path and other not in self._silent for other in self._paths)


def _later(now: int | None, other: int | None) -> int | None:
    """The later of two ends, None being open."""
    return None if now is None or other is None else max(now, other)
