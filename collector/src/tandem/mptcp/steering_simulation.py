"""What each policy would have ordered in a run that was recorded: the policies as they are, fed with the run's events. Pure.

It is an estimate. The radio goes on as it did, and so do both paths: no recording knows what the other path would have carried in
addition, how the transport would have grown into it, and which orders would have been lost. Nor does it know what a path would
have carried while the run itself had left it out.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from tandem.mptcp.recovery import History, RadioEvent
from tandem.mptcp.steering import Decision, Policy, Steering

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
        """How long it is."""
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
        """Another run's."""
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
    """What ``policy``, which knows ``history``, would have done."""
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
