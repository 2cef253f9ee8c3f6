"""The example campaign: what all the papers' figures need, measured by the real kit in a few minutes on the bench.

Which campaign file when, under which label, over links made how; the rehearsal's programs, and one campaign after the other handed to the
collector.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

from tandem_bench.run.folder import DemoFolder
from tandem_bench.run.programs import Program, ProgramError, once
from tandem_bench.run.rehearsal import COLLECTOR_END_S, Rehearsal
from tandem_bench.run.rig import WIFI as WIFI_LINK
from tandem_bench.run.rig import Rig

FILES = Path(__file__).with_name("campaigns")
SCENARIO = Path(__file__).with_name("example.toml")
OPERATOR, WIFI = "a", "wifi"
"""The paths of the bench that play cellular and Wi-Fi, and path 1 and path 2."""
SITES = {f"site-{number}.tandem.test": IPv4Address(f"192.88.99.{number}") for number in range(1, 6)}
"""What the survey looks at: names of the bench's resolvers, at addresses of a block that nobody uses any more."""
FAILED_ON_THE_NETWORK = 1
EXPECTED_LACKING = ("chen-8", "chen-11", "trips-tail", "trips-quantiles", "trips-impaired")
"""Chen's simultaneous SYN was a patch to a kernel, and his endless backlog takes minutes at these rates; round trips all the time are no
campaign's, and off unless asked for."""
WIDTH = 100


# --- the acts: plain values ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Shape:
    """What the bench does to Wi-Fi's link, beside its own: added round-trip time in ms, loss of what comes in percent."""

    rtt_ms: float = 0.0
    down_loss_percent: float = 0.0


@dataclass(frozen=True, slots=True)
class Act:
    """One campaign, from its text on. ``phase``: it is not begun before this part of the way. ``paths``: by role."""

    name: str
    text: str
    phase: str
    label: str = ""
    paths: dict[str, str] = field(default_factory=dict)
    shape: Shape | None = None


TOGETHER, LONG, IN_TURN = ("simultaneous", "4"), ("simultaneous", "11"), ("sequential", "2")
"""How Multipath TCP and TCP are compared, and for how many seconds: at the same time, since the radio changes (longer where it does so
often, so that some changes are apart from others); or one after the other, since a capture then holds one run's packets alone."""
MOBILITY = (
    ("home", "stationary", (IN_TURN, TOGETHER)),
    ("walk", "walking", (LONG, IN_TURN)),
    ("ring road", "driving", (LONG, LONG, LONG, IN_TURN)),
)
"""Part of the way, its label, and the comparisons there."""
SETTINGS = {"equal": Shape(), "slower": Shape(rtt_ms=100.0), "lossier": Shape(down_loss_percent=5.0)}
BUSY = Shape(rtt_ms=10.0, down_loss_percent=4.0)
"""A hot spot that others use (Chen et al., Table 4: 3 to 5 % lost)."""
CELLULAR = {"wifi": WIFI, "cellular": OPERATOR}
ORDERED = {"path1": OPERATOR, "path2": WIFI}
LAST = "arrived"


def on_the_way(seed: int) -> list[Act]:
    """What is captured: Mohan's downloads in every part of the way."""
    return [Act(f"mohan-{label}", _labelled(label, pairs, seed), phase, label) for phase, label, pairs in MOBILITY]


def in_place(seed: int) -> list[Act]:
    """What is measured where the probe lies still at the end."""
    acts = [_act(name, seed) for name in ("mohan-congestion", "mohan-dash")]
    acts += [_act(name, seed, CELLULAR) for name in ("adarsh-survey", "chen-sizes")]
    acts += [
        replace(_act("chen-hotspot", seed, CELLULAR), shape=BUSY),
        _act("cordero", seed),
        _act("cordero-remote", seed),
    ]
    for where in ("controlled", "field"):
        acts += [
            Act(f"adarsh-{where}-{setting}", _filled(f"adarsh-{where}", SETTING=setting, SEED=str(seed)), LAST, "", ORDERED, shape)
            for setting, shape in SETTINGS.items()
        ]  # fmt: skip
    return acts


def _labelled(label: str, pairs: Sequence[tuple[str, str]], seed: int) -> str:
    steps = (
        _filled("mohan-step", NUMBER=str(number), PAIRING=pairing, SECONDS=seconds, LABEL=label)
        for number, (pairing, seconds) in enumerate(pairs, 1)
    )
    return _filled("mohan", LABEL=label, SEED=str(seed)) + "".join(steps)


def _act(name: str, seed: int, paths: dict[str, str] | None = None) -> Act:
    return Act(name, _filled(name, SEED=str(seed)), LAST, paths=paths or {})


def _filled(name: str, **words: str) -> str:
    """A file's text. Comments say what the words in capitals are; they are filled in as well, which harms nothing."""
    text = (FILES / f"{name}.toml").read_text()
    for word, value in words.items():
        text = text.replace(word, value)
    return text


# --- the stage -------------------------------------------------------------------------------------------------------


class Example(Rehearsal):
    """Plays ``on_the_way`` with captures, then ``in_place`` without; analyses the captures before the report."""

    analyse_s = 300.0

    def __init__(self, rig: Rig, folder: DemoFolder, influxd: Path) -> None:
        super().__init__(rig, folder, influxd)
        self.failed_acts: list[str] = []
        self._captures = True
        self._files = folder.root / "campaigns"

    def _start_server(self) -> None:
        super()._start_server()
        config = ["--config", str(self._server_toml)]
        seed = ["--seed", str(self.played.seed)]
        print("making a video and a page …", flush=True)
        once("tandem-server dash build", self._server("dash", "build", *config, *seed, "--seconds", "32"))
        page = ("--objects", "8", "--bytes", "80000", "--origins", "3")
        once("tandem-server page build", self._server("page", "build", *config, *seed, *page))
        self._write(self.folder.probe / "names.csv", "".join(f"{n},{name}\n" for n, name in enumerate(SITES, 1)))
        self._files.mkdir()
        self.owner.give(self._files)

    def _collector_options(self) -> dict[str, Any]:
        return {**super()._collector_options(), "capture": self._captures}

    def _play(self) -> None:
        begins = {phase["name"]: float(phase["t_s"]) for phase in self.played.phases}
        moving, still = on_the_way(self.played.seed), in_place(self.played.seed)
        for number, act in enumerate(moving + still, 1):
            self._wait_for(begins[act.phase])
            if act is still[0]:
                self._without_captures()
            print(f"  {number:2} of {len(moving) + len(still)}  {self.rig.now_s():6.0f} s  {act.name}", flush=True)
            self._perform(act)
        self._wait_for(self.duration_s)

    def _without_captures(self) -> None:
        """The collector begins anew: what follows is measured by sockets alone, and a capture takes seconds to begin and to end."""
        self._end("collector", COLLECTOR_END_S)
        self._captures = False
        self._run_collector()

    def _campaign(self, name: str, text: str, *words: str) -> list[str]:
        """Hand a campaign file to the collector."""
        file = self._files / f"{name}.toml"
        self._write(file, text)
        return self._probe("campaign", "run", str(file), *words)

    def _perform(self, act: Act) -> None:
        words = [word for role, path in act.paths.items() for word in ("--path", f"{role}={path}")]
        words += ["--label", act.label] if act.label else []
        command = self._campaign(act.name, act.text, "--allow-substitutes", "--wait", "--json", *words)
        began_ns = time.monotonic_ns()
        if act.shape is not None:
            self._shape(act.shape)
        running: Program = self.programs.start(f"campaign-{act.name}", command, silent=True)
        try:
            while running.wait(0.2) is None:
                self._look(running)
        finally:
            status = self.programs.end(running, 3).exit
            if act.shape is not None:
                self._unshape(act.shape, began_ns)
        if status == FAILED_ON_THE_NETWORK:
            self.failed_acts.append(act.name)
        elif status != 0:
            raise ProgramError(f"the campaign {act.name} failed with status {status} (log: {running.log})")

    def _shape(self, shape: Shape) -> None:
        link = self.rig.topology.links[WIFI]
        link.set("both", "delay_us", round((WIFI_LINK.rtt_ms + shape.rtt_ms) / 2 * 1000))
        link.set("down", "loss", shape.down_loss_percent / 100)

    def _unshape(self, shape: Shape, began_monotonic_ns: int) -> None:
        link = self.rig.topology.links[WIFI]
        link.clear("both", "delay_us")
        link.clear("down", "loss")
        until_s = round(self.rig.now_s(), 4)
        told = {WIFI: {"rtt_ms": shape.rtt_ms, "down_loss_percent": shape.down_loss_percent}, OPERATOR: {"rtt_ms": 0.0}}
        self.rig.later.append({"type": "shape", "monotonic_ns": began_monotonic_ns, "until_s": until_s, "paths": told})

    def _before_report(self) -> None:
        print("analysing the captures …", flush=True)
        # What the server captured itself, of runs that asked for both ends'; the probe's, which it may have too, are the probe's here.
        its_own = map(str, sorted(self.folder.server.glob("traces/*/captures/server")))
        out = ("--out", str(self.folder.root / "traces"), "--workers", "1")
        self._run_server("analyse", str(self.folder.probe.parent), *its_own, *out, timeout_s=self.analyse_s)

    # --- what the command says at its end

    def outcome(self) -> dict[str, Any]:
        """Which figures are drawn, which are lacking and why, of how many runs."""
        summary, figures = self.folder.read_summary(), self._figures()
        return {
            "scenario": summary["scenario"],
            "seed": summary["seed"],
            "runs": sum(step["measured"] or 0 for c in summary["campaigns"] for step in c["steps"]),
            "campaigns": sorted(c["name"] for c in summary["campaigns"] if c["name"]),
            "campaigns_with_failures": self.failed_acts,
            "drawn": [f["name"] for f in figures if f["drawn"]],
            "lacking": {f["name"]: f["lacks"] for f in figures if not f["drawn"]},
            "interrupted": summary["interrupted"],
        }

    def text(self, _outcome: dict[str, Any]) -> str:
        """The same for a person."""
        return table(self._figures())

    def good(self, outcome: dict[str, Any]) -> bool:
        """Whether everything is there that can be."""
        return not self.failed_acts and set(outcome["lacking"]) <= set(EXPECTED_LACKING)

    def _figures(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads((self.folder.root / "figures" / "figures.json").read_text())
        return found


def table(figures: Sequence[dict[str, Any]]) -> str:
    """A line a figure, by paper."""
    names = max((len(f["label"]) for f in figures), default=0)
    lines = []
    paper = ""
    for figure in figures:
        if figure["paper"] != paper:
            paper = figure["paper"]
            mine = [f for f in figures if f["paper"] == paper]
            lines += ["", f"  {paper}: {sum(f['drawn'] for f in mine)} of {len(mine)} figures"]
        text = figure["title"] if figure["drawn"] else f"LACKING: {figure['lacks']}"
        lines.append(f"    {figure['label']:<{names}}  {text[:WIDTH]}")
    return "\n".join(lines)
