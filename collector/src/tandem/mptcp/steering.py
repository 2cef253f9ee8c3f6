"""When a path is made backup because of its radio, and when it is used again: policies without clock, kernel or disk.

``drop`` acts on falls of the signal, ``handover`` on handovers, both also where service is lost; ``learned`` on all of these, unless the
probe's own history (``recovery``) says that this would cost more than the event; ``off`` on nothing. How long, the history predicts.
One path at least is always in use. ``simulate`` says what each would have ordered in a recorded run.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
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
        if self.backup is None or self._until_ns is None or now_ns < self._until_ns:
            return []
        return self._restore(now_ns, "recovered as predicted")

    def end(self, now_ns: int) -> list[Decision]:
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


PEAK = 1.7
"""A round trip is a peak from so many times the path's median on: what 2 dB make of it."""


class RecordingError(ValueError):
    """A manifest that holds no recording for this; one line."""


@dataclass(frozen=True, slots=True)
class Recording:
    """A run's ``steering`` in its manifest: see ``app.steering``. ``received``, ``rtt_ms``: by path in steps of ``step_s`` from
    ``begin_ns`` on; ``policy``: what steered the run itself."""

    policy: str
    begin_ns: int
    step_s: float
    events: tuple[RadioEvent, ...]
    received: Mapping[str, Sequence[int]]
    rtt_ms: Mapping[str, Sequence[float | None]]

    @property
    def seconds(self) -> float:
        return max(map(len, self.received.values()), default=0) * self.step_s


@dataclass(slots=True)
class PathEstimate:
    """Seconds as backup. ``foregone_bytes``: what the path received in that time, 0 or more; the most that could be lost, since the
    others may carry it. ``peak_s``: seconds with a round trip of ``PEAK`` times the median or more; ``avoided_peak_s``: those of them
    in which the path would have been backup."""

    backup_s: float = 0.0
    foregone_bytes: float = 0.0
    peak_s: float = 0.0
    avoided_peak_s: float = 0.0


@dataclass(slots=True)
class Simulated:
    """One policy on one run, or, ``add``-ed, on several."""

    policy: str
    seconds: float = 0.0
    received_bytes: int = 0
    decisions: list[Decision] = field(default_factory=list)
    paths: dict[str, PathEstimate] = field(default_factory=dict)

    def add(self, other: Simulated) -> None:
        self.seconds += other.seconds
        self.received_bytes += other.received_bytes
        self.decisions += other.decisions
        for path, theirs in other.paths.items():
            mine = self.paths.setdefault(path, PathEstimate())
            mine.backup_s += theirs.backup_s
            mine.foregone_bytes += theirs.foregone_bytes
            mine.peak_s += theirs.peak_s
            mine.avoided_peak_s += theirs.avoided_peak_s

    def as_json(self) -> dict[str, Any]:
        """For ``--json``: estimates are called so."""
        paths = {
            name: {
                "backup_s": round(one.backup_s, 3),
                "backup_share": round(one.backup_s / self.seconds, 5) if self.seconds else None,
                "estimated_foregone_bytes": round(one.foregone_bytes),
                "rtt_peak_s": round(one.peak_s, 3),
                "estimated_avoided_rtt_peak_s": round(one.avoided_peak_s, 3),
            }
            for name, one in sorted(self.paths.items())
        }
        counts = {a: sum(d.action == a for d in self.decisions) for a in ("backup", "extended", "declined")}
        return {
            "policy": self.policy,
            "seconds": self.seconds,
            "received_bytes": self.received_bytes,
            **counts,
            "paths": paths,
        }


def recording(steering: object) -> Recording:
    """From the manifest's ``steering``; RecordingError."""
    if not isinstance(steering, Mapping):
        raise RecordingError("no steering in it: a TCP run, a simultaneous pair, or recorded by an earlier collector")
    try:
        events = tuple(RadioEvent(**{k: row[k] for k in RadioEvent.__dataclass_fields__}) for row in steering["events"])
        return Recording(
            str(steering["policy"]),
            int(steering["begin_ns"]),
            float(steering["step_s"]),
            tuple(sorted(events, key=lambda event: event.at_ns)),
            {str(path): list(map(int, bins)) for path, bins in steering["received_bytes"].items()},
            {
                str(path): [None if rtt is None else float(rtt) for rtt in bins]
                for path, bins in steering["rtt_ms"].items()
            },
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RecordingError(f"its steering is not as a collector writes it: {error!r}") from None


def simulate(run: Recording, policy: Policy, history: History) -> Simulated:
    """What ``policy``, which knows ``history``, would have done: fed with the run's events as it is.

    It is an estimate. The radio goes on as it did, and so do both paths: no recording knows what the other path would have carried in
    addition, how the transport would have grown into it, and which orders would have been lost. Nor does it know what a path would
    have carried while the run itself had left it out."""
    steering = Steering(policy, tuple(run.received), history)
    end_ns = run.begin_ns + round(run.seconds * 1e9)
    decisions: list[Decision] = []
    for event in run.events:
        decisions += _until(steering, event.at_ns)
        if run.begin_ns <= event.at_ns < end_ns:
            decisions += steering.noted(event)
    decisions += _until(steering, end_ns)
    decisions += steering.end(end_ns)
    made = Simulated(policy, run.seconds, sum(map(sum, run.received.values())), decisions)
    made.paths = {path: _estimate(run, path, _left_out(decisions, path)) for path in run.received}
    return made


def _until(steering: Steering, at_ns: int) -> list[Decision]:
    due_ns = steering.due_ns
    return steering.tick(due_ns) if due_ns is not None and due_ns <= at_ns else []


def _left_out(decisions: Sequence[Decision], path: str) -> list[tuple[int, int]]:
    begun, found = None, []
    for decision in decisions:
        if decision.path == path and decision.action == "backup":
            begun = decision.at_ns
        elif decision.path == path and decision.action == "restore" and begun is not None:
            found.append((begun, decision.at_ns))
            begun = None
    return found


def _estimate(run: Recording, path: str, left_out: Sequence[tuple[int, int]]) -> PathEstimate:
    step_ns = run.step_s * 1e9
    rtts = run.rtt_ms.get(path, ())
    known = [rtt for rtt in rtts if rtt is not None]
    peak_ms = PEAK * statistics.median(known) if known else None
    made = PathEstimate(backup_s=sum(end - begin for begin, end in left_out) / 1e9)
    for index, count in enumerate(run.received[path]):
        begin = run.begin_ns + index * step_ns
        covered = sum(max(0.0, min(begin + step_ns, to) - max(begin, since)) for since, to in left_out) / step_ns
        made.foregone_bytes += covered * count
        rtt = rtts[index] if index < len(rtts) else None
        if rtt is not None and peak_ms is not None and rtt >= peak_ms:
            made.peak_s += run.step_s
            made.avoided_peak_s += covered * run.step_s
    return made


def as_rows(decisions: Sequence[Decision], begin_ns: int) -> list[dict[str, Any]]:
    """Decisions with seconds from the run's beginning, for people."""
    return [{"at_s": round((d.at_ns - begin_ns) / 1e9, 3), **asdict(d)} for d in decisions]
