"""The way that both modems go: phases laid out in time, speed with its ramps and stops, position in the plane."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tandem_bench.scenario.chance import Array, slow_noise, stream
from tandem_bench.scenario.model import TICK_S, Phase, Scenario

_LOSS_RAMP_S = 3.0
_WOBBLE = 0.08


@dataclass(frozen=True)
class Route:
    """One entry a tick: time s, speed m/s, distance gone m, position m (x east, y north), wall or vehicle loss dB.

    ``starts`` holds the first tick of each phase and, last, the number of ticks.
    """

    t_s: Array
    speed_m_s: Array
    distance_m: Array
    x_m: Array
    y_m: Array
    loss_db: Array
    phases: tuple[Phase, ...]
    starts: tuple[int, ...]

    def first_phase(self) -> slice:
        """The ticks of the first phase."""
        return slice(0, self.starts[1])


def phase_starts(shares: Sequence[float], ticks: int) -> tuple[int, ...]:
    """First tick of each phase, and ``ticks`` at the end: by share, and at least one second each while that is possible."""
    least = min(round(1.0 / TICK_S), max(1, ticks // len(shares)))
    lengths = [max(least, round(ticks * share / sum(shares))) for share in shares]
    while (extra := sum(lengths) - ticks) != 0:
        longest = max(range(len(lengths)), key=lengths.__getitem__)
        lengths[longest] = max(1, lengths[longest] - extra)
    return tuple(itertools.accumulate(lengths, initial=0))


def lay_out(scenario: Scenario) -> Route:
    """The route of ``scenario``: the same seed gives the same route."""
    ticks = round(scenario.duration_s / TICK_S)
    t_s: Array = np.arange(ticks, dtype=np.float64) * TICK_S
    starts = phase_starts([p.share for p in scenario.phases], ticks)
    parts = list(zip(scenario.phases, starts[:-1], starts[1:], strict=True))
    speed = _ramped(_wanted_speed(scenario.seed, t_s, parts), parts)
    distance = np.concatenate(([0.0], np.cumsum(speed[:-1]) * TICK_S))
    heading = _heading(speed, parts)
    x = np.concatenate(([0.0], np.cumsum(speed[:-1] * np.sin(heading[:-1])) * TICK_S))
    y = np.concatenate(([0.0], np.cumsum(speed[:-1] * np.cos(heading[:-1])) * TICK_S))
    loss = np.concatenate([np.full(end - begin, phase.loss_db) for phase, begin, end in parts])
    return Route(t_s, speed, distance, x, y, _smooth(loss, round(_LOSS_RAMP_S / TICK_S)), scenario.phases, starts)


def _wanted_speed(seed: int, t_s: Array, parts: Sequence[tuple[Phase, int, int]]) -> Array:
    rng = stream(seed, "speed")
    wobble = 1.0 + _WOBBLE * np.clip(slow_noise(rng, t_s, 6.0, 40.0), -2, 2)
    wanted = np.empty_like(t_s)
    for phase, begin, end in parts:
        wanted[begin:end] = phase.speed_m_s * wobble[begin:end]
        length_s = (end - begin) * TICK_S
        stops = round(length_s / phase.stop_every_s) if phase.stop_every_s else 0
        for i in range(stops):
            middle = begin + (end - begin) * (i + 1 + rng.uniform(-0.15, 0.15)) / (stops + 1)
            half = phase.stop_s / TICK_S / 2
            wanted[max(begin, round(middle - half)) : min(end, round(middle + half))] = 0.0
    return wanted


def _ramped(wanted: Array, parts: Sequence[tuple[Phase, int, int]]) -> Array:
    """Speed that never changes faster than the phase's acceleration: forwards for starting, backwards for braking."""
    most = np.concatenate(
        [np.full(end - begin, phase.acceleration_m_s2 * TICK_S) for phase, begin, end in parts]
    ).tolist()
    speed = wanted.tolist()
    for i in range(1, len(speed)):
        speed[i] = min(speed[i], speed[i - 1] + most[i])
    for i in range(len(speed) - 2, -1, -1):
        speed[i] = min(speed[i], speed[i + 1] + most[i])
    return np.array(speed)


def _heading(speed: Array, parts: Sequence[tuple[Phase, int, int]]) -> Array:
    """Radians clockwise from north; a phase without ``heading_deg`` goes on as the one before ended."""
    heading = np.zeros_like(speed)
    now = math.pi / 2
    for phase, begin, end in parts:
        if phase.heading_deg is not None:
            now = math.radians(phase.heading_deg)
        turned = np.cumsum(speed[begin:end]) * TICK_S / phase.radius_m if phase.radius_m else np.zeros(end - begin)
        heading[begin:end] = now + turned
        now = float(heading[end - 1])
    return heading


def _smooth(values: Array, width: int) -> Array:
    """Running mean over ``width`` ticks before: a door is passed in seconds, not in one tick."""
    padded = np.concatenate((np.full(width - 1, values[0]), values))
    sums = np.concatenate(([0.0], np.cumsum(padded)))
    return (sums[width:] - sums[:-width]) / width
