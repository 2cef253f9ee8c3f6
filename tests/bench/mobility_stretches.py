"""Stretches of radio by activity, out of the bench's scenarios or recorded drives, laid one after the other into one timeline an operator.

A stretch may be played several times: what is measured over it one way meets the same cells, rates, handovers and outages the other way.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tandem_bench.scenario import TICK_S, Played, Timeline

PATHS = {"a": "A", "b": "B"}
"""The operator behind each path."""


@dataclass(frozen=True)
class Stretch:
    """So many seconds of what was played, from ``start_s`` on."""

    activity: str
    played: Played
    start_s: float
    seconds: float

    def events(self, kind: str) -> int:
        """How many of them (``handover``, ``signal_drop``) both operators together have within."""
        return sum(self.start_s <= e["t_s"] < self.start_s + self.seconds for e in self.played.of_type(kind))

    def offered_mbit_s(self, path: str, seconds: float) -> float:
        """The mean capacity on the way to the probe, over the first ``seconds``; outages as nothing."""
        down = self.played.operators[PATHS[path]].columns["down_bit_per_s"]
        begin, ticks = round(self.start_s / TICK_S), round(seconds / TICK_S)
        return float(sum(down[begin : begin + ticks])) / ticks / 1e6

    def told(self) -> dict[str, object]:
        """For the JSON."""
        scenario = {"scenario": self.played.name, "seed": self.played.seed}
        events = {f"{kind}s": self.events(kind) for kind in ("handover", "signal_drop")}
        return {"activity": self.activity, **scenario, "start_s": self.start_s, "seconds": self.seconds, **events}


def draw(sources: Sequence[Played], activity: str, count: int, seconds: float, seed: int) -> list[Stretch]:
    """``count`` stretches in which nothing but ``activity`` happens, from the sources in turn, each begun at a random tick. SystemExit
    with one line when no source has one that long."""
    drawn = random.Random(f"tandem stretches {activity} {seed}")
    able = []
    for played in sources:
        phases = [p for p in played.phases if p["activity"] == activity and p["until_s"] - p["t_s"] >= seconds]
        if phases:
            able.append((played, phases))
    if not able:
        raise SystemExit(
            f"nothing played has {seconds:g} s of {activity!r}; mend: name other --activities, or shorter --seconds"
        )
    found = []
    for number in range(count):
        played, phases = able[number % len(able)]
        room = [p["until_s"] - p["t_s"] - seconds for p in phases]
        (phase,) = drawn.choices(phases, [r + TICK_S for r in room])
        start = phase["t_s"] + drawn.random() * (phase["until_s"] - phase["t_s"] - seconds)
        found.append(Stretch(activity, played, round(start - start % TICK_S, 1), seconds))
    return found


def write_timelines(slots: Sequence[Stretch], folder: Path, seed: int) -> dict[str, Path]:
    """The slots one after the other, as a timeline for each path's link."""
    written = {}
    for path, operator in PATHS.items():
        columns: dict[str, list[object]] = {}
        for slot in slots:
            begin, ticks = round(slot.start_s / TICK_S), round(slot.seconds / TICK_S)
            for name, values in slot.played.operators[operator].columns.items():
                columns.setdefault(name, []).extend(values[begin : begin + ticks])
        whole_s = round(len(columns["outage"]) * TICK_S, 1)
        written[path] = folder / f"timeline-{path}.jsonl"
        Timeline(operator, "stretches", seed, whole_s, columns).write(written[path])
    return written
