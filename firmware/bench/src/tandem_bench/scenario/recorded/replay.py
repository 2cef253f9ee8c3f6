"""Two logs as the two operators: laid on the ticks, their rates made into capacities, their cells into handovers.

What a log's network must have offered: a rate that an app got is a lower bound of the capacity, since the app may have waited for its
server, for a window to open, or for its user. The rule here, for each direction:

1. only rows in which the app was downloading count;
2. at each tick the largest of them within five seconds before and after: a dip of the app is not a dip of the network;
3. where no row lies within, the last known value (at the start the first);
4. a mean over two seconds, so that the rolling maximum has no cliffs;
5. never less than 1 Mbit/s down and 5 Mbit/s up (the logs hold only the acknowledgements of downloads), never more than the
   subscription of the paper: 150 down, 50 up.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from tandem_bench import truth
from tandem_bench.scenario.chance import stream
from tandem_bench.scenario.model import LONGEST_S, SHORTEST_S, TICK_S
from tandem_bench.scenario.played import Played, Timeline
from tandem_bench.scenario.recorded.gnettrack import Row, read
from tandem_bench.scenario.toml_table import ScenarioError
from tandem_bench.truth import Event

PLMNS = {"A": "00101", "B": "00102"}
"""The logs name the operator by one letter: these are the networks for tests (ITU-T E.212 MCC 001)."""

OUTAGE_AFTER_S = 5.0
"""A longer gap between rows is an outage, from a second after the last row on. The app itself skips up to three seconds, also
standing still under a good cell, so shorter gaps say nothing about the network."""

WINDOW_S = 5.0
SMOOTH_S = 2.0
DOWN_BIT_PER_S = (1e6, 150e6)
UP_BIT_PER_S = (5e6, 50e6)
_BASE_RTT_MS = {"A": 54.0, "B": 57.0}
_LOSS = 1e-6
_BUFFER_S = 0.6
_WALK_M_S = 2.5


def replay(
    a_csv: str | Path,
    b_csv: str | Path,
    duration_s: float | None = None,
    seed: int = 1,
    outage_after_s: float = OUTAGE_AFTER_S,
) -> Played:
    """Play log ``a_csv`` as operator A and ``b_csv`` as B, both from their first rows.

    Cut to the shorter log, to ``duration_s`` (10 to 7200 s) when given, and to 7200 s. The seed draws only how long handovers
    interrupt, which no log tells. ScenarioError names the file and line that cannot be used.
    """
    logs = {"A": read(a_csv), "B": read(b_csv)}
    for path, rows in zip((a_csv, b_csv), logs.values(), strict=True):
        if rows[-1].t_s < SHORTEST_S:
            raise ScenarioError(
                path, None, f"only {rows[-1].t_s:.0f} s long", f"give a log of {SHORTEST_S:g} s or more"
            )
    whole_s = min(rows[-1].t_s for rows in logs.values())
    return play_rows("replay", logs, whole_s, duration_s, seed, outage_after_s)


def play_rows(
    name: str,
    logs: Mapping[str, Sequence[Row]],
    whole_s: float,
    duration_s: float | None,
    seed: int,
    outage_after_s: float = OUTAGE_AFTER_S,
    why: str = "gap in the log",
    *,
    no_service_is_outage: bool = False,
) -> Played:
    """Lay the rows of two operators, A and B, on the ticks of ``whole_s`` seconds or of ``duration_s`` when that is shorter.

    A's speed is the truth of motion. ``why``: of the outages; ``no_service_is_outage``: also where a row has no
    technology, which an app's log leaves out for other reasons too. ScenarioError for a duration that cannot be.
    """
    if duration_s is not None and not SHORTEST_S <= duration_s <= LONGEST_S:
        raise ScenarioError(name, None, f"a duration of {duration_s:g} s", f"give {SHORTEST_S:g} to {LONGEST_S:g} s")
    ticks = math.floor(min(whole_s, LONGEST_S if duration_s is None else duration_s) / TICK_S + 1e-6)
    length_s = round(ticks * TICK_S, 1)
    speed = [round(v, 2) for v in _held(logs["A"], ticks, lambda row: row.speed_m_s, 0.0)]
    phases = _phases(speed, length_s)
    events: list[Event] = [*phases, *truth.of_mobility(speed, TICK_S)]
    timelines = {}
    for operator, rows in logs.items():
        columns = _radio(operator, rows, ticks, outage_after_s, no_service_is_outage)
        columns |= _link(operator, rows, columns["outage"], ticks)
        columns["speed_m_s"] = speed
        events += _handovers(operator, columns, seed)
        events += _outages(operator, columns["outage"], why)
        level = [
            v if rat in ("LTE", "NR-NSA") else None for v, rat in zip(columns["rsrp_dbm"], columns["rat"], strict=True)
        ]
        events += truth.of_drops(operator, level, TICK_S)
        timelines[operator] = Timeline(operator, name, seed, length_s, columns)
    return Played(name, seed, length_s, timelines, phases, truth.in_order(events))


def _row_at(times: Sequence[float], tick: int) -> int:
    return max(0, bisect_right(times, tick * TICK_S + 1e-6) - 1)


def _held(rows: Sequence[Row], ticks: int, value: Callable[[Row], float | None], before: float) -> list[float]:
    """The last known value at each tick; before the first known one, that one; ``before`` when none is known."""
    known = [(row.t_s, v) for row in rows if (v := value(row)) is not None]
    if not known:
        return [before] * ticks
    times = [t for t, _ in known]
    return [known[_row_at(times, tick)][1] for tick in range(ticks)]


def _phases(speed: Sequence[float], length_s: float) -> list[Event]:
    """Spells of standing and moving: ``walk`` when the mean speed of the spell is below 2.5 m/s, else ``drive``."""
    changes = truth.of_mobility(speed, TICK_S)
    ends = [e["t_s"] for e in changes[1:]] + [length_s]
    phases = []
    for change, end in zip(changes, ends, strict=True):
        part = speed[round(change["t_s"] / TICK_S) : round(end / TICK_S)]
        mean = sum(part) / len(part)
        activity = "still" if not change["moving"] else "walk" if mean < _WALK_M_S else "drive"
        head = {"t_s": change["t_s"], "type": "phase", "name": activity, "activity": activity}
        phases.append({**head, "speed_m_s": round(mean, 2), "until_s": end})
    return phases


def _clip(value: float | None, low: float, high: float) -> float | None:
    return None if value is None else min(high, max(low, value))


def _radio(
    operator: str, rows: Sequence[Row], ticks: int, outage_after_s: float, no_service_is_outage: bool
) -> dict[str, list[Any]]:
    """Radio columns and ``outage``: each tick holds the last row, nothing during an outage."""
    times = [row.t_s for row in rows]
    names = ("rsrp_dbm", "rsrq_db", "sinr_db", "rssi_dbm", "plmn", "tac", "eci", "rat", "registered", "outage")
    columns: dict[str, list[Any]] = {name: [] for name in names}
    for tick in range(ticks):
        i = _row_at(times, tick)
        row = rows[i]
        gap = i + 1 < len(rows) and rows[i + 1].t_s - row.t_s > outage_after_s
        out = (gap and tick * TICK_S - row.t_s >= 1.0) or (no_service_is_outage and row.rat is None)
        heard = not out and row.rat is not None
        # Levels are kept within what modems report.
        levels = (
            _clip(row.rsrp_dbm, -140, -44),
            _clip(row.rsrq_db, -34, 2.5),
            _clip(row.sinr_db, -20, 40),
            _clip(row.rssi_dbm, -113, -20),
        )
        identity = (PLMNS[operator], row.tac, row.cell, row.rat, row.cell is not None)
        for name, value in zip(names, (*levels, *identity) if heard else (*(None,) * 8, False), strict=False):
            columns[name].append(value)
        columns["outage"].append(out)
    columns |= {name: [None] * ticks for name in ("pci", "earfcn", "band")}
    return columns


def _link(operator: str, rows: Sequence[Row], outage: Sequence[bool], ticks: int) -> dict[str, list[Any]]:
    rtt = _held(rows, ticks, lambda row: row.rtt_ms, _BASE_RTT_MS[operator])
    down = _offered(rows, ticks, lambda row: row.down_bit_per_s, DOWN_BIT_PER_S)
    up = _offered(rows, ticks, lambda row: row.up_bit_per_s, UP_BIT_PER_S)

    def buffer(rates: Sequence[int]) -> int:
        flight = 1.5 * max(rates) * _BASE_RTT_MS[operator] / 1000
        return max(20, math.ceil(max(_BUFFER_S * sum(rates) / len(rates), flight) / 8 / 1500)) * 1500

    return {
        "down_bit_per_s": [0 if out else rate for rate, out in zip(down, outage, strict=True)],
        "up_bit_per_s": [0 if out else rate for rate, out in zip(up, outage, strict=True)],
        "rtt_ms": [round(max(1.0, v), 1) for v in rtt],
        "buffer_down_bytes": [buffer(down)] * ticks,
        "buffer_up_bytes": [buffer(up)] * ticks,
        "loss_down": [_LOSS] * ticks,
        "loss_up": [_LOSS] * ticks,
        "queue": ["dropped" if out else "kept" for out in outage],
    }


def _offered(
    rows: Sequence[Row], ticks: int, rate: Callable[[Row], float | None], bounds: tuple[float, float]
) -> list[int]:
    """Bit/s at each tick, by the rule above."""
    known = [(row.t_s, v) for row in rows if (v := rate(row)) is not None]
    least, most = bounds
    if not known:
        return [round(least)] * ticks
    times = [t for t, _ in known]
    largest = np.empty(ticks)
    for tick in range(ticks):
        t = tick * TICK_S
        begin, end = bisect_left(times, t - WINDOW_S), bisect_right(times, t + WINDOW_S)
        within = known[begin:end] or known[max(0, begin - 1) : max(1, begin)]
        largest[tick] = max(v for _, v in within)
    width = round(SMOOTH_S / TICK_S) + 1
    padded = np.pad(largest, width // 2, mode="edge")
    sums = np.concatenate(([0.0], np.cumsum(padded)))
    smooth = (sums[width:] - sums[:-width]) / width
    return [int(v) for v in np.round(np.clip(smooth, least, most), -3)]


def _handovers(operator: str, columns: dict[str, list[Any]], seed: int) -> list[Event]:
    """One at every change of the last known ECI. The rates of its tick are cut by a drawn interruption of 30 to 80 ms or so."""
    rng = stream(seed, "replay", operator, "handover")
    events = []
    last = None
    for tick, (eci, rat) in enumerate(zip(columns["eci"], columns["rat"], strict=True)):
        if eci is None or rat not in ("LTE", "NR-NSA"):
            continue
        if last is not None and eci != last:
            interruption_ms = round(min(TICK_S * 1000, 50.0 * math.exp(0.3 * float(rng.standard_normal()))), 1)
            for name in ("down_bit_per_s", "up_bit_per_s"):
                columns[name][tick - 1] = round(columns[name][tick - 1] * (1 - interruption_ms / (TICK_S * 1000)))
            t_s = round(tick * TICK_S, 1)
            events.append(truth.handover(operator, t_s, last, eci, interruption_ms, True, "recorded"))
        last = eci
    return events


def _outages(operator: str, outage: Sequence[bool], why: str) -> list[Event]:
    edges = [i for i, (a, b) in enumerate(pairwise([False, *outage, False])) if a != b]
    return [
        {
            "t_s": round(begin * TICK_S, 1),
            "type": "outage",
            "operator": operator,
            "until_s": round(end * TICK_S, 1),
            "why": why,
        }
        for begin, end in zip(edges[::2], edges[1::2], strict=True)
    ]
