"""The cells of one operator along a route: those that the file lists, and a jittered hexagonal grid around the rest."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tandem_bench.scenario.chance import stream
from tandem_bench.scenario.model import Carrier, Operator, Scenario
from tandem_bench.scenario.propagation import RESOURCE_BLOCKS
from tandem_bench.scenario.route import Route
from tandem_bench.scenario.toml_table import ScenarioError

REACH = 3.2
"""Sites are made up to this many spacings from the route."""
HEARD = 3.84
"""Sites farther from the probe than this many spacings are not computed: twenty decibels below the nearest and more."""

_MOST_PLACES = 100_000


@dataclass(frozen=True, slots=True)
class Cell:
    """One sector. ``eci`` is eNodeB id · 256 + sector id; ``load`` its mean share of resource blocks used by others."""

    eci: int
    pci: int
    tac: int
    carrier: Carrier
    azimuth_deg: float
    load: float

    @property
    def enb_id(self) -> int:
        """The eNodeB: ECI without its last 8 bits."""
        return self.eci >> 8

    @property
    def resource_blocks(self) -> int:
        """Width of the downlink."""
        return RESOURCE_BLOCKS[self.carrier.bandwidth_mhz]


@dataclass(frozen=True, slots=True)
class Site:
    """A mast with its sectors. ``start_shadowing_db`` None: drawn."""

    x_m: float
    y_m: float
    start_shadowing_db: float | None
    cells: tuple[Cell, ...]


def build(scenario: Scenario, operator: Operator, route: Route) -> list[Site]:
    """All sites within ``REACH`` spacings of the route. ScenarioError when a part of the route hears none."""
    reach = REACH * operator.spacing_m
    sites = [_listed(scenario, operator, i) for i in range(len(operator.sites))]
    rng = stream(scenario.seed, operator.name, "grid")
    spacing, row = operator.spacing_m, operator.spacing_m * math.sqrt(3) / 2
    shift_x, shift_y = rng.uniform(0, spacing, 2)
    near = _NearRoute(route, reach)
    rows = range(math.floor((route.y_m.min() - reach) / row), math.ceil((route.y_m.max() + reach) / row) + 1)
    columns = range(math.floor((route.x_m.min() - reach) / spacing), math.ceil((route.x_m.max() + reach) / spacing) + 1)
    if len(rows) * len(columns) > _MOST_PLACES:
        raise ScenarioError(
            scenario.name,
            None,
            f"operator {operator.name}: {len(rows) * len(columns)} places for sites",
            "raise spacing_m, or play a shorter route",
        )
    for j, i in itertools.product(rows, columns):
        place = stream(scenario.seed, operator.name, "site", i, j)
        x = (i + 0.5 * (j % 2)) * spacing + shift_x + float(place.uniform(-0.2, 0.2)) * spacing
        y = j * row + shift_y + float(place.uniform(-0.2, 0.2)) * spacing
        clear = all(math.hypot(x - s.x_m, y - s.y_m) >= operator.clear_m for s in operator.sites)
        if clear and near(x, y):
            sites.append(_grown(scenario, operator, len(sites), x, y, place))
    _check_cover(scenario, operator, sites, route)
    return sites


def within(site: Site, route: Route, operator: Operator) -> NDArray[np.bool_]:
    """For each tick, whether the site is near enough to be heard."""
    return np.hypot(route.x_m - site.x_m, route.y_m - site.y_m) <= HEARD * operator.spacing_m


def _check_cover(scenario: Scenario, operator: Operator, sites: list[Site], route: Route) -> None:
    covered = np.zeros(len(route.t_s), dtype=np.bool_)
    for site in sites:
        covered |= within(site, route, operator)
    if not covered.all():
        raise ScenarioError(
            scenario.name,
            None,
            f"operator {operator.name}: no site within {HEARD * operator.spacing_m:.0f} m of the route at "
            f"{route.t_s[int(np.argmin(covered))]:.1f} s",
            "lower clear_m, or write a [[operator.site]] there",
        )


class _NearRoute:
    """Whether a place is within reach of the route, by its distance to points at most a quarter of the reach apart."""

    def __init__(self, route: Route, reach_m: float) -> None:
        steps = np.unique(np.searchsorted(route.distance_m, np.arange(0.0, route.distance_m[-1] + 1, reach_m / 4)))
        keep = np.append(steps[steps < len(route.t_s)], len(route.t_s) - 1)
        self._x, self._y, self._reach = route.x_m[keep], route.y_m[keep], reach_m

    def __call__(self, x: float, y: float) -> bool:
        return bool(np.hypot(self._x - x, self._y - y).min() <= self._reach)


def _listed(scenario: Scenario, operator: Operator, index: int) -> Site:
    plan = operator.sites[index]
    rng = stream(scenario.seed, operator.name, "listed", index)
    carrier = next(c for c in operator.carriers if c.earfcn == plan.earfcn)
    enb_id = operator.first_enb_id + index if plan.enb_id is None else plan.enb_id
    cells = _cells(operator, enb_id, index, plan.x_m, carrier, list(plan.azimuths_deg), rng, plan.load)
    return Site(plan.x_m, plan.y_m, plan.start_shadowing_db, cells)


def _grown(scenario: Scenario, operator: Operator, count: int, x: float, y: float, rng: np.random.Generator) -> Site:
    weights = np.cumsum([c.share for c in operator.carriers])
    carrier = operator.carriers[int(np.searchsorted(weights, rng.random() * weights[-1], side="right"))]
    turn = float(rng.uniform(0, 120))
    # eNodeB numbers are spread over a few thousand, as an operator's plan is, and unique: 7 and 4096 share no divisor.
    enb_id = (
        operator.first_enb_id
        + 1000
        + (count * 7 + int(stream(scenario.seed, operator.name, "enb").integers(4096))) % 4096
    )
    cells = _cells(operator, enb_id, count, x, carrier, [turn, turn + 120, turn + 240], rng, None)
    start = None
    if any(plan.start_shadowing_db is not None for plan in operator.sites):
        # The file says which site is well received at the start; the others then stand behind buildings, not in the open.
        start = -abs(float(rng.standard_normal())) * scenario.radio.shadowing_db
    return Site(x, y, start, cells)


def _cells(
    operator: Operator,
    enb_id: int,
    count: int,
    x: float,
    carrier: Carrier,
    azimuths: list[float],
    rng: np.random.Generator,
    load: float | None,
) -> tuple[Cell, ...]:
    tac = operator.first_tac + math.floor(x / operator.tac_m) % 100
    # A PCI is 3·group + sector: 168 groups, so that sectors of one site differ in the primary sequence (TS 36.211 6.11).
    group = (count * 5 + operator.first_enb_id) % 168
    mean = [
        float(np.clip(rng.normal(operator.load, operator.load_spread), 0.1, 0.9)) if load is None else load
        for _ in azimuths
    ]
    return tuple(
        Cell(enb_id << 8 | k + 1, 3 * group + k % 3, tac, carrier, azimuth % 360, mean[k])
        for k, azimuth in enumerate(azimuths)
    )
