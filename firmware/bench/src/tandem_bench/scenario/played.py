"""The outcome of a scenario or a replay: timelines, phases, events, and a summary of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tandem_bench.scenario.model import TICK_S
from tandem_bench.scenario.timeline import Timeline
from tandem_bench.truth.events import Event


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
