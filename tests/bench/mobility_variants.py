"""Harder copies of drive logs, and the bench's scenarios as logs: for fitting and judging the detectors of movement.

Still copies are given what a still modem elsewhere may have: slow noise, jumps that stay a while, another cell now and then. Moving
copies are slowed down or flattened. All seeded. Not part of the product.
"""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Callable

from tandem.mobility.gnettrack import Second
from tandem_bench.scenario import load, play
from tandem_bench.truth import states

Log = list[Second]


def _level(second: Second, change_db: float, cells: int = 0) -> Second:
    fields = dict(second.fields)
    for name in ("rsrp_dbm", "rscp_dbm"):
        if isinstance(level := fields.get(name), float):
            fields[name] = float(round(min(-31.0, max(-139.0, level + change_db))))
    if cells and isinstance(eci := fields.get("eci"), int):
        fields["eci"] = eci + cells
    return dataclasses.replace(second, fields=fields)


def noisy(log: Log, seed: int, deviation_db: float = 1.5, tau_s: float = 8.0) -> Log:
    """First-order noise on the levels."""
    chance, out, noise = random.Random(seed), [], 0.0
    keep = math.exp(-1 / tau_s)
    for second in log:
        noise = keep * noise + math.sqrt(1 - keep * keep) * chance.gauss(0, deviation_db)
        out.append(_level(second, noise))
    return out


def _visits(
    log: Log, seed: int, mean_s: float, longest_s: float, change: Callable[[random.Random], tuple[float, int]]
) -> Log:
    """Now and then, for 2 s to ``longest_s``, other levels and cells."""
    chance, out, until, left = random.Random(seed), [], 0, (0.0, 0)
    for i, second in enumerate(log):
        if i >= until and chance.random() < 1 / mean_s:
            until = i + int(math.exp(chance.uniform(math.log(2), math.log(longest_s))))
            left = change(chance)
        out.append(_level(second, *left) if i < until else second)
    return out


def jumping(log: Log, seed: int, mean_s: float = 600) -> Log:
    """Someone walks by, a door opens: 5 to 10 dB up or down for a while."""
    return _visits(log, seed, mean_s, 200, lambda c: (c.choice((-1, 1)) * c.uniform(5, 10), 0))


def between_cells(log: Log, seed: int, mean_s: float = 60) -> Log:
    """A place where a second cell is as good."""
    return noisy(_visits(log, seed, mean_s, 100, lambda c: (c.gauss(-2, 2), 1)), seed, 1.0)


def slower(log: Log, factor: float = 1.7) -> Log:
    """The same drive at a lower pace, speeds kept."""
    picked = [log[int(i / factor)] for i in range(int(len(log) * factor))]
    return [dataclasses.replace(second, at_s=log[0].at_s + i) for i, second in enumerate(picked)]


def flatter(log: Log, factor: float = 0.7, half_s: int = 60) -> Log:
    """Levels drawn towards their mean over two minutes."""
    levels = [next((s.fields[n] for n in ("rsrp_dbm", "rscp_dbm") if n in s.fields), None) for s in log]
    out = []
    for i, second in enumerate(log):
        near = [x for x in levels[max(0, i - half_s) : i + half_s] if isinstance(x, float)]
        level = levels[i]
        out.append(
            _level(second, (sum(near) / len(near) - level) * (1 - factor)) if isinstance(level, float) else second
        )
    return out


def every(log: Log, period: int) -> Log:
    """Every so many seconds only."""
    return [second for second in log if (second.at_s - log[0].at_s) % period == 0]


def holed(log: Log, seed: int, share: float = 0.25) -> Log:
    """Seconds missing at random."""
    chance = random.Random(seed)
    return [second for second in log if chance.random() >= share]


def coarse(log: Log, step_db: int, offset_db: int = 0) -> Log:
    """Levels in whole steps, shifted by an offset."""
    out = []
    for second in log:
        level = next((second.fields[n] for n in ("rsrp_dbm", "rscp_dbm") if n in second.fields), None)
        shift = math.floor(level / step_db) * step_db - level + offset_db if isinstance(level, float) else 0.0
        out.append(_level(second, shift))
    return out


def hard(log: Log, seed: int) -> dict[str, Log]:
    """The copies that keep a fit from leaning on what is peculiar to a few logs."""
    if any((second.speed_km_h or 0) > 3 for second in log):
        return {"slower": slower(log), "flatter": flatter(log)}
    return {"noisy": noisy(log, seed), "jumping": jumping(log, seed), "between cells": between_cells(log, seed)}


def augmented(log: Log, seed: int) -> dict[str, Log]:
    """The same truth, told worse."""
    return {
        "every 2 s": every(log, 2),
        "every 3 s": every(log, 3),
        "a quarter missing": holed(log, seed),
        "steps of 2 dB": coarse(log, 2),
        "steps of 3 dB": coarse(log, 3),
        "10 dB lower": coarse(log, 1, -10),
    }


def scenario(name: str, duration_s: int, seed: int) -> list[Log]:
    """The bench's radio as logs, one an operator; the speed says 0 and 10 km/h where the truth says still and moving."""
    played = play(load(name, duration_s, seed))
    out = []
    for operator in played.operators.values():
        columns = operator.columns
        log, moving = [], states(columns["speed_m_s"], 0.1)
        for tick in range(0, len(moving), 10):
            names = ("rsrp_dbm", "rsrq_db", "sinr_db", "rssi_dbm", "eci", "pci", "earfcn", "tac")
            fields = {n: columns[n][tick] for n in names if columns[n][tick] is not None}
            speed = max(3.1, columns["speed_m_s"][tick] * 3.6) if moving[tick] else 0.0
            log.append(Second(tick // 10, speed, columns["rat"][tick], {"state": "unknown", **fields}))
        out.append(log)
    return out
