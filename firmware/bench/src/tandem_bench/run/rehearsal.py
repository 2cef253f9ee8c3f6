"""The rehearsal, step by step: build, start, play, end, report. Runs as root inside namespaces of its own."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from tandem_bench import BenchError, ExitCode, UsageError
from tandem_bench.link import LinkError
from tandem_bench.requirements import MachineError, find_influxd, require
from tandem_bench.run import configuration
from tandem_bench.run.folder import PROBE, DemoFolder, versions
from tandem_bench.run.programs import (
    COLLECTOR,
    READY_S,
    Owner,
    Program,
    ProgramError,
    Programs,
    Usage,
    confined,
    usage_so_far,
)
from tandem_bench.run.rig import Rig
from tandem_bench.run.session import Stopped, StopSignals
from tandem_bench.scenario.played import Drive, Repeat
from tandem_bench.topology import private

COLLECTOR_END_S = 60.0
"""The collector ends a run, sends what is left (``drain_s`` of its configuration: 30 s) and writes its account."""

FIRST_PAIR_LATE_S = 60.0
"""How long after the scenario's end the first pair, which a rehearsal always makes, may still take."""

REPORT_S = 600.0
REFUSED = 3
"""Exit status of ``tandem experiment run`` when the collector does not take it now."""

OVERHEAD_S = 2.5
"""Around each run, measured: session and captures start (1.2 s), captures end (1.3 s)."""

START_S = 1.0
"""The collector polls this long before the first run."""

PAUSE_S = 1.0
"""Between sequential runs. With the end of the captures that is more than 2 s, in which the queues run empty: a run that begins while
they drain leaves slow start too early."""

LEAST_S, LONGEST_S = 2.0, 20.0
"""A run shorter than this is all slow start; one longer tells nothing more."""


R = TypeVar("R", bound="Rehearsal")


class PlanError(UsageError):
    """The scenario leaves no room for the one paired run that a rehearsal always makes."""


@dataclass(frozen=True)
class Plan:
    """``first_*``: the sequential pair of the first still phase; ``run_seconds``: of the pairs that mobility starts."""

    first_start_s: float
    first_seconds: float
    first_pause_s: float
    run_seconds: float


def plan(first_still_s: float, duration_s: float, paths: int) -> Plan:
    """Fit one MPTCP and ``paths`` TCP runs into the first still phase of ``first_still_s`` seconds.

    PlanError when runs of ``LEAST_S`` do not fit into the whole rehearsal. In a scenario that begins on the move the first third of it is
    used instead.
    """
    room = first_still_s if first_still_s > 0 else max(duration_s / 3, 15.0)
    runs = paths + 1
    # Where all of it is still, the pair must be over well before the end, on a slow machine too.
    room = min(room, 0.85 * duration_s - 1.0)
    seconds = (room - START_S - runs * OVERHEAD_S - (runs - 1) * PAUSE_S) / runs
    if seconds < LEAST_S:
        seconds = LEAST_S
        needed = START_S + runs * (seconds + OVERHEAD_S) + (runs - 1) * PAUSE_S
        if needed > duration_s:
            raise PlanError(
                f"--duration {duration_s:g}: one paired run needs {needed:.0f} s; give at least {needed:.0f}"
            )
    return Plan(START_S, round(min(seconds, LONGEST_S), 1), PAUSE_S, 8.0 if duration_s >= 120 else 5.0)


class Rehearsal:
    """One rehearsal of ``rig`` in ``folder``. ``run`` plays it; ``stopped`` then says why it ended early, if it did.

    What others play is a class of its own: it overrides ``_play`` and what it does otherwise.
    """

    report_s = REPORT_S
    report_words: tuple[str, ...] = ()

    def __init__(self, rig: Rig, folder: DemoFolder, influxd: Path) -> None:
        self.rig, self.folder, self.owner = rig, folder, rig.owner
        self.played, self.duration_s = rig.played, rig.played.duration_s
        self.programs = Programs(folder.logs)
        self.stopped: str | None = None
        self.by_user = False
        self.collecting: Program | None = None
        self._influxd = influxd
        self._radio_usage: list[Usage] = []
        self._server_toml = folder.server / "server.toml"
        self._collector_toml = folder.probe / "config.toml"

    def run(self) -> int | None:
        """Play and report; the report's exit status, or None when nothing was measured."""
        try:
            with self.rig, self.programs:
                try:
                    self._start_server()
                    self.rig.start_radio()
                    self._start_collector()
                    self._play()
                except Stopped as stop:
                    self.stopped, self.by_user = str(stop), True
                    print(f"\nstopping ({stop}): what was measured is kept", flush=True)
                except (ProgramError, LinkError, MachineError, OSError) as error:
                    self.stopped = str(error)
                    print(f"\ntandem-bench: {error}", file=sys.stderr, flush=True)
                self.folder.release_reserve()
                if self.collecting is None:
                    return None
                try:
                    return self._finished()
                except Stopped as stop:
                    # While it was ending: what was measured is still kept, and a second signal ends it at once.
                    self.stopped, self.by_user = self.stopped or str(stop), True
                    print(f"\nstopping ({stop}) once the report is written", flush=True)
                    return self._finished()
        finally:
            self.folder.release_reserve()
            self._give_everything()

    # --- start -------------------------------------------------------------------------------------------------------

    def _tool(self, program: str, *args: str) -> list[str]:
        """``python -m program args``: the same interpreter, whatever PATH says."""
        return [sys.executable, "-m", program, *args]

    def _server(self, *args: str, capabilities: Sequence[str] = ()) -> list[str]:
        return self.rig.command("server", confined(self._tool("tandem_server", *args), self.owner, capabilities))

    def _probe(self, *args: str) -> list[str]:
        """``tandem args`` on the probe, by the collector's configuration."""
        argv = self._tool("tandem", *args, "--config", str(self._collector_toml))
        return self.rig.command("probe", confined(argv, self.owner))

    def _start_server(self) -> None:
        print("starting the server …", flush=True)
        configuration.start_server(
            self.programs, self._server, self.folder.server, self._probes(), self.owner, self._influxd, self.rig.server_address
        )  # fmt: skip

    def _probes(self) -> dict[str, Path]:
        """By name their folders, which are there."""
        return {PROBE: self.folder.probe}

    def _start_collector(self) -> None:
        print("starting the collector …", flush=True)
        self._run_collector()
        if (late := self.rig.now_s()) > 0:
            print(f"tandem-bench: the collector was ready {late:.1f} s after the scenario began", file=sys.stderr)

    def _run_collector(self) -> None:
        text = configuration.collector_toml(
            PROBE, self.rig.probe_paths(), seed=self.played.seed, **self._collector_options()
        )
        self._write(self._collector_toml, text)
        self._write_campaign()
        argv = self._tool("tandem", "run", "--config", str(self._collector_toml))
        command = self.rig.command("probe", confined(argv, self.owner, COLLECTOR))
        self.collecting = self.programs.start("collector", command)
        self.collecting.await_ready(READY_S)

    def _collector_options(self) -> dict[str, Any]:
        """Of ``collector_toml``, where the rehearsal itself says what is measured when."""
        return {"run_seconds": 5.0, "pause_s": 0.5, "on_mobility_start": "off"}

    def _write(self, path: Path, text: str) -> None:
        path.write_text(text)
        self.owner.give(path)

    # --- play --------------------------------------------------------------------------------------------------------

    def _play(self) -> None:
        raise NotImplementedError

    def _wait_for(self, t_s: float) -> None:
        """Until the scenario's second ``t_s``; ProgramError as ``_look``."""
        while (left := t_s - self.rig.now_s()) > 0:
            self._look()
            time.sleep(min(left, 0.2))

    def _look(self, *may_end: Program) -> None:
        """ProgramError when something that must run does not."""
        others = (program for program in self.programs.started if program not in may_end)
        if why := self.folder.full() or next((w for p in others if (w := p.failed())), None) or self.rig.failed():
            raise ProgramError(why)

    # --- end ---------------------------------------------------------------------------------------------------------

    def _finished(self) -> int:
        """As ``_finish``; ProgramError when the disk is full even then."""
        try:
            return self._finish()
        except OSError as error:
            full = self.folder.full()
            if full is None:
                raise
            told = self.stopped is not None  # by the line that said why it ends early
            raise ProgramError(f"no report; what was measured lies in {self.folder.root}" if told else full) from error

    def _finish(self) -> int:
        """End the collector (it sends what is left), then everything that moves; write truth and campaign; report."""
        print("ending the collector: it sends what is left …", flush=True)
        self._end("watch", 3)
        self._end("first-pair", 3)
        self._end("collector", COLLECTOR_END_S)
        self._radio_usage = self.rig.stop_radio()
        self.rig.write_truth(self.folder.truth)
        for role in ("worker", "gateway", "endpoint"):
            self._end(role)
        self._write_campaign(ended=True)
        self._before_report()
        print("writing the report …", flush=True)
        words = ("report", str(self.folder.root), "--config", str(self._server_toml), *self.report_words)
        status = self._run_server(*words, timeout_s=self.report_s).returncode
        if not self.folder.summary.exists():
            raise ProgramError(f"tandem-server report failed (log: {self.folder.logs / 'report.log'})")
        return status

    def _end(self, begins: str, timeout_s: float = 10.0) -> None:
        """End the programs whose names begin so."""
        for program in [p for p in self.programs.started if p.name.startswith(begins)]:
            self.programs.end(program, timeout_s)

    def _run_server(self, *words: str, timeout_s: float = REPORT_S) -> subprocess.CompletedProcess[str]:
        """Run ``tandem-server`` to its end, what it complains of in its log. ProgramError where its status is neither 0 nor 1."""
        with (self.folder.logs / f"{words[0]}.log").open("a") as log:
            try:
                done = subprocess.run(
                    self._server(*words), stdout=subprocess.PIPE, stderr=log, text=True, timeout=timeout_s, start_new_session=True,
                    check=False,
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                raise ProgramError(
                    f"tandem-server {words[0]} did not end within {timeout_s:.0f} s (log: {log.name})"
                ) from None
        if done.returncode not in (0, 1):
            raise ProgramError(f"tandem-server {words[0]} failed with status {done.returncode} (log: {log.name})")
        return done

    def _before_report(self) -> None:
        """Everything is written but the report."""

    def _write_campaign(self, *, ended: bool = False) -> None:
        now_utc, now_monotonic = time.time_ns(), time.monotonic_ns()
        epoch_ns = self.rig.epoch_monotonic_ns
        # What the report itself still needs is told with its use so far.
        running = [Usage(p.name, *usage_so_far(p.pid), exit=None) for p in self.programs.started] if ended else []
        self.folder.write_campaign(
            {
                "format": "tandem-campaign/1",
                "scenario": self.played.name,
                "seed": self.played.seed,
                "duration_s": self.duration_s,
                "started_utc_ns": now_utc - (now_monotonic - epoch_ns),
                "started_monotonic_ns": epoch_ns,
                "boot": Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
                "ended_utc_ns": now_utc if ended else None,
                "stopped": self.stopped if ended else "it is still running, or was killed",
                "probe": PROBE,
                "paths": {p.name: {"operator": p.operator, "interface": p.interface} for p in self.rig.probe_paths()},
                "processes": [usage.as_json() for usage in self.programs.ended + self._radio_usage + running],
                "versions": versions(self._influxd),
                **self._told(),
                "store": {"url": f"http://127.0.0.1:{configuration.DATABASE_PORT}", "database": "tandem"},
            },
            self.owner,
        )

    def _told(self) -> dict[str, object]:
        """Further keys of campaign.json."""
        return {}

    def _give_everything(self) -> None:
        """Links and truth are written as root; the results belong to the caller."""
        for path in (self.folder.root, *self.folder.root.rglob("*")):
            if path.lstat().st_uid != self.owner.uid and not path.is_symlink():
                self.owner.give(path)


class Demo(Rehearsal):
    """The live view, one sequential pair by the first still phase as ``plan`` has it, and simultaneous pairs when mobility starts."""

    def __init__(self, rig: Rig, folder: DemoFolder, influxd: Path, plan: Plan) -> None:
        super().__init__(rig, folder, influxd)
        self.plan = plan
        self._download: tuple[Program, list[str]] | None = None

    def _collector_options(self) -> dict[str, Any]:
        return {"run_seconds": self.plan.run_seconds, "pause_s": self.plan.first_pause_s}

    def _play(self) -> None:
        socket = self.folder.probe / "status.sock"
        watching = confined(self._tool("tandem", "watch", "--socket", str(socket)), self.owner)
        view = self.programs.start("watch", watching, terminal=True)
        self._downloads(view)
        self._until(self.duration_s, view)
        # On a busy machine the pair is late: the links stay in the scenario's last instant while it ends.
        self._until(self.duration_s + FIRST_PAIR_LATE_S, view, pair=True)
        self.programs.end(view, 3)

    def _downloads(self, view: Program) -> None:
        self._until(self.plan.first_start_s, view)
        self._start_download(["--pairing", "sequential", "--seconds", str(self.plan.first_seconds)])

    def _start_download(self, words: list[str]) -> None:
        """Tell the collector to make it, as an operator would."""
        command = self._probe("experiment", "run", "download", "--json", *words)
        self._download = self.programs.start("first-pair", command, silent=True), words

    def _tend_download(self) -> bool:
        """When the collector refused it because another pair was under way, ask again. Whether it is under way."""
        if self._download is not None and self._download[0].poll() is not None:
            program, words = self._download
            self._download = None
            if self.programs.end(program).exit == REFUSED:
                self._start_download(words)
        return self._download is not None

    def _until(self, t_s: float, view: Program, *, pair: bool = False) -> None:
        """Wait for the scenario's second ``t_s``, with ``pair`` no longer than the first pair takes; ProgramError when a program that
        must run has ended."""
        while (left := t_s - self.rig.now_s()) > 0:
            if not self._tend_download() and pair:
                return
            if view.poll() is not None:
                self.programs.end(view)
            self._look(view, *(self._download or ())[:1])
            time.sleep(min(left, 0.2))


class Replaying(Demo):
    """Plays ``drive``: nothing begins by movement, and what the drive downloaded is downloaded when it was."""

    report_words = ("--records",)

    def __init__(self, rig: Rig, folder: DemoFolder, influxd: Path, plan: Plan, drive: Drive) -> None:
        super().__init__(rig, folder, influxd, plan)
        self._drive = drive

    def _collector_options(self) -> dict[str, Any]:
        return {"run_seconds": self.plan.run_seconds, "pause_s": 0.5, "on_mobility_start": "off"}

    def _told(self) -> dict[str, object]:
        one = self._drive
        return {"replayed": {"probe": one.probe, "started_utc_ns": one.started_utc_ns, "paths": dict(one.paths)}}

    def _downloads(self, view: Program) -> None:
        for one in self._drive.repeats:
            # One that is due while another goes on begins after it.
            self._until(max(one.t_s, self.rig.now_s()), view)
            while self._tend_download():
                self._until(self.rig.now_s() + 0.2, view)
            self._start_download(_words(one, self.plan.run_seconds))


def _words(one: Repeat, otherwise_s: float) -> list[str]:
    """Of ``tandem experiment run download``."""
    words = ["--pairing", one.pairing] if one.pairing else ["--kind", one.kind]
    if one.path is not None and not one.pairing:
        words += ["--path", one.path]
    if one.bytes is not None:
        return [*words, "--bytes", str(one.bytes)]
    return [*words, "--seconds", f"{one.seconds or otherwise_s:g}"]


def rehearse(folder: DemoFolder, make: Callable[[Owner, Path], R], says: str) -> tuple[int, R]:
    """Look at the machine, go into namespaces of our own and play what ``make`` gives, of owner and influxd: the report's status and what
    was played. BenchError when there is no report. ``says``: before it begins."""
    owner = Owner.of_caller()
    require()
    influxd = find_influxd()
    private.enter()
    StopSignals().install()
    try:
        rehearsal = make(owner, influxd)
        folder.make(owner)
        print(says, flush=True)
        arrived = rehearsal.run()
    except Stopped as stop:
        raise BenchError(f"stopped ({stop}) before anything was measured", ExitCode.INTERRUPTED) from None
    except OSError as error:
        raise BenchError(folder.full() or str(error)) from error
    if arrived is None:
        raise BenchError(f"nothing was measured; logs in {folder.logs}", ended_early(rehearsal))
    return arrived, rehearsal


def ended_early(rehearsal: Rehearsal) -> ExitCode:
    """The status of a command whose rehearsal did not come to its end."""
    return ExitCode.INTERRUPTED if rehearsal.by_user else ExitCode.ENVIRONMENT
