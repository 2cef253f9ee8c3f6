"""Carries out a plan: processes, captures, records, manifests. On a thread of its own; at most one at a time."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from typing import Any

from tandem.app.runs.captures import FOLDER, Captured, RunCaptures
from tandem.app.runs.conditions import ConditionsError, ConditionsMade
from tandem.app.runs.context import RunContext
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
from tandem.app.runs.request import Plan, PlannedRun, deadline_of, parameters_of
from tandem.app.runs.steering import SteeredRun
from tandem.schema.manifest import PathUsage, Usage
from tandem.schema.record import RecordError

log = logging.getLogger(__name__)

REST_S = 5.0  # a check of the paths is some calls of ``ip``; on a Pi Zero they take a good part of a second


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
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Tell the runs to end; what they measured counts. Returns at once."""
        self._stop.set()

    @property
    def running(self) -> bool:
        """Whether anything of it is still under way."""
        return self._thread.is_alive()

    def join(self, timeout_s: float) -> None:
        """Wait for the end."""
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
            if context.paths.rest(others, REST_S):
                return self._under_conditions()
            reason = f"paths: {', '.join(others)} could not be left out within {REST_S:g} s"
            self._refused(self.plan.runs, reason, retry=True)
            return False
        finally:
            context.paths.rest((), 0)  # the next check does it; nobody has to wait for that

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
        """The run is told of, and recorded as begun."""
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
        captures_told = {
            "shared_by_pair": shared,
            "problems": {} if captures is None else captures.problems,
            "ends": plan.request.capture,
        }
        conditions = None if self._conditions is None else self._conditions.state()
        files = [c.run_file(context.config.folder) for c in captured]
        parameters = self._parameters(run)
        context.save(manifest(context, plan, running, ending, parameters, captures_told, files, usage, conditions))
        self._results.append(result_row(plan, run, ending.result, ending.failure))
        for observer in context.observers:
            observer.run_ended(plan, run, ending, unreported)
        if ending.failure is not None:
            log.warning("%s (%s over %s): %s", run.id, run.kind, ", ".join(run.paths), ending.failure.get("reason"))
        return ending.failure is None

    def _used(self, running: Running) -> dict[str, PathUsage]:
        """What it cost each of its paths."""
        now, used = self._context.account.update(), {}
        for path in running.run.paths:
            received, sent = (after - before for after, before in zip(now[path], running.used[path], strict=True))
            used[path] = PathUsage(received=received, sent=sent)
        return used

    def _add_losses(self, run: PlannedRun, ending: Ending) -> None:
        """Into the result: which subflows the connection lost, as the kernel told the paths' watch."""
        token = token_of(ending.said.get("connection"))
        if ending.result is None or run.kind != "mptcp" or token is None:
            return
        if (losses := self._context.paths.losses(token)) is not None:
            ending.result["subflow_losses"] = losses
