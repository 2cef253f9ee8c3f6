"""Stretches of scenarios played again and again, so that several runs can be made under the same radio. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from tandem_bench.scenario.model import TICK_S
from tandem_bench.scenario.played import Played
from tandem_bench.scenario.timeline import COLUMNS, Timeline
from tandem_bench.truth import events as truth_events
from tandem_bench.truth.events import Event


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
    events: list[Event] = truth_events.of_mobility(next(iter(operators.values())).columns["speed_m_s"], TICK_S)
    for name, timeline in operators.items():
        events += truth_events.of_drops(name, timeline.columns["rsrp_dbm"], TICK_S)
    for number, part in enumerate(parts):
        begin_s = number * first.duration_s
        events += [_later(e, begin_s) for e in part.events if e["type"] not in ("mobility", "signal_drop")]
        if number:
            events += _seams(parts[number - 1], part, begin_s)
    events = truth_events.in_order(events)
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
            found.append(truth_events.handover(name, t_s, old, new, 0.0, True, "another stretch"))
    return found
