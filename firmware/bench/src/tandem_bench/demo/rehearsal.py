"""The rehearsal, step by step: build, start, play, end, report. Runs as root inside namespaces of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tandem_bench.demo import configuration
from tandem_bench.demo.folder import PROBE, DemoFolder
from tandem_bench.demo.plan import Plan
from tandem_bench.demo.server import start_server
from tandem_bench.demo.stopping import Stopped
from tandem_bench.demo.versions import versions
from tandem_bench.link.emulator import LinkError
from tandem_bench.rig.programs import READY_S, Program, ProgramError, Programs, Usage, usage_so_far
from tandem_bench.rig.rig import Rig
from tandem_bench.rig.rights import COLLECTOR, Owner, confined
from tandem_bench.topology.requirements import MachineError

COLLECTOR_END_S = 60.0
"""The collector ends a run, sends what is left (``drain_s`` of its configuration: 30 s) and writes its account."""


FIRST_PAIR_LATE_S = 60.0
"""How long after the scenario's end the first pair, which a rehearsal always makes, may still take."""

REPORT_S = 600.0
REFUSED = 3
"""Exit status of ``tandem experiment run`` when the collector does not take it now."""


@dataclass(frozen=True)
class Setting:
    """What was asked for, checked."""

    scenario: str
    seed: int
    duration_s: float
    plan: Plan
    keep: bool
    influxd: Path
    link: Path | None
    """The program tandem-link; None with netem."""


class Rehearsal:
    """One rehearsal in ``folder``. ``run`` plays it; ``stopped`` then says why it ended early, if it did."""

    report_s = REPORT_S
    report_words: tuple[str, ...] = ()

    def __init__(self, setting: Setting, folder: DemoFolder, owner: Owner, rig: Rig) -> None:
        self.setting = setting
        self.folder = folder
        self.owner = owner
        self.rig = rig
        self.programs = Programs(folder.logs)
        self.stopped: str | None = None
        self.by_user = False
        self.collecting: Program | None = None
        self._first_pair: Program | None = None
        self._words = ["--pairing", "sequential", "--seconds", str(setting.plan.first_seconds)]
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

    def _start_server(self) -> None:
        print("starting database, gateway and endpoint …", flush=True)
        start_server(
            self.programs, self._server, self.folder.server, self._probes(), self.owner, self.setting.influxd, self.rig.server_address
        )  # fmt: skip

    def _probes(self) -> dict[str, Path]:
        """By name their folders, which are there."""
        return {PROBE: self.folder.probe}

    def _start_collector(self) -> None:
        print("starting the collector …", flush=True)
        self._run_collector()
        late = time.monotonic() - self.rig.epoch_monotonic_ns / 1e9
        if late > 0:
            print(f"tandem-bench: the collector was ready {late:.1f} s after the scenario began", file=sys.stderr)

    def _run_collector(self) -> None:
        self._write(self._collector_toml, self._collector_text())
        self._write_campaign()
        argv = self._tool("tandem", "run", "--config", str(self._collector_toml))
        command = self.rig.command("probe", confined(argv, self.owner, COLLECTOR))
        self.collecting = self.programs.start("collector", command)
        self.collecting.await_ready(READY_S)

    def _collector_text(self) -> str:
        plan = self.setting.plan
        return configuration.collector_toml(
            PROBE, self.rig.probe_paths(), plan.run_seconds, plan.first_pause_s, self.setting.seed
        )

    def _write(self, path: Path, text: str) -> None:
        path.write_text(text)
        self.owner.give(path)

    # --- play --------------------------------------------------------------------------------------------------------

    def _play(self) -> None:
        socket = self.folder.probe / "status.sock"
        view = self.programs.start("watch", self._watching(socket), terminal=True)
        plan = self.setting.plan
        self._until(plan.first_start_s, view)
        self._start_first_pair()
        self._until(self.setting.duration_s, view)
        # On a busy machine the pair is late: the links stay in the scenario's last instant while it ends.
        self._until(self.setting.duration_s + FIRST_PAIR_LATE_S, view, pair=True)
        self.programs.end(view, 3)

    def _watching(self, socket: Path) -> list[str]:
        return confined(self._tool("tandem", "watch", "--socket", str(socket)), self.owner)

    def _played_s(self) -> float:
        return time.monotonic() - self.rig.epoch_monotonic_ns / 1e9

    def _start_first_pair(self) -> None:
        """Tell the collector to make the sequential pair, as an operator would."""
        told = self._tool("tandem", "experiment", "run", "download", "--config", str(self._collector_toml), "--json")
        told += self._words
        command = self.rig.command("probe", confined(told, self.owner))
        self._first_pair = self.programs.start("first-pair", command, silent=True)

    def _tend_first_pair(self) -> bool:
        """When the collector refused it because another pair was under way, ask again. Whether it is under way."""
        if self._first_pair is not None and self._first_pair.poll() is not None:
            refused = self.programs.end(self._first_pair).exit == REFUSED
            self._first_pair = None
            if refused:
                self._start_first_pair()
        return self._first_pair is not None

    def _until(self, t_s: float, view: Program, *, pair: bool = False) -> None:
        """Wait for the scenario's second ``t_s``, with ``pair`` no longer than the first pair takes; ProgramError when a program that
        must run has ended."""
        while (left := self.rig.epoch_monotonic_ns / 1e9 + t_s - time.monotonic()) > 0:
            if not self._tend_first_pair() and pair:
                return
            if view.poll() is not None:
                self.programs.end(view)
            if why := self.folder.full() or self.programs.watch() or self.rig.failed():
                raise ProgramError(why)
            time.sleep(min(left, 0.2))

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
        assert self.collecting is not None  # noqa: S101  # checked by the caller
        print("ending the collector: it sends what is left …", flush=True)
        for name in ("watch", "first-pair"):
            for program in [p for p in self.programs.started if p.name == name]:
                self.programs.end(program, 3)
        self.programs.end(self.collecting, COLLECTOR_END_S)
        self._radio_usage = self.rig.stop_radio()
        self.rig.write_truth(self.folder.truth)
        for program in [p for p in self.programs.started if p.name in ("gateway", "endpoint")]:
            self.programs.end(program)
        self._write_campaign(ended=True)
        self._before_report()
        print("writing the report …", flush=True)
        command = self._server("report", str(self.folder.root), "--config", str(self._server_toml), *self.report_words)
        with (self.folder.logs / "report.log").open("w") as log:
            try:
                report = subprocess.run(
                    command,
                    stdout=subprocess.DEVNULL,
                    stderr=log,
                    timeout=self.report_s,
                    start_new_session=True,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                raise ProgramError(
                    f"tandem-server report did not end within {self.report_s:.0f} s (log: {log.name})"
                ) from None
        if report.returncode not in (0, 1) or not self.folder.summary.exists():
            raise ProgramError(
                f"tandem-server report failed with status {report.returncode} (log: {self.folder.logs / 'report.log'})"
            )
        return report.returncode

    def _before_report(self) -> None:
        """Everything is written but the report."""

    def _write_campaign(self, *, ended: bool = False) -> None:
        now_utc, now_monotonic = time.time_ns(), time.monotonic_ns()
        epoch_ns = self.rig.epoch_monotonic_ns
        started_utc = now_utc - (now_monotonic - epoch_ns)
        self.folder.write_campaign(
            {
                "format": "tandem-campaign/1",
                "scenario": self.setting.scenario,
                "seed": self.setting.seed,
                "duration_s": self.setting.duration_s,
                "started_utc_ns": started_utc,
                "started_monotonic_ns": epoch_ns,
                "boot": Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
                "ended_utc_ns": now_utc if ended else None,
                "stopped": self.stopped if ended else "it is still running, or was killed",
                "probe": PROBE,
                "paths": {p.name: {"operator": p.operator, "interface": p.interface} for p in self.rig.probe_paths()},
                "processes": [usage.as_json() for usage in self.programs.ended + self._radio_usage]
                + (self._still_running() if ended else []),
                "versions": versions(self.setting.influxd, self.setting.link),
                **self._told(),
                "store": {"url": f"http://127.0.0.1:{configuration.DATABASE_PORT}", "database": "tandem"},
            },
            self.owner,
        )

    def _told(self) -> dict[str, object]:
        """Further keys of campaign.json."""
        return {}

    def _still_running(self) -> list[dict[str, object]]:
        """What the report itself still needs: its use so far."""
        running = [(program.name, program.pid) for program in self.programs.started]
        return [
            {"name": name, "cpu_seconds": round(cpu_seconds, 3), "max_rss_bytes": max_rss_bytes, "exit": None}
            for name, pid in running
            for cpu_seconds, max_rss_bytes in [usage_so_far(pid)]
        ]

    def _give_everything(self) -> None:
        """Links and truth are written as root; the results belong to the caller."""
        for path in (self.folder.root, *self.folder.root.rglob("*")):
            if path.lstat().st_uid != self.owner.uid and not path.is_symlink():
                self.owner.give(path)


def summary_of(folder: DemoFolder) -> dict[str, object]:
    """``summary.json`` as the report wrote it."""
    loaded: dict[str, object] = json.loads(folder.summary.read_text())
    return loaded
