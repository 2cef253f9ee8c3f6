"""When runs begin, and how a group of them is carried out: one group at a time, by request, and by the radio's events within what the SIMs
may carry a day; its processes, captures, records and manifests on a thread of its own.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tandem.app.campaign.estimate import ASSUMED_BIT_PER_S, ASSUMED_RTT_MS, RULES
from tandem.app.config import Config
from tandem.app.daemon.accounts import Account
from tandem.app.runs.captures import FOLDER, Captured, RunCaptures
from tandem.app.runs.conditions import ConditionsError, ConditionsMade
from tandem.app.runs.context import RunContext, RunObserver
from tandem.app.runs.manifest import (
    RunLines,
    Running,
    begun_record,
    manifest,
    result_row,
    run_record,
    token_of,
    usage_records,
)
from tandem.app.runs.process import Ending, ExperimentProcess
from tandem.app.runs.request import (
    DOWNLOAD,
    Plan,
    PlannedRun,
    RunRequest,
    configured_request,
    deadline_of,
    parameters_of,
    parse_request,
    plan,
)
from tandem.app.runs.steering import SteeredRun
from tandem.schema.manifest import PathUsage, Usage
from tandem.schema.record import RecordError

log = logging.getLogger(__name__)


SUSPEND_S = 5.0  # a check of the paths is some calls of ``ip``; on a Pi Zero they take a good part of a second


class RunGroup:
    """One plan being carried out."""

    def __init__(self, context: RunContext, plan: Plan) -> None:
        self.plan = plan
        self._context = context
        self._stop = threading.Event()
        self._results: list[dict[str, Any]] = []
        self.outcome: dict[str, Any] | None = None
        """``runs``, ``results`` (``result_row``) and ``ok``, whether none failed, once all is measured and written."""
        self._conditions: ConditionsMade | None = None
        self._paths = {p.name: p for p in context.config.paths}
        self._thread = threading.Thread(target=self._carry_out, name=plan.pair, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Tell the runs to end; what they measured counts. Returns at once."""
        self._stop.set()

    @property
    def running(self) -> bool:
        return self._thread.is_alive()

    def join(self, timeout_s: float) -> None:
        self._thread.join(timeout_s)

    def _carry_out(self) -> None:
        ok = False
        for observer in self._context.observers:
            observer.group_started(self.plan)
        try:
            ok = self._over_its_paths()
        except Exception:
            # Polling must survive whatever a run does.
            log.exception("pair %s failed", self.plan.pair)
        finally:
            self.outcome = {"runs": [row["id"] for row in self._results], "results": self._results, "ok": ok}
            for observer in self._context.observers:
                observer.group_ended(self.plan)

    def _over_its_paths(self) -> bool:
        """The kernel opens subflows over every path that it is told of: those that are not the group's rest meanwhile."""
        context = self._context
        others = [name for name in self._paths if name not in self.plan.request.paths]
        if not others or self.plan.request.kind == "tcp":
            return self._under_conditions()
        try:
            if context.paths.suspend(others, SUSPEND_S):
                return self._under_conditions()
            reason = f"paths: {', '.join(others)} could not be left out within {SUSPEND_S:g} s"
            self._refused(self.plan.runs, reason, retry=True)
            return False
        finally:
            context.paths.suspend((), 0)  # the next check does it; nobody has to wait for that

    def _under_conditions(self) -> bool:
        context, wanted = self._context, self.plan.request.conditions
        carry_out = self._simultaneous if self.plan.request.pairing == "simultaneous" else self._one_by_one
        if not wanted:
            return carry_out()
        try:
            spool = context.config.folder / "spool"
            self._conditions = context.conditions(wanted, context.paths.interfaces, spool, context.clock.boot)
        except ConditionsError as error:
            self._refused(self.plan.runs, f"conditions: {error}", retry=error.retry)
            return False
        try:
            return carry_out()
        finally:
            self._conditions.undo()

    def _refused(self, runs: Sequence[PlannedRun], reason: str, *, retry: bool) -> None:
        """What they require cannot be made: the runs fail, and are recorded."""
        for run in runs:
            running = self._started(run)
            running.ended_ns = running.started_ns
            self._finish(running, Ending(None, {"reason": reason, "retry": retry}, {}), [], [], None, shared=False)

    def _one_by_one(self) -> bool:
        ok = True
        for number, run in enumerate(self.plan.runs):
            if number and self._stop.wait(self.plan.request.pause_s):
                return False
            captures = self._capture([run], run.id)
            try:
                running = self._begin(run)
                ending = self._await(running)
            finally:
                captured = captures.stop() if captures else []
            ok &= self._finish(running, ending, captured, captured, captures, shared=False)
        return ok

    def _simultaneous(self) -> bool:
        captures = self._capture(self.plan.runs, self.plan.pair)
        started: list[Running] = []
        ok = True
        try:
            for run in self.plan.runs:
                started.append(self._begin(run))
                if started[-1].process is None:
                    self._stop.set()  # runs that have begun alone are no pair: end them, and keep what they measured
                    break
            endings: dict[str, Ending] = {}
            waiting = [
                threading.Thread(target=lambda r=r: endings.update({r.run.id: self._await(r)}), daemon=True)
                for r in started
            ]
            for thread in waiting:
                thread.start()
            for thread in waiting:
                thread.join()
        finally:
            captured = captures.stop() if captures else []
        unreported: list[Captured] = captured
        for running in started:
            mine = [c for c in captured if c.path in running.run.paths]
            ok &= self._finish(running, endings[running.run.id], mine, unreported, captures, shared=True)
            unreported = []
        self._refused(self.plan.runs[len(started) :], "another run of its pair could not be started", retry=True)
        return ok

    def _capture(self, runs: Sequence[PlannedRun], stem: str) -> RunCaptures | None:
        context = self._context
        if context.captures is None:
            return None
        names = {name for run in runs for name in run.paths}
        interfaces = context.paths.interfaces
        paths = {name: found for name in self._paths if name in names and (found := interfaces[name])}
        return RunCaptures(context.captures, paths, context.config.folder / FOLDER, stem)

    def _parameters(self, run: PlannedRun) -> dict[str, Any]:
        context = self._context
        return parameters_of(context.config, self.plan, run, context.paths.interfaces, context.paths.addresses)

    def _started(self, run: PlannedRun, steered: SteeredRun | None = None) -> Running:
        context = self._context
        for observer in context.observers:
            observer.run_started(self.plan, run)
        lines = RunLines(context, self.plan, run, None if steered is None else steered.sampled)
        started_ns, modems, used = time.monotonic_ns(), context.modems(), context.account.update()
        lines.emit([begun_record(self.plan, run, started_ns)])
        return Running(run, started_ns, modems, used, lines, steered=steered)

    def _begin(self, run: PlannedRun) -> Running:
        context = self._context
        running = self._started(run, self._steered(run))
        try:
            command = context.registry.command(self.plan.request.experiment)
            folder = context.config.folder.resolve()
            running.process = ExperimentProcess(command, self._parameters(run), running.lines, run.id, folder)
        except Exception as error:  # noqa: BLE001 whatever it is, a run that was told of is recorded
            running.failure = {"reason": f"it could not be started: {error}", "retry": isinstance(error, OSError)}
        return running

    def _steered(self, run: PlannedRun) -> SteeredRun | None:
        """Also without a policy: what its paths recover from is learned from runs that are left alone."""
        request = self.plan.request
        if run.kind == "tcp" or len(run.paths) < 2 or request.pairing == "simultaneous":
            return None
        return self._context.steering.begin(request.steering, request.experiment, run.paths)

    def _await(self, running: Running) -> Ending:
        try:
            if running.process is None:
                ending = Ending(None, running.failure, {})
            else:
                ending = running.process.wait(deadline_of(self.plan), self._stop)
            running.ended_ns = time.monotonic_ns()
        finally:
            if running.steered is not None:
                running.steering = self._context.steering.end(running.steered)
        return ending

    def _finish(
        self,
        running: Running,
        ending: Ending,
        captured: Sequence[Captured],
        unreported: Sequence[Captured],
        captures: RunCaptures | None,
        *,
        shared: bool,
    ) -> bool:
        context, run, plan = self._context, running.run, self.plan
        self._add_losses(run, ending)
        try:
            record = run_record(plan, run, ending.result, ending.failure, running.ended_ns)
        except RecordError as error:
            failure = {"reason": f"the experiment's figures break the schema: {error}", "retry": False}
            ending = Ending(None, failure, ending.environment, {**ending.said, "broken_result": ending.result})
            record = run_record(plan, run, None, failure, running.ended_ns)
        usage = Usage(paths=self._used(running), shared_by_pair=shared)
        running.lines.emit([record, *usage_records(run, usage, context.config.operators, running.ended_ns)])
        captures_report = {
            "shared_by_pair": shared,
            "problems": {} if captures is None else captures.problems,
            "ends": plan.request.capture,
        }
        conditions = None if self._conditions is None else self._conditions.state()
        files = [c.run_file(context.config.folder) for c in captured]
        parameters = self._parameters(run)
        context.save(manifest(context, plan, running, ending, parameters, captures_report, files, usage, conditions))
        self._results.append(result_row(plan, run, ending.result, ending.failure))
        for observer in context.observers:
            observer.run_ended(plan, run, ending, unreported)
        if ending.failure is not None:
            log.warning("%s (%s over %s): %s", run.id, run.kind, ", ".join(run.paths), ending.failure.get("reason"))
        return ending.failure is None

    def _used(self, running: Running) -> dict[str, PathUsage]:
        now, used = self._context.account.update(), {}
        for path in running.run.paths:
            received, sent = (after - before for after, before in zip(now[path], running.used[path], strict=True))
            used[path] = PathUsage(received=received, sent=sent)
        return used

    def _add_losses(self, run: PlannedRun, ending: Ending) -> None:
        """Into the result: which subflows the connection lost, as the paths' watch saw."""
        token = token_of(ending.said.get("connection"))
        if ending.result is None or run.kind != "mptcp" or token is None:
            return
        if (losses := self._context.paths.losses(token)) is not None:
            ending.result["subflow_losses"] = losses


# ---------------------------------------------------------------------------------------------------------------------
# When runs begin.


_MOMENT_S = 5.0
"""For a thread that has nothing more to do than to end."""
_KEPT = 20

STARTING = ("mobility_start", "signal_drop", "handover")
"""Events that begin a paired run: the start of mobility, and later on the move whatever shows that the network changed. The paper's
collector takes every change of 6 dB or more for a start of mobility and begins a transfer when none is under way."""

_TRIGGER = "mobility_start"


class RunScheduler:
    """Begins groups of runs when told, from any thread, never two at once."""

    def __init__(self, context: RunContext, number: int) -> None:
        """``number``: of the first group, counted over the whole campaign."""
        self._context, self._number = context, number
        self._lock = threading.Lock()
        self._groups: deque[RunGroup] = deque(maxlen=_KEPT)
        """The last ones, for who asks by an id; who begins one has the group itself."""
        self._closed = self._held = False

    def begin(self, request: RunRequest) -> RunGroup | None:
        """Begin a group; None when one is running already, a modem is being recovered or the collector stops."""
        current = self._current
        if current is not None and current.outcome is not None:
            current.join(_MOMENT_S)  # who was told of its end asks for the next at once
        with self._lock:
            if self._closed or self._held or self.running:
                return None
            group = RunGroup(self._context, plan(self._context.config, request, self._number))
            self._number += 1
            self._groups.append(group)
            group.start()
            return group

    def request(self, experiment: str, parameters: dict[str, Any]) -> str:
        """Begin a group as requested through the status socket; its id. ValueError with the reason when it cannot be."""
        context = self._context
        request = parse_request(context.config, context.registry, experiment, parameters, "request")
        missing = context.missing_requirement(request.conditions)
        if missing is not None:
            raise ValueError(missing)
        group = self.begin(request)
        if group is None:
            doing = "a modem is being recovered" if self._held else "another pair is running"
            raise ValueError(f"{doing}; try again when it has ended")
        return group.plan.pair

    def cancel(self, pair: str | None = None) -> str:
        """End the group that runs, and keep what it measured; its id. None: whichever runs. ValueError when it does not run."""
        with self._lock:
            current = self._current
            if current is None or not current.running:
                raise ValueError("nothing is being measured")
            if pair not in (None, current.plan.pair):
                raise ValueError(f"{pair} is not what is being measured: {current.plan.pair} is")
            current.stop()
            return current.plan.pair

    def outcome(self, pair: str) -> dict[str, Any] | None:
        """How the group ended, None before; None also for one that is not among the last."""
        return next((group.outcome for group in list(self._groups) if group.plan.pair == pair), None)

    def hold(self) -> bool:
        """Whether nothing is running; if so, nothing begins until ``release``."""
        with self._lock:
            self._held = not self.running
            return self._held

    def release(self) -> None:
        self._held = False

    @property
    def _current(self) -> RunGroup | None:
        return self._groups[-1] if self._groups else None

    @property
    def running(self) -> bool:
        current = self._current
        return current is not None and current.running

    def stop(self) -> None:
        """End the group that runs, keep what it measured, and begin no other. Returns at once."""
        with self._lock:
            self._closed = True
            if self._current is not None:
                self._current.stop()

    def join(self, timeout_s: float) -> None:
        current = self._current
        if current is not None:
            current.join(timeout_s)


def groups_so_far(runs: Path) -> int:
    """Groups that left a manifest, so that a restart goes on in the row of random orders."""
    pairs = set()
    for file in runs.glob("*.json"):
        try:
            pairs.add(json.loads(file.read_bytes())["pair"])
        except (ValueError, KeyError, TypeError, OSError):
            log.warning("%s is no manifest", file)
    return len(pairs)


class MobilityTrigger(RunObserver):
    """As ``[runs]`` has it: ``on_mobility_start``, and ``minimum_gap_s`` between two pairs; within what the SIMs may carry a day."""

    def __init__(self, config: Config, account: Account) -> None:
        self._config, self._account = config, account
        self.limits = {path.name: path.day_limit_bytes for path in config.paths}
        runs = config.runs
        wanted = {"pairing": runs.on_mobility_start, "seconds": runs.seconds, "bytes": runs.bytes, "pause_s": 0.0}
        rates = dict.fromkeys(self.limits, ASSUMED_BIT_PER_S)
        self._takes = dict(RULES[DOWNLOAD](wanted, rates, ASSUMED_RTT_MS / 1000).bytes_by_role)
        self._before: dict[str, int] = {}
        self._begun_s: float | None = None

    def noticed(self, kind: str, scheduler: RunScheduler) -> None:
        """An event on the move while no campaign says what is measured."""
        pairing, now = self._config.runs.on_mobility_start, time.monotonic()
        if kind not in STARTING or pairing == "off":
            return
        if self._begun_s is not None and now - self._begun_s < self._config.runs.minimum_gap_s:
            return
        if (held := self.held()) is not None:
            log.info("no pair begins: %s", held)
        elif scheduler.begin(configured_request(self._config, pairing, _TRIGGER)) is not None:
            self._begun_s = now

    def held(self) -> str | None:
        """Why no pair would begin now, as of the account's last ``update``; None when one may, or none is wanted. From any thread."""
        if self._config.runs.on_mobility_start == "off":
            return None
        for path in self._config.paths:
            left, takes = self._account.left_today(path), self._takes[path.name]
            if left is None or left >= takes:
                continue
            if path.day_limit_bytes == 0:
                return f"day_bytes of path {path.name} is 0"
            return (
                f"until 00:00 UTC: path {path.name} has {left / 1e6:.0f} MB of its SIM's limits left, a pair takes {takes / 1e6:.0f} MB; "
                "hint: day_bytes of [[path]], within its plan"
            )
        return None

    def group_started(self, plan: Plan) -> None:
        self._before = self._carried(plan)

    def group_ended(self, plan: Plan) -> None:
        """It ended: the next one may take as much."""
        after = self._carried(plan)
        if plan.request.trigger == _TRIGGER:
            self._takes |= {path: max(self._takes[path], after[path] - self._before[path]) for path in after}

    def _carried(self, plan: Plan) -> dict[str, int]:
        """By path, all bytes since the start."""
        counted = self._account.update()
        return {path: sum(counted[path]) for path in plan.request.paths}
