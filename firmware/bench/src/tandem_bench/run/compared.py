"""A campaign file's arms compared on the bench: each block's runs are made under the same stretch of a scenario, from the same instant on.

The file's steps begin by hand here, and the bench is the hand: it begins one run in each repetition of a stretch. A block is one stretch,
played for each of the block's runs and once more, for a run that was late; the next block has the scenario's next seed.
"""

from __future__ import annotations

import json
import math
import os
import socket
import subprocess
import sys
import time
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tandem_bench import UsageError
from tandem_bench.run.example import Example
from tandem_bench.run.folder import DemoFolder
from tandem_bench.run.programs import ProgramError, once
from tandem_bench.run.rig import Rig
from tandem_bench.scenario import Played, load, play, repeated

SPARE = 1
"""Repetitions of a stretch beyond a block's runs."""
CAPTURE_BYTES = 6_000_000_000
"""30 blocks of 8 runs of 20 s at 25 Mbit/s leave about 2.5 GB at the snap length."""
PATIENCE_S = 1200.0
"""For one run: after three failures in a row the collector waits up to ten minutes."""


class FileError(UsageError):
    """The campaign's file cannot be played; one line."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """``text``: the file, made ready for the bench; ``runs``: by step, of one block; ``paths``: its roles. ``stretch_s``: of one
    repetition; ``begin_s``: the instant in it at which a run is begun, where the first phase that moves begins."""

    name: str
    text: str
    runs: Mapping[str, int]
    blocks: int
    stretch_s: float
    begin_s: float
    paths: int = 2

    @property
    def slots(self) -> int:
        """Repetitions of one stretch."""
        return sum(self.runs.values()) + SPARE


def prepare(
    file: str, form: str, blocks: int | None, scenario: str, stretch_s: int, seed: int | None
) -> tuple[Comparison, Played]:
    """The campaign ``file`` (a name that ``tandem campaign list`` shows, or a path) and what is played for it. FileError, ScenarioError."""
    name, text, arms, repetitions = by_hand(_tandem("show", file), form, blocks)
    with_one = load(scenario, stretch_s, seed)
    stretches = [play(load(scenario, stretch_s, with_one.seed + n)) for n in range(repetitions)]
    begin_s = next((p["t_s"] for p in stretches[0].phases if p["activity"] != "still"), 0.0)
    paths = len(tomllib.loads(text)["roles"])
    if paths > len(stretches[0].operators) + 1:
        raise FileError(
            f"{name}: {paths} roles; the bench has the two operators and a Wi-Fi; hint: three roles at most"
        )
    compared = Comparison(name, text, arms, repetitions, float(stretch_s), begin_s, paths)
    return compared, repeated(stretches, compared.slots)


def by_hand(text: str, form: str, blocks: int | None) -> tuple[str, str, dict[str, int], int]:
    """Name, text for the bench, arms by step, blocks: every step begins by hand, in whatever conditions, and costs nothing."""
    content = tomllib.loads(text)
    forms = {"paper": {}, **content.pop("form", {})}
    if form not in forms:
        raise FileError(f"{content['name']}: there is no form {form!r}; hint: one of {', '.join(forms)}")
    told = forms[form]
    content |= {key: told[key] for key in ("base",) if key in told}
    content |= {"quiet_s": 0, "budget": {}}
    steps, arms = [], {}
    for step in content["step"]:
        over = told.get("step", {}).get(step["name"], {})
        if over.get("skip"):
            continue
        parameters = {**step.get("parameters", {}), **over.get("parameters", {})}
        without = over.get("without", [])
        own = {key: value for key, value in over.items() if key not in ("skip", "without", "parameters")}
        step |= {**own, "parameters": {k: v for k, v in parameters.items() if k not in without}}
        step["repetitions"] = blocks or told.get("repetitions", step.get("repetitions", 1))
        step |= {"order": "blocks", "trigger": {"on": "hand"}, "conditions": {}}
        lists = [*step["parameters"].values(), *(v for q in step.get("shape", {}).values() for v in q.values())]
        arms[step["name"]] = math.prod([len(step.get("arms", [0])), *(len(v) for v in lists if isinstance(v, list))])
        steps.append(step)
    if len({step["repetitions"] for step in steps}) != 1:
        raise FileError(f"{content['name']}: steps of different repetitions have no common blocks; hint: --blocks N")
    content["step"] = steps
    written = "".join(f"{key} = {_toml(value)}\n" for key, value in content.items())
    return content["name"], written, arms, steps[0]["repetitions"]


def _toml(value: object) -> str:
    """A value in one line of TOML."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_toml(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str | bool) else repr(value)


def _tandem(*args: str) -> str:
    """What ``tandem campaign`` prints; FileError with its last line where it refuses."""
    argv = [sys.executable, "-m", "tandem", "campaign", *args]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode != 0:
        raise FileError((done.stderr.strip().splitlines() or ["tandem campaign failed"])[-1])
    return done.stdout


class Compared(Example):
    """Plays a ``Comparison`` with captures; analyses them before the report."""

    analyse_s = report_s = 3600.0

    def __init__(self, rig: Rig, folder: DemoFolder, influxd: Path, comparison: Comparison) -> None:
        super().__init__(rig, folder, influxd)
        self.comparison = comparison
        self.misplaced = 0
        """Runs under another stretch than their block's."""

    def _collector_options(self) -> dict[str, Any]:
        return {**super()._collector_options(), "capture_bytes": CAPTURE_BYTES}

    def _play(self) -> None:
        one = self.comparison
        once("tandem campaign run", self._campaign(one.name, one.text))
        slot = 0
        for number in range(one.blocks * sum(one.runs.values())):
            block = number // sum(one.runs.values())
            slot = max(slot, block * one.slots, math.ceil((self.rig.now_s() - one.begin_s) / one.stretch_s))
            if (slot + 1) * one.stretch_s > self.duration_s:
                raise ProgramError(f"{number} runs are made; for the others the scenario is too short")
            self.misplaced += slot // one.slots != block
            self._wait_for(slot * one.stretch_s + one.begin_s)
            made = self._steps()
            step = min(made, key=lambda name: made[name][0] / made[name][1])
            print(f"  block {block + 1:2} of {one.blocks}  {self.rig.now_s():6.0f} s  {step}", flush=True)
            self._ask({"op": "campaign", "action": "tell", "step": step})
            self._until_made(step, made[step][0] + 1)
            slot += 1

    def _until_made(self, step: str, count: int) -> None:
        until_s = self.rig.now_s() + PATIENCE_S
        while self._steps()[step][0] < count:
            self._look()
            if self.rig.now_s() > until_s:
                raise ProgramError(f"a run of {step} was not made within {PATIENCE_S:.0f} s (tandem campaign status)")
            time.sleep(0.3)

    def _steps(self) -> dict[str, tuple[int, int]]:
        """By step: runs made, and all."""
        told = self._ask({"op": "campaign", "action": "status"})["campaign"]
        return {name: (step["made"], step["of"]) for name, step in told["steps"].items()}

    def _ask(self, request: dict[str, str]) -> dict[str, Any]:
        """The collector's answer; ProgramError where it refuses."""
        place = os.open(self.folder.probe, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            with socket.socket(socket.AF_UNIX) as ours:
                ours.settimeout(30.0)
                ours.connect(f"/proc/self/fd/{place}/status.sock")  # a socket's address holds 107 bytes
                ours.sendall(json.dumps(request).encode() + b"\n")
                with ours.makefile("rb") as lines:
                    answer: dict[str, Any] = json.loads(lines.readline())
        finally:
            os.close(place)
        if "campaign" not in answer:
            raise ProgramError(f"the collector refuses: {answer.get('reason')}")
        return answer

    def outcome(self) -> dict[str, Any]:
        """What the arms did. ``misplaced``: runs under another stretch than their block's; ``starts_in_stretch_s``: the earliest and the
        latest that a run began in its stretch, by the manifests."""
        summary, one = self.folder.read_summary(), self.comparison
        steps = [step for c in summary["campaigns"] if c["name"] == one.name for step in c["steps"]]
        runs = [json.loads(path.read_text()) for path in (self.folder.probe / "runs").glob("*.json")]
        starts_s = [(m["started_monotonic_ns"] - self.rig.epoch_monotonic_ns) / 1e9 % one.stretch_s for m in runs]
        return {
            "campaign": one.name,
            "scenario": summary["scenario"],
            "seed": summary["seed"],
            "runs": sum(step["measured"] or 0 for step in steps),
            "failed": sum(sum(step["failed"].values()) for step in steps),
            "misplaced": self.misplaced,
            "starts_in_stretch_s": [round(s, 2) for s in (min(starts_s), max(starts_s))] if starts_s else None,
            "arms": summary["arms"],
            "interrupted": summary["interrupted"],
        }

    def text(self, outcome: dict[str, Any]) -> str:
        """A line an arm and outcome."""
        keys = [column["key"] for column in outcome["arms"]["columns"]]
        rows = [dict(zip(keys, row, strict=True)) for row in outcome["arms"]["rows"]]
        lines = [f"\n  {outcome['campaign']}: {outcome['runs']} runs, {outcome['failed']} of them failed"]
        if outcome["misplaced"]:
            lines.append(f"  {outcome['misplaced']} runs were late, under another stretch than their block's")
        if outcome["starts_in_stretch_s"]:
            lines.append("  begun {:.1f} to {:.1f} s into their stretch".format(*outcome["starts_in_stretch_s"]))
        lines += [
            f"    {row['step']}, {row['outcome']}: {row['arm']} {row['verdict']}" for row in rows if row["verdict"]
        ]
        return "\n".join(lines)

    def good(self, outcome: dict[str, Any]) -> bool:
        """Whether all runs were made, each under its block's stretch."""
        return not outcome["failed"] and not outcome["misplaced"]
