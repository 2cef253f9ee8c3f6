"""What is played: timelines, phases and events of a scenario or a replay, a summary of them; and stretches played again and again.

A timeline file (``tandem-timeline/1``) holds what one operator's modem hears and its link carries, ten times a second.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tandem_bench import truth
from tandem_bench.scenario.model import TICK_S
from tandem_bench.truth import Event

FORMAT = "tandem-timeline/1"

COLUMNS = (
    "rsrp_dbm", "rsrq_db", "sinr_db", "rssi_dbm", "plmn", "tac", "eci", "pci", "earfcn", "band", "rat", "registered",
    "speed_m_s", "down_bit_per_s", "up_bit_per_s", "rtt_ms", "buffer_down_bytes", "buffer_up_bytes", "loss_down", "loss_up",
    "outage", "queue",
)  # fmt: skip
"""Keys of a tick beside ``t_s``. Radio values are None where nothing is heard; ``queue`` is ``kept`` or ``dropped``."""


@dataclass(frozen=True)
class Timeline:
    """One operator's ticks, by column: ``columns[name][i]`` holds at ``i · TICK_S`` seconds."""

    operator: str
    scenario: str
    seed: int
    duration_s: float
    columns: Mapping[str, list[Any]]

    def __len__(self) -> int:
        return len(self.columns["outage"])

    def tick(self, i: int) -> dict[str, Any]:
        """One line of the file after its header."""
        return {"t_s": round(i * TICK_S, 1), **{name: self.columns[name][i] for name in COLUMNS}}

    def lines(self) -> Iterator[str]:
        """The file, line by line, without line breaks."""
        header = {
            "format": FORMAT,
            "operator": self.operator,
            "tick_s": TICK_S,
            "duration_s": self.duration_s,
            "scenario": self.scenario,
            "seed": self.seed,
        }
        yield json.dumps(header)
        for i in range(len(self)):
            yield json.dumps(self.tick(i))

    def write(self, path: Path) -> None:
        """Write the file whole: under another name first, so that no reader meets half of it."""
        unfinished = path.with_name(path.name + ".tmp")
        with unfinished.open("w", encoding="utf-8", newline="\n") as out:
            out.writelines(line + "\n" for line in self.lines())
        unfinished.replace(path)


@dataclass(frozen=True, slots=True)
class Repeat:
    """Downloads that a replay makes as the drive did: ``t_s`` into it; ``pairing`` None: one download of this ``kind``; ``path``: of the
    replay, the only one of TCP, the primary one of MPTCP where the drive told."""

    t_s: float
    pairing: str | None
    kind: str
    path: str | None
    bytes: int | None
    seconds: float | None


@dataclass(frozen=True, slots=True)
class Drive:
    """What is played was recorded: in this campaign's ``folder``, by ``probe``, from ``started_utc_ns`` on. ``paths``: the recorded
    names by operator."""

    folder: Path
    probe: str
    started_utc_ns: int
    paths: Mapping[str, str]
    repeats: tuple[Repeat, ...]


@dataclass(frozen=True)
class Played:
    """``phases`` and ``events`` are truth lines without absolute times, in order; ``phases`` are among the events too."""

    name: str
    seed: int
    duration_s: float
    operators: dict[str, Timeline]
    phases: list[Event]
    events: list[Event]
    traces: Mapping[str, Mapping[str, Path]] = field(default_factory=dict)
    """By operator and direction (``down``, ``up``): a packet-delivery trace that the link plays; the timeline then has its means."""
    notes: tuple[str, ...] = ()
    """What a recording did not know, for people."""
    drive: Drive | None = None
    """Of a campaign that is played again."""

    def of_type(self, kind: str, operator: str | None = None) -> list[Event]:
        """Events of one type, of one operator when given."""
        return [e for e in self.events if e["type"] == kind and (operator is None or e.get("operator") == operator)]

    def summary(self) -> dict[str, Any]:
        """Counts and means, JSON-ready. Rates in bit/s are what is offered, outages counted as nothing."""
        return {
            "scenario": self.name,
            "seed": self.seed,
            "duration_s": self.duration_s,
            "distance_m": round(sum(next(iter(self.operators.values())).columns["speed_m_s"]) * TICK_S, 1),
            "moving_s": round(self._moving_s(), 1),
            "operators": {name: self._of(name, 0.0, self.duration_s) for name in self.operators},
            "phases": [
                {
                    **{key: phase[key] for key in ("name", "activity", "t_s", "until_s", "speed_m_s")},
                    "operators": {name: self._of(name, phase["t_s"], phase["until_s"]) for name in self.operators},
                }
                for phase in self.phases
            ],
        }

    def _moving_s(self) -> float:
        changes = self.of_type("mobility")
        ends = [e["t_s"] for e in changes[1:]] + [self.duration_s]
        return float(sum(end - e["t_s"] for e, end in zip(changes, ends, strict=True) if e["moving"]))

    def _of(self, operator: str, begin_s: float, end_s: float) -> dict[str, Any]:
        columns = self.operators[operator].columns
        part = slice(round(begin_s / TICK_S), round(end_s / TICK_S))
        within = [e for e in self.events if e.get("operator") == operator and begin_s <= e["t_s"] < end_s]
        drops = [-e["change_db"] for e in within if e["type"] == "signal_drop"]
        heard = [v for v in columns["rsrp_dbm"][part] if v is not None]
        return {
            "handovers": sum(e["type"] == "handover" for e in within),
            "sector_changes": sum(e.get("handover_kind") == "sector" for e in within),
            "signal_drops": len(drops),
            "signal_drops_above_8_db": sum(d > 8 for d in drops),
            "interruption_ms": round(sum(e["interruption_ms"] or 0.0 for e in within if e["type"] == "handover"), 1),
            "outage_s": round(sum(columns["outage"][part]) * TICK_S, 1),
            "down_bit_per_s": round(_mean(columns["down_bit_per_s"][part])),
            "up_bit_per_s": round(_mean(columns["up_bit_per_s"][part])),
            "rtt_ms": round(_mean(columns["rtt_ms"][part]), 1),
            "rsrp_dbm": {"min": min(heard), "mean": round(_mean(heard), 1), "max": max(heard)} if heard else None,
            "cells": len({e for e in columns["eci"][part] if e is not None}),
        }


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def write_timelines(played: Played, folder: str | Path) -> dict[str, Path]:
    """Write ``timeline-OPERATOR.jsonl`` for each operator into ``folder``, made when absent; the paths by operator."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    paths = {name: folder / f"timeline-{name}.jsonl" for name in played.operators}
    for name, path in paths.items():
        played.operators[name].write(path)
    return paths


def repeated(stretches: Sequence[Played], times: int) -> Played:
    """Each stretch ``times`` times, one stretch after the other. All have the same duration and the same operators.

    Where two meet, level and cell change at once: that is a fall and a handover without interruption, and the truth says so.
    """
    first = stretches[0]
    parts = [stretch for stretch in stretches for _ in range(times)]
    operators = {
        name: Timeline(
            name,
            timeline.scenario,
            first.seed,
            first.duration_s * len(parts),
            {column: [v for part in parts for v in part.operators[name].columns[column]] for column in COLUMNS},
        )
        for name, timeline in first.operators.items()
    }
    events: list[Event] = truth.of_mobility(next(iter(operators.values())).columns["speed_m_s"], TICK_S)
    for name, timeline in operators.items():
        events += truth.of_drops(name, timeline.columns["rsrp_dbm"], TICK_S)
    for number, part in enumerate(parts):
        begin_s = number * first.duration_s
        events += [_later(e, begin_s) for e in part.events if e["type"] not in ("mobility", "signal_drop")]
        if number:
            events += _seams(parts[number - 1], part, begin_s)
    events = truth.in_order(events)
    name = f"{first.name}, {len(stretches)} stretches, {times} times each"
    phases = [e for e in events if e["type"] == "phase"]
    return Played(name, first.seed, first.duration_s * len(parts), operators, phases, events)


def _later(event: Event, by_s: float) -> Event:
    return {**event, **{key: round(event[key] + by_s, 4) for key in ("t_s", "until_s") if key in event}}


def _seams(before: Played, after: Played, t_s: float) -> list[Event]:
    found = []
    for name, timeline in after.operators.items():
        old, new = before.operators[name].columns["eci"][-1], timeline.columns["eci"][0]
        if old is not None and new is not None and old != new:
            found.append(truth.handover(name, t_s, old, new, 0.0, True, "another stretch"))
    return found
