"""What the probe hears of every cell at every tick: path, antenna, shadowing along the route, what small-scale fading is left."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tandem_bench.scenario.cells import Cell, Site, within
from tandem_bench.scenario.chance import Array, exponential_noise, slow_noise, stream
from tandem_bench.scenario.model import TICK_S, Operator, RadioModel, Scenario
from tandem_bench.scenario.propagation import antenna_gain_db, frequency_ghz, path_loss_db
from tandem_bench.scenario.route import Route

_REPORT_S = 0.2
_STILL_CORRELATION_S = 4.0
_WALK_M_S = 1.4
_FADE_M = 0.5
_LEAST_LOSS_DB = 70.0


@dataclass(frozen=True)
class Heard:
    """One cell over the ticks ``first`` … while its site is within reach.

    ``rsrp_dbm`` as received, ``filtered_dbm`` after layer 3, ``load`` 0 to 1: the share of the cell used by others.
    """

    cell: Cell
    site: int
    first: int
    rsrp_dbm: Array
    filtered_dbm: Array
    load: Array

    @property
    def end(self) -> int:
        """The tick after the last."""
        return self.first + len(self.rsrp_dbm)


def filter_share(k: float) -> float:
    """Weight of a new tick in the layer 3 filter: a = 1/2^(k/4) per 200 ms (3GPP TS 36.331 5.5.3.2), for ticks of TICK_S."""
    per_report = 0.5 ** (k / 4)
    return 1.0 - (1.0 - per_report) ** (TICK_S / _REPORT_S) if per_report < 1 else 1.0


def filtered(values: Array, share: float) -> Array:
    """F = (1 − a)·F + a·M, in decibels, from the first value on."""
    value = float(values[0])
    out = []
    for fresh in values.tolist():
        value += share * (fresh - value)
        out.append(value)
    return np.array(out)


def energy_per_element_dbm(operator: Operator, cell: Cell) -> float:
    """Transmit power of one resource element in dBm: the power spread evenly over 12 subcarriers a block."""
    return operator.power_dbm - 10 * math.log10(12 * cell.resource_blocks)


class _Common:
    """The parts of shadowing and street fading that all sites of an operator share: what stands around the probe.

    Two operators have a part of that in common in turn: their antennas and frequencies are not the same, the lorry is.
    """

    def __init__(self, scenario: Scenario, operator: Operator, route: Route) -> None:
        steps = np.concatenate(([0.0], np.diff(route.distance_m)))
        radio = scenario.radio
        self.large_step = np.exp(-steps / radio.shadowing_m)
        self.street_step = np.exp(-steps / radio.street_m)
        self.large = self._of(scenario, operator, "shadowing", self.large_step)
        self.street = self._of(scenario, operator, "street", self.street_step)

    @staticmethod
    def _of(scenario: Scenario, operator: Operator, what: str, step: Array) -> Array:
        both = exponential_noise(stream(scenario.seed, what), step, 0.0)
        own = exponential_noise(stream(scenario.seed, operator.name, what), step, 0.0)
        c = scenario.radio.operator_correlation
        return math.sqrt(c) * both + math.sqrt(1 - c) * own


def hear(scenario: Scenario, operator: Operator, sites: list[Site], route: Route) -> list[Heard]:
    """All cells of ``sites`` over the ticks in which they are within reach."""
    common = _Common(scenario, operator, route)
    share = filter_share(scenario.radio.filter_k)
    heard = []
    for number, site in enumerate(sites):
        for first, end in _spans(within(site, route, operator)):
            part = slice(first, end)
            label = (operator.name, "site", number, first)
            shadow = _shadowing(scenario, common, site, part, label)
            for cell in site.cells:
                rsrp = _received(operator, scenario.radio, site, cell, route, part) + shadow
                rsrp += _residual(scenario, route, part, (*label, cell.eci))
                slow = slow_noise(stream(scenario.seed, *label, cell.eci, "load"), route.t_s[part], 10.0, 60.0)
                load = np.clip(cell.load + operator.load_variation * slow, 0.03, 0.95)
                heard.append(Heard(cell, number, first, rsrp, filtered(rsrp, share), load))
    return heard


def _spans(near: NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """Spans of ticks in which ``near`` holds, as (first, end)."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], near, [False])).astype(np.int8)))
    for first, end in edges.reshape(-1, 2).tolist():
        yield int(first), int(end)


def _shadowing(scenario: Scenario, common: _Common, site: Site, part: slice, label: tuple[object, ...]) -> Array:
    radio = scenario.radio
    start = site.start_shadowing_db if part.start == 0 else None
    large_own = exponential_noise(
        stream(scenario.seed, *label, "large"), common.large_step[part], None if start is None else 0.0
    )
    street_own = exponential_noise(
        stream(scenario.seed, *label, "street"), common.street_step[part], None if start is None else 0.0
    )
    c, s = radio.site_correlation, radio.street_correlation
    large = math.sqrt(c) * common.large[part] + math.sqrt(1 - c) * large_own
    street = math.sqrt(s) * common.street[part] + math.sqrt(1 - s) * street_own
    total = radio.shadowing_db * large + radio.street_db * street
    if start is not None:
        # What the file says of the start fades with distance as the shadowing itself does.
        total = total + start * np.cumprod(common.large_step[part])
    return total


def _received(operator: Operator, radio: RadioModel, site: Site, cell: Cell, route: Route, part: slice) -> Array:
    dx, dy = route.x_m[part] - site.x_m, route.y_m[part] - site.y_m
    loss = path_loss_db(radio.path_loss, np.hypot(dx, dy), frequency_ghz(cell.carrier.earfcn)) + route.loss_db[part]
    gain = antenna_gain_db(np.degrees(np.arctan2(dx, dy)) - cell.azimuth_deg)
    # Under the mast the beam goes overhead: never less than 70 dB between antennas (TR 36.942 4.5.1, urban macro).
    return energy_per_element_dbm(operator, cell) - np.maximum(loss - gain, _LEAST_LOSS_DB + route.loss_db[part])


def _residual(scenario: Scenario, route: Route, part: slice, label: tuple[object, ...]) -> Array:
    """Small-scale fading that is left after the modem's averaging over band and 200 ms, before layer 3.

    Standing, the pattern is frozen and only people and cars move in it. Moving, it changes within a fraction of a second; the
    faster, the more fades the modem averages over, so what is left grows no further.
    """
    speed = route.speed_m_s[part]
    moving = np.minimum(speed / _WALK_M_S, 1.0)
    deviation = scenario.radio.residual_still_db + moving * (
        scenario.radio.residual_moving_db - scenario.radio.residual_still_db
    )
    time_s = 1.0 / (1.0 / _STILL_CORRELATION_S + speed / _FADE_M)
    noise = exponential_noise(stream(scenario.seed, *label, "residual"), np.exp(-TICK_S / time_s))
    return deviation * noise
