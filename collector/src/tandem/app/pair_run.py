"""Carry out a plan: processes, captures, records, manifests. On a thread of its own; at most one at a time."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from tandem.app.clock import Clock
from tandem.app.config import Config, PathConfig
from tandem.app.experiment_process import Ending, ExperimentProcess
from tandem.app.pair_captures import Captured, PairCaptures
from tandem.app.parts import CapturesLike, Parts, PathsLike
from tandem.app.plan import EXPERIMENT, Plan, PlannedRun
from tandem.app.run_manifest import Facts, manifest
from tandem.app.run_records import run_record, sample_records
from tandem.schema.manifest import Manifest
from tandem.schema.record import Record, RecordError

log = logging.getLogger(__name__)

SAMPLE_HZ = 10
_SETUP_S = 45.0
_BYTES_DEADLINE_S = 660.0


class Audience(Protocol):
    """Who follows a pair, called from its threads."""

    def pair_started(self, plan: Plan) -> None:
        """The plan begins."""
        ...

    def run_started(self, plan: Plan, run: PlannedRun) -> None:
        """A run begins."""
        ...

    def run_sampled(self, run: PlannedRun, sample: dict[str, Any]) -> None:
        """A line of type ``sample``."""
        ...

    def run_ended(self, plan: Plan, run: PlannedRun, ending: Ending, captured: Sequence[Captured]) -> None:
        """A run ended; ``captured``: its captures, unless they were told already."""
        ...

    def pair_ended(self, plan: Plan, ok: bool) -> None:
        """All runs ended; ``ok``: none failed."""
        ...


@dataclass(frozen=True)
class Surroundings:
    """What every pair needs of the collector. ``emit`` takes records, ``save`` a manifest, from any thread."""

    config: Config
    parts: Parts
    clock: Clock
    paths: PathsLike
    captures: CapturesLike | None
    emit: Callable[[list[Record]], None]
    save: Callable[[Manifest], None]
    audience: Audience
    modems: Callable[[], dict[str, dict[str, Any]]]
    environment: dict[str, Any]


@dataclass(slots=True)
class _Running:
    """A run under way."""

    run: PlannedRun
    process: ExperimentProcess
    started_ns: int
    modems: dict[str, dict[str, Any]]
    counts: Counter[str] = field(default_factory=Counter)
    version: dict[str, Any] = field(default_factory=dict)
    ended_ns: int = 0


class PairRun:
    """One plan being carried out."""

    def __init__(self, around: Surroundings, plan: Plan) -> None:
        self.plan = plan
        self._around = around
        self._stop = threading.Event()
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
            ok = self._simultaneous() if self.plan.wish.pairing == "simultaneous" else self._one_by_one()
        except Exception:
            # Polling must survive whatever a run does.
            log.exception("pair %s failed", self.plan.pair)
        finally:
            self._around.audience.pair_ended(self.plan, ok)

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
            try:
                started.extend(self._begin(run) for run in self.plan.runs)
            except OSError as error:
                # Runs that have begun alone are no pair: end them, and keep what they measured.
                log.error("pair %s: a run cannot be started: %s", self.plan.pair, error)
                self._stop.set()
                ok = False
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
        return ok

    def _capture(self, runs: Sequence[PlannedRun], stem: str) -> PairCaptures | None:
        if self._around.captures is None:
            return None
        names = {name for run in runs for name in run.paths}
        interfaces = self._around.paths.interfaces
        paths = {p.name: found for p in self._around.config.paths if p.name in names and (found := interfaces[p.name])}
        return PairCaptures(self._around.captures, paths, self._around.config.folder / "captures", stem)

    def _parameters(self, run: PlannedRun) -> dict[str, Any]:
        around, wish = self._around, self.plan.wish
        addresses, interfaces = around.paths.addresses, around.paths.interfaces
        # The others too for TCP: its control channel may take another path, so that a dead one shows in the measurement.
        names = (*run.paths, *(n for n in self._paths if n not in run.paths))
        paths = [
            {
                "name": n,
                "operator": p.operator,
                "interface": interfaces[n] or f"usb{p.usb}",
                "address": addresses.get(n),
            }
            for n, p in ((n, self._paths[n]) for n in names)
        ]
        server = around.config.server
        size = {"bytes": wish.bytes} if wish.seconds is None else {"seconds": wish.seconds}
        return {
            "run": run.id,
            "kind": run.kind,
            "path": run.path,
            "paths": paths,
            **size,
            "server": {
                "control": server.control,
                "measurement": server.measurement,
                "ca_file": None if server.ca_file is None else str(server.ca_file),
                "token_file": str(server.token_file),
            },
            "sample_hz": SAMPLE_HZ,
        }

    def _begin(self, run: PlannedRun) -> _Running:
        around = self._around
        around.audience.run_started(self.plan, run)
        counts: Counter[str] = Counter()
        version: dict[str, Any] = {}

        def on_line(said: dict[str, Any]) -> None:
            if said.get("type") == "started":
                version.update({k: said[k] for k in ("experiment", "version") if k in said})
            elif said.get("type") == "sample":
                monotonic_ns = said.get("monotonic_ns")
                utc_ns = around.clock.utc_ns(monotonic_ns) if isinstance(monotonic_ns, int) else None
                records, broken = sample_records(run, said, utc_ns)
                counts.update(record.measurement for record in records)
                counts["broken"] += broken
                around.emit(records)
                around.audience.run_sampled(run, said)

        started_ns, modems = time.monotonic_ns(), around.modems()
        process = ExperimentProcess(around.parts.experiment(EXPERIMENT), self._parameters(run), on_line, run.id)
        return _Running(run, process, started_ns, modems, counts, version)

    def _await(self, running: _Running) -> Ending:
        seconds = self.plan.wish.seconds
        ending = running.process.wait(_BYTES_DEADLINE_S if seconds is None else seconds + _SETUP_S, self._stop)
        running.ended_ns = time.monotonic_ns()
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
        pairing = plan.wish.pairing
        try:
            record = run_record(run, plan.pair, pairing, ending.result, ending.failure, running.ended_ns, ended_utc_ns)
        except RecordError as error:
            failure = {"reason": f"the experiment's figures break the schema: {error}", "retry": False}
            ending = Ending(None, failure, ending.environment, ending.said)
            record = run_record(run, plan.pair, pairing, None, failure, running.ended_ns, ended_utc_ns)
        around.emit([record])
        running.counts["run"] += 1
        folder = around.config.folder
        facts = Facts(
            parameters=self._parameters(run),
            experiment=running.version,
            started_ns=running.started_ns,
            ended_ns=running.ended_ns,
            modems_before=running.modems,
            modems_after=around.modems(),
            environment={
                **around.environment,
                "captures": {"shared_by_pair": shared, "problems": {} if captures is None else captures.problems},
                "path_addresses": around.paths.addresses,
            },
            counts=dict(running.counts),
            files=[c.run_file(folder) for c in captured],
        )
        around.save(manifest(around.config, around.clock, plan, run, ending, facts))
        around.audience.run_ended(plan, run, ending, untold)
        if ending.failure is not None:
            log.warning("%s (%s over %s): %s", run.id, run.kind, ", ".join(run.paths), ending.failure.get("reason"))
        return ending.failure is None

    def _add_losses(self, run: PlannedRun, ending: Ending) -> None:
        """Into the result: which subflows the connection lost, as the kernel told the paths' watch."""
        connection = ending.said.get("connection")
        if ending.result is None or run.kind != "mptcp" or not isinstance(connection, str):
            return
        try:
            losses = self._around.paths.losses(int(connection, 16))
        except ValueError:
            losses = None
        if losses is not None:
            ending.result["subflow_losses"] = losses


def captures_on_disk(folder: Path) -> int:
    """Bytes that captures take in ``folder`` already."""
    return sum(p.stat().st_size for p in folder.glob("*.pcap*")) if folder.is_dir() else 0
