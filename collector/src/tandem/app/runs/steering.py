"""Paths steered by the radio while a run by Multipath TCP goes on: events and samples in, orders and decisions out; and what was learned.

``mptcp.steering`` decides, ``mptcp.backup`` carries out and confirms, ``mptcp.recovery`` learns; this wires them to one run,
on a thread of its own: an order takes milliseconds that the thread which writes the spool does not have.
"""

from __future__ import annotations

import json
import logging
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tandem.app.config import Config
from tandem.app.daemon.paths import NetworkPaths
from tandem.experiment.base import MissingRequirementError
from tandem.mptcp.backup import MOST_TOGGLES, Confirmation
from tandem.mptcp.recovery import History, HistoryError, RadioEvent, recoveries
from tandem.mptcp.steering import NOTED, Decision, Policy, Steering
from tandem.schema.record import Record
from tandem.spool.durable import read_or_begin, write_durably

log = logging.getLogger(__name__)

FILE = "steering.json"
STEP_S = 0.5
_MOST_RTT_MS = 600_000.0
MOST_BINS = 1200
"""Of a run's manifest, for each path: ten minutes in steps of half a second; of a longer run the steps are doubled as often as needed."""
LEARNING_FROM = "download"
"""Recovery is seen where data flows all the time: a player's pauses would be taken for the radio's."""


class SteeringPart:
    """Begins the steering of runs, one at a time. ``noted`` from the thread that writes the spool, the rest from a run's."""

    def __init__(self, config: Config, paths: NetworkPaths, emit: Callable[[list[Record]], None]) -> None:
        self._file, self._paths, self._emit = config.folder / FILE, paths, emit
        self._operators = {path.name: path.operator for path in config.paths}
        self._current: SteeredRun | None = None
        self._learns = False

    def noted(self, record: Record) -> None:
        current = self._current
        if current is not None:
            current.noted(record)

    def begin(self, policy: Policy, experiment: str, paths: Sequence[str]) -> SteeredRun:
        """Steer a run over ``paths`` from now until its ``end``."""
        history = read_history(self._file)
        self._current = SteeredRun(policy, paths, history, self._paths, self._decided)
        self._current.start()
        self._learns = experiment == LEARNING_FROM
        return self._current

    def end(self, run: SteeredRun) -> dict[str, Any]:
        """For the manifest: ``policy``, ``decisions``, ``events`` of the radio, and in steps of ``step_s`` by path ``received_bytes`` and
        ``rtt_ms`` (the largest that the receiver estimated; null where none was); ``history``: what was known when it began."""
        self._current = None
        run.stop()
        if self._learns and (found := recoveries(run.events, run.received, run.begin_ns, STEP_S, run.steered)):
            history = read_history(self._file)
            history.add(found)
            try:
                write_durably(self._file, json.dumps(history.as_json(), indent=1).encode())
            except OSError as error:
                log.warning("%s: what this run taught is lost: %s", self._file, error.strerror)
        return run.as_json()

    def _decided(self, policy: Policy, decision: Decision) -> None:
        predicted = "" if decision.predicted_s is None else f" for {decision.predicted_s:.1f} s"
        fields = {
            "policy": policy,
            "action": decision.action,
            "cause": decision.cause,
            "predicted_s": decision.predicted_s,
            "detail": f"{decision.action}{predicted}: {decision.cause.replace('_', ' ')}",
        }
        tags = {"kind": "steering", "path": decision.path, "operator": self._operators.get(decision.path)}
        self._emit([Record.make("event", tags, fields, decision.at_ns)])


@dataclass(frozen=True, slots=True)
class _Sample:
    at_ns: int
    received: Mapping[tuple[str, ...], tuple[str, int]]
    """Bytes so far by connection and subflow, with the path."""
    rtt_ms: Mapping[str, float]


class SteeredRun:
    """One run. ``noted``, ``sampled`` from any thread."""

    def __init__(
        self,
        policy: Policy,
        paths: Sequence[str],
        history: History,
        orders: NetworkPaths,
        decided: Callable[[Policy, Decision], None],
    ) -> None:
        self._policy, self._history = Steering(policy, paths, history), history.as_json()["classes"]
        self._orders, self._decided = orders, decided
        self.decisions: list[Decision] = []
        self.begin_ns, self.events = time.monotonic_ns(), list[RadioEvent]()
        self.received: dict[str, list[int]] = {path: [] for path in paths}
        """Payload bytes in bins of ``STEP_S`` from ``begin_ns`` on; ``rtt_ms`` likewise."""
        self.rtt_ms: dict[str, list[float | None]] = {path: [] for path in paths}
        self.steered: list[tuple[str, int, int]] = []
        """Path, from, to."""
        self._last: dict[tuple[str, ...], int] = {}
        self._sums = dict.fromkeys(paths, 0)
        self._open: dict[str, Confirmation] = {}
        self._since: dict[str, int] = {}
        self._queue: queue.SimpleQueue[Record | _Sample | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="steering", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Restore what is backup, and end."""
        self._queue.put(None)
        self._thread.join()

    def noted(self, record: Record) -> None:
        self._queue.put(record)

    def sampled(self, sample: Mapping[str, Any]) -> None:
        at_ns, connection, subflows = (sample.get(k) for k in ("monotonic_ns", "connection", "subflows"))
        if type(at_ns) is not int or not 0 <= at_ns < 2**63 or not isinstance(subflows, list):
            return
        labels = connection if isinstance(connection, dict) else {}
        of = tuple(str(labels.get(name)) for name in ("kind", "path", "connection"))
        found: dict[tuple[str, ...], tuple[str, int]] = {}
        rtts: dict[str, float] = {}
        for row in subflows:
            if not isinstance(row, dict) or not isinstance(row.get("path"), str) or row["path"] not in self._sums:
                continue
            count, rtt_ms = row.get("bytes_received"), row.get("rcv_rtt_ms")
            if type(count) is int:
                found[(*of, str(row.get("subflow")))] = row["path"], count
            if isinstance(rtt_ms, int | float) and 0 < rtt_ms < _MOST_RTT_MS:
                rtts[row["path"]] = max(rtts.get(row["path"], 0.0), round(float(rtt_ms), 1))
        self._queue.put(_Sample(at_ns, found, rtts))

    def _run(self) -> None:
        try:
            self._follow()
        finally:  # whatever ended it: no path stays backup
            self._carry_out(self._policy.end(time.monotonic_ns()))

    def _follow(self) -> None:
        while True:
            due_ns = self._policy.due_ns
            try:
                patience_s = None if due_ns is None else max(0.0, (due_ns - time.monotonic_ns()) / 1e9)
                thing = self._queue.get(timeout=patience_s)
            except queue.Empty:
                self._carry_out(self._policy.tick(time.monotonic_ns()))
                continue
            if thing is None:
                return
            if isinstance(thing, _Sample):
                self._take_sample(thing)
            else:
                self._take_event(thing)

    def _take_event(self, record: Record) -> None:
        kind, path = record.tags["kind"], record.tags.get("path")
        if path is None:
            return
        if kind in NOTED:
            change, speed = record.fields.get("change_db"), record.fields.get("speed_class")
            event = RadioEvent(
                kind,
                path,
                record.monotonic_ns,
                float(change) if isinstance(change, int | float) else None,
                speed if isinstance(speed, str) else None,
            )
            self.events.append(event)
            self._carry_out(self._policy.noted(event))

    def _carry_out(self, decisions: Sequence[Decision]) -> None:
        for decision in decisions:
            if decision.action in ("backup", "restore"):
                self._order(decision, backup=decision.action == "backup")
            else:
                self._decide(decision)

    def _order(self, decision: Decision, *, backup: bool) -> None:
        try:
            self._orders.set_backup(decision.path, backup, again=decision.action == "toggled")
        except MissingRequirementError as error:
            log.warning("steering: %s", error)
            self._open.pop(decision.path, None)
            self._ended(decision.path)
            self._policy.refused()
            self._decide(replace(decision, action="refused", cause=str(error)[:200]))
            return
        self._decide(decision)
        now = max(time.monotonic_ns(), decision.at_ns)
        if backup:
            self._since.setdefault(decision.path, now)
        else:
            self._ended(decision.path)
        if (waiting := self._open.get(decision.path)) is not None and decision.action == "toggled":
            waiting.toggled(now)
        else:
            self._open[decision.path] = Confirmation(decision.path, now, backup=backup)

    def _ended(self, path: str) -> None:
        if (since := self._since.pop(path, None)) is not None:
            self.steered.append((path, since, time.monotonic_ns()))

    def _decide(self, decision: Decision) -> None:
        self.decisions.append(decision)
        self._decided(self._policy.policy, decision)

    def _take_sample(self, sample: _Sample) -> None:
        at = int((sample.at_ns - self.begin_ns) / 1e9 / STEP_S)
        for key, (path, count) in sample.received.items():
            before = self._last.get(key, 0)
            fresh = count - before if count >= before else count  # another connection under the same label
            self._last[key] = count
            self._sums[path] += fresh
            bins = self.received[path]
            if 0 <= at < 100 * MOST_BINS:
                bins.extend([0] * (at + 1 - len(bins)))
                bins[at] += fresh
        for path, rtt_ms in sample.rtt_ms.items():
            peaks = self.rtt_ms[path]
            if 0 <= at < 100 * MOST_BINS:
                peaks.extend([None] * (at + 1 - len(peaks)))
                peaks[at] = max(peaks[at] or 0.0, rtt_ms)
        self._confirm(sample.at_ns)

    def _confirm(self, at_ns: int) -> None:
        for path, seen in list(self._open.items()):
            arrived = seen.received(at_ns, self._sums[path], sum(self._sums.values()))
            if arrived is None or (arrived and seen.reported):
                continue
            what = "backup" if seen.backup else "restore"
            if not arrived and seen.toggles < MOST_TOGGLES:
                self._order(Decision(at_ns, path, "toggled", f"{what} was lost"), backup=seen.backup)
                continue
            seen.reported = True
            if not (arrived and seen.backup):
                del self._open[path]
            self._decide(Decision(at_ns, path, "confirmed" if arrived else "unconfirmed", what))

    def as_json(self) -> dict[str, Any]:
        step_s, received, rtt_ms = STEP_S, self.received, self.rtt_ms
        while max(map(len, received.values()), default=0) > MOST_BINS:
            step_s *= 2
            received = {p: [sum(b[i : i + 2]) for i in range(0, len(b), 2)] for p, b in received.items()}
            rtt_ms = {p: [_largest(b[i : i + 2]) for i in range(0, len(b), 2)] for p, b in rtt_ms.items()}
        events = [
            {"kind": e.kind, "path": e.path, "at_ns": e.at_ns, "change_db": e.change_db, "speed_class": e.speed_class}
            for e in self.events
        ]
        return {
            "policy": self._policy.policy,
            "decisions": [decision.as_json() for decision in self.decisions],
            "events": events,
            "begin_ns": self.begin_ns,
            "step_s": step_s,
            "received_bytes": received,
            "rtt_ms": rtt_ms,
            "history": self._history,
        }


def _largest(values: Sequence[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def load_history(file: Path) -> History:
    """What was learned so far, nothing where there is no file; HistoryError names the file, OSError where it cannot be read."""
    try:
        return History.from_json(json.loads(file.read_bytes()))
    except FileNotFoundError:
        return History()
    except (ValueError, RecursionError) as error:
        raise HistoryError(f"{file}: {error}; hint: remove it, and learning begins anew") from None


def read_history(file: Path) -> History:
    """As ``load_history``; a broken file is put aside."""
    return read_or_begin(file, lambda content: History.from_json(json.loads(content)), History)
