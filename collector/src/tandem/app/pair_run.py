"""Carry out a plan: processes, captures, records, manifests. On a thread of its own; at most one at a time."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tandem.app.conditions import ConditionsError
from tandem.app.config import PathConfig
from tandem.app.experiment_process import Ending, ExperimentProcess
from tandem.app.machine import UsageAccount
from tandem.app.pair_captures import Captured, PairCaptures
from tandem.app.parts import ConditionsMadeLike
from tandem.app.plan import Plan, PlannedRun
from tandem.app.run_lines import RunLines, token_of
from tandem.app.run_manifest import Facts, manifest
from tandem.app.run_parameters import deadline_of, parameters_of
from tandem.app.run_records import begun_record, run_record, usage_records
from tandem.app.steering import SteeredRun
from tandem.app.surroundings import Surroundings
from tandem.schema.manifest import PathUsage, Usage
from tandem.schema.record import Record, RecordError

log = logging.getLogger(__name__)

REST_S = 5.0  # a check of the paths is some calls of ``ip``; on a Pi Zero they take a good part of a second


@dataclass(slots=True)
class _Running:
    """A run under way; without a process it could not begin, and ``failure`` says why."""

    run: PlannedRun
    process: ExperimentProcess | None
    started_ns: int
    modems: dict[str, dict[str, Any]]
    usage: UsageAccount
    lines: RunLines
    steered: SteeredRun | None = None
    steering: dict[str, Any] | None = None
    ended_ns: int = 0
    failure: dict[str, Any] | None = None


class PairRun:
    """One plan being carried out."""

    def __init__(self, around: Surroundings, plan: Plan) -> None:
        self.plan = plan
        self._around = around
        self._stop = threading.Event()
        self.measured = False
        """All is measured and written; it is being told."""
        self._conditions: ConditionsMadeLike | None = None
        self._paths: dict[str, PathConfig] = {p.name: p for p in around.config.paths}
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
        self._around.audience.pair_started(self.plan)
        try:
            ok = self._over_its_paths()
        except Exception:
            # Polling must survive whatever a run does.
            log.exception("pair %s failed", self.plan.pair)
        finally:
            self.measured = True
            self._around.audience.pair_ended(self.plan, ok)

    def _over_its_paths(self) -> bool:
        """The kernel opens subflows over every path that it is told of: those that are not the pair's rest meanwhile."""
        around = self._around
        others = [name for name in self._paths if name not in self.plan.wish.paths]
        if not others or self.plan.wish.kind == "tcp":
            return self._under_conditions()
        try:
            if around.paths.rest(others, REST_S):
                return self._under_conditions()
            reason = f"paths: {', '.join(others)} could not be left out within {REST_S:g} s"
            self._refused(self.plan.runs, reason, retry=True)
            return False
        finally:
            around.paths.rest((), 0)  # the next check does it; nobody has to wait for that

    def _under_conditions(self) -> bool:
        around, wanted = self._around, self.plan.wish.conditions
        carry_out = self._simultaneous if self.plan.wish.pairing == "simultaneous" else self._one_by_one
        if not wanted:
            return carry_out()
        try:
            spool = around.config.folder / "spool"
            self._conditions = around.parts.conditions(wanted, around.paths.interfaces, spool, around.clock.boot)
        except ConditionsError as error:
            self._refused(self.plan.runs, f"conditions: {error}", retry=error.retry)
            return False
        try:
            return carry_out()
        finally:
            self._conditions.undo()

    def _refused(self, runs: Sequence[PlannedRun], reason: str, *, retry: bool) -> None:
        """What it takes cannot be made: the runs fail, and are recorded."""
        for run in runs:
            self._around.audience.run_started(self.plan, run)
            now = time.monotonic_ns()
            lines = RunLines(self._around, self.plan, run)
            lines.emit([self._begun(run, now)])
            running = _Running(run, None, now, self._around.modems(), self._usage(run), lines, ended_ns=now)
            failure = {"reason": reason, "retry": retry}
            self._finish(running, Ending(None, failure, {}), [], [], None, shared=False)

    def _one_by_one(self) -> bool:
        ok = True
        for number, run in enumerate(self.plan.runs):
            if number and self._stop.wait(self.plan.wish.pause_s):
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
        started: list[_Running] = []
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
        untold: list[Captured] = captured
        for running in started:
            mine = [c for c in captured if c.path in running.run.paths]
            ok &= self._finish(running, endings[running.run.id], mine, untold, captures, shared=True)
            untold = []
        self._refused(self.plan.runs[len(started) :], "another run of its pair could not be started", retry=True)
        return ok

    def _capture(self, runs: Sequence[PlannedRun], stem: str) -> PairCaptures | None:
        if self._around.captures is None:
            return None
        names = {name for run in runs for name in run.paths}
        interfaces = self._around.paths.interfaces
        paths = {p.name: found for p in self._around.config.paths if p.name in names and (found := interfaces[p.name])}
        return PairCaptures(self._around.captures, paths, self._around.config.folder / "captures", stem)

    def _parameters(self, run: PlannedRun) -> dict[str, Any]:
        around = self._around
        return parameters_of(around.config, self.plan, run, around.paths.interfaces, around.paths.addresses)

    def _begin(self, run: PlannedRun) -> _Running:
        around = self._around
        around.audience.run_started(self.plan, run)
        steered = self._steered(run)
        lines = RunLines(around, self.plan, run, None if steered is None else steered.sampled)
        started_ns, modems, usage = time.monotonic_ns(), around.modems(), self._usage(run)
        lines.emit([self._begun(run, started_ns)])
        running = _Running(run, None, started_ns, modems, usage, lines, steered)
        try:
            parameters, folder = self._parameters(run), around.config.folder.resolve()
            running.process = ExperimentProcess(self._command(), parameters, lines, run.id, folder)
        except Exception as error:  # noqa: BLE001 whatever it is, a run that was told of is recorded
            running.failure = {"reason": f"it could not be started: {error}", "retry": isinstance(error, OSError)}
        return running

    def _steered(self, run: PlannedRun) -> SteeredRun | None:
        """Also without a policy: what its paths recover from is learned from runs that are left alone."""
        if run.kind == "tcp" or len(run.paths) < 2 or self.plan.wish.pairing == "simultaneous":
            return None
        return self._around.steering.begin(self.plan.wish.steering, self.plan.wish.experiment, run.paths)

    def _begun(self, run: PlannedRun, started_ns: int) -> Record:
        return begun_record(self.plan, run, started_ns, self._around.clock.utc_ns(started_ns))

    def _command(self) -> Sequence[str]:
        return self._around.registry.command(self.plan.wish.experiment)

    def _usage(self, run: PlannedRun) -> UsageAccount:
        interfaces = self._around.paths.interfaces
        return UsageAccount({name: interfaces.get(name) for name in run.paths})

    def _await(self, running: _Running) -> Ending:
        try:
            if running.process is None:
                ending = Ending(None, running.failure, {})
            else:
                ending = running.process.wait(deadline_of(self.plan), self._stop)
            running.ended_ns = time.monotonic_ns()
        finally:
            if running.steered is not None:
                running.steering = self._around.steering.end(running.steered)
        return ending

    def _finish(
        self,
        running: _Running,
        ending: Ending,
        captured: Sequence[Captured],
        untold: Sequence[Captured],
        captures: PairCaptures | None,
        *,
        shared: bool,
    ) -> bool:
        around, run, plan = self._around, running.run, self.plan
        self._add_losses(run, ending)
        ended_utc_ns = around.clock.utc_ns(running.ended_ns)
        try:
            record = run_record(plan, run, ending.result, ending.failure, running.ended_ns, ended_utc_ns)
        except RecordError as error:
            failure = {"reason": f"the experiment's figures break the schema: {error}", "retry": False}
            ending = Ending(None, failure, ending.environment, {**ending.said, "broken_result": ending.result})
            record = run_record(plan, run, None, failure, running.ended_ns, ended_utc_ns)
        paths = {path: PathUsage(received=r, sent=s) for path, (r, s) in running.usage.update().items()}
        usage = Usage(paths=paths, shared_by_pair=shared)
        operators = {name: path.operator for name, path in self._paths.items()}
        cost = usage_records(run, usage, operators, running.ended_ns, ended_utc_ns)
        running.lines.emit([record, *cost])
        folder = around.config.folder
        facts = Facts(
            parameters=self._parameters(run),
            experiment=running.lines.version,
            started_ns=running.started_ns,
            ended_ns=running.ended_ns,
            modems_before=running.modems,
            modems_after=around.modems(),
            environment={
                **around.environment,
                "captures": {
                    "shared_by_pair": shared,
                    "problems": {} if captures is None else captures.problems,
                    "ends": plan.wish.capture,
                },
                "path_addresses": around.paths.addresses,
            },
            counts=dict(running.lines.counts),
            files=[c.run_file(folder) for c in captured],
            usage=usage,
            conditions=None if self._conditions is None else self._conditions.state(),
            steering=running.steering,
        )
        around.save(manifest(around.config, around.clock, plan, run, ending, facts))
        around.audience.run_ended(plan, run, ending, untold)
        if ending.failure is not None:
            log.warning("%s (%s over %s): %s", run.id, run.kind, ", ".join(run.paths), ending.failure.get("reason"))
        return ending.failure is None

    def _add_losses(self, run: PlannedRun, ending: Ending) -> None:
        """Into the result: which subflows the connection lost, as the kernel told the paths' watch."""
        token = token_of(ending.said.get("connection"))
        if ending.result is None or run.kind != "mptcp" or token is None:
            return
        if (losses := self._around.paths.losses(token)) is not None:
            ending.result["subflow_losses"] = losses
