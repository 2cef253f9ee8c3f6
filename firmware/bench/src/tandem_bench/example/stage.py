"""The example campaign on the bench: the rehearsal's programs, and one campaign after the other handed to the collector."""

from __future__ import annotations

import json
import subprocess
import time
from ipaddress import IPv4Address
from pathlib import Path

from tandem_bench.demo import configuration
from tandem_bench.demo.folder import PROBE, DemoFolder
from tandem_bench.demo.rehearsal import COLLECTOR_END_S, Rehearsal, Setting
from tandem_bench.example.acts import OPERATOR, WIFI, Act, Shape, in_place, on_the_way
from tandem_bench.rig.programs import Program, ProgramError, once
from tandem_bench.rig.rig import WIFI as WIFI_LINK
from tandem_bench.rig.rig import Rig
from tandem_bench.rig.rights import Owner, confined

SITES = {f"site-{number}.tandem.test": IPv4Address(f"192.88.99.{number}") for number in range(1, 6)}
"""What the survey looks at: names of the bench's resolvers, at addresses of a block that nobody uses any more."""
FAILED_ON_THE_NETWORK = 1
ANALYSE_S = 300.0


class Example(Rehearsal):
    """Plays ``on_the_way`` with captures, then ``in_place`` without; analyses the captures before the report."""

    analyse_s = ANALYSE_S

    def __init__(self, setting: Setting, folder: DemoFolder, owner: Owner, rig: Rig) -> None:
        super().__init__(setting, folder, owner, rig)
        self.failed_acts: list[str] = []
        self._captures = True
        self._files = folder.root / "campaigns"

    def _start_server(self) -> None:
        super()._start_server()
        config = ["--config", str(self._server_toml)]
        seed = ["--seed", str(self.setting.seed)]
        print("making a video and a page …", flush=True)
        once("tandem-server dash build", self._server("dash", "build", *config, *seed, "--seconds", "32"))
        page = ("--objects", "8", "--bytes", "80000", "--origins", "3")
        once("tandem-server page build", self._server("page", "build", *config, *seed, *page))
        self._write(self.folder.probe / "names.csv", "".join(f"{n},{name}\n" for n, name in enumerate(SITES, 1)))
        self._files.mkdir()
        self.owner.give(self._files)

    def _collector_text(self) -> str:
        return configuration.collector_toml(
            PROBE, self.rig.probe_paths(), 5.0, 0.5, self.setting.seed, on_mobility_start="off", capture=self._captures
        )

    def _play(self) -> None:
        begins = {phase["name"]: float(phase["t_s"]) for phase in self.rig.played.phases}
        seed = self.setting.seed
        moving, still = on_the_way(seed), in_place(seed)
        for number, act in enumerate(moving + still, 1):
            self._wait_for(begins[act.phase])
            if act is still[0]:
                self._without_captures()
            print(f"  {number:2} of {len(moving) + len(still)}  {self._now_s():6.0f} s  {act.name}", flush=True)
            self._perform(act)
        self._wait_for(self.setting.duration_s)

    def _now_s(self) -> float:
        return (time.monotonic_ns() - self.rig.epoch_monotonic_ns) / 1e9

    def _wait_for(self, t_s: float) -> None:
        while (left := t_s - self._now_s()) > 0:
            self._look()
            time.sleep(min(left, 0.2))

    def _look(self) -> None:
        """ProgramError when something that must run does not."""
        if why := self.folder.full() or self.programs.watch() or self.rig.failed():
            raise ProgramError(why)

    def _without_captures(self) -> None:
        """The collector begins anew: what follows is measured by sockets alone, and a capture takes seconds to begin and to end."""
        assert self.collecting is not None  # noqa: S101  # it was started before anything is played
        self.programs.end(self.collecting, COLLECTOR_END_S)
        self._captures = False
        self._run_collector()

    def _perform(self, act: Act) -> None:
        file = self._files / f"{act.name}.toml"
        self._write(file, act.text)
        told = self._tool("tandem", "campaign", "run", str(file), "--config", str(self._collector_toml))
        told += ["--allow-substitutes", "--wait", "--json"]
        told += [word for role, path in act.paths.items() for word in ("--path", f"{role}={path}")]
        if act.label:
            told += ["--label", act.label]
        began = time.monotonic_ns()
        if act.shape is not None:
            self._shape(act.shape)
        running = self.programs.start(
            f"campaign-{act.name}", self.rig.command("probe", confined(told, self.owner)), silent=True
        )
        try:
            self._until_ended(running)
        finally:
            status = self.programs.end(running, 3).exit
            if act.shape is not None:
                self._unshape(act.shape, began)
        if status == FAILED_ON_THE_NETWORK:
            self.failed_acts.append(act.name)
        elif status != 0:
            raise ProgramError(f"the campaign {act.name} failed with status {status} (log: {running.log})")

    def _until_ended(self, running: Program) -> None:
        while running.wait(0.2) is None:
            others = [p for p in self.programs.started if p is not running]
            if why := self.folder.full() or next((w for p in others if (w := p.failed())), None) or self.rig.failed():
                raise ProgramError(why)

    def _shape(self, shape: Shape) -> None:
        link = self.rig.topology.links[WIFI]
        link.set("both", "delay_us", round((WIFI_LINK.rtt_ms + shape.rtt_ms) / 2 * 1000))
        link.set("down", "loss", shape.down_loss_percent / 100)

    def _unshape(self, shape: Shape, began_monotonic_ns: int) -> None:
        link = self.rig.topology.links[WIFI]
        for scope, quantity in (("both", "delay_us"), ("down", "loss")):
            link.clear(scope, quantity)  # type: ignore[arg-type]  # of the literals that it takes
        until_s = round(self._now_s(), 4)
        told = {WIFI: {"rtt_ms": shape.rtt_ms, "down_loss_percent": shape.down_loss_percent}, OPERATOR: {"rtt_ms": 0.0}}
        self.rig.later.append({"type": "shape", "monotonic_ns": began_monotonic_ns, "until_s": until_s, "paths": told})

    def _before_report(self) -> None:
        print("analysing the captures …", flush=True)
        out = self.folder.root / "traces"
        # What the server captured itself, of runs that asked for both ends'; the probe's, which it may have too, are the probe's here.
        its_own = map(str, sorted(self.folder.server.glob("traces/*/captures/server")))
        argv = ("analyse", str(self.folder.probe.parent), *its_own, "--out", str(out), "--workers", "1")
        with (self.folder.logs / "analyse.log").open("w") as log:
            try:
                done = subprocess.run(
                    self._server(*argv),
                    stdout=log,
                    stderr=log,
                    timeout=self.analyse_s,
                    start_new_session=True,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                raise ProgramError(
                    f"tandem-server analyse did not end within {self.analyse_s:.0f} s ({log.name})"
                ) from None
        if done.returncode not in (0, 1):
            raise ProgramError(f"tandem-server analyse failed with status {done.returncode} (log: {log.name})")


def figures_of(folder: DemoFolder) -> list[dict[str, str]]:
    """Which figures the report drew, and what the others lack."""
    told: list[dict[str, str]] = json.loads(Path(folder.root / "figures" / "figures.json").read_text())
    return told
