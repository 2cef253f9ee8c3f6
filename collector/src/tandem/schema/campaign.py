"""A campaign: what is measured, how often, when, how much it may cost, and the order of its runs: the same campaign and seed, the same
sequence. Read from TOML by ``campaign_reader``.

``format = "tandem-campaign-file/1"``. Roles are the campaign's own words for paths ("wifi", "cellular"); whoever runs it says which path
of the probe plays which, by default in the order of both lists. A parameter whose value is a list has one arm for each element; a
step's arms are all combinations. Standard library only.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

FORMAT = "tandem-campaign-file/1"

PAPER = "paper"
"""The form that is the file as it stands; others are tables ``[form.NAME]`` laid over it."""

Order = Literal["blocks", "shuffled", "listed"]
"""``blocks``: each repetition has every arm once, in random order; ``shuffled``: all runs of the step in one random order."""

MOST_RUNS = 1_000_000
"""Of all steps together: what stored sequences can hold."""
MOST_ARMS = 20_000
"""Of one step: each is looked at when the campaign is checked, also on a small probe beside what it measures."""


class CampaignError(ValueError):
    """The campaign cannot be used: one line, ``FILE:LINE: what is wrong; hint: how``."""


@dataclass(frozen=True, slots=True)
class Draw:
    """A parameter drawn anew for each run, by the campaign's seed. Inclusive; whole numbers when both ends are."""

    law: Literal["uniform", "log_uniform"]
    low: float
    high: float


Arms = tuple[Any, ...]
"""The values that one parameter takes: JSON values or ``Draw``."""


@dataclass(frozen=True, slots=True)
class Trigger:
    """When a step's next run begins. ``on``:

    ``always`` as soon as it may; ``mobility_start`` and ``event`` (of one of the kinds ``event``) within ``within_s`` of it;
    ``speed_class`` while the probe moves so (still, low, high); ``place`` while within ``radius_m``; ``window`` while the time of day
    (the campaign's local time) is between ``start`` and ``end`` (minutes of the day; over midnight when end is smaller);
    ``periodic`` every ``every_s`` from start to start; ``poisson`` with exponential gaps of mean ``mean_s`` from start to start; ``hand``
    only by hand, with one of ``labels`` when there are any. ``gap_s``: at least so long between the starts of two runs of this step.
    """

    on: str = "always"
    gap_s: float = 0.0
    within_s: float = 5.0
    event: tuple[str, ...] = ()
    speed_class: str | None = None
    latitude_deg: float | None = None
    longitude_deg: float | None = None
    radius_m: float | None = None
    start: int | None = None
    end: int | None = None
    every_s: float | None = None
    mean_s: float | None = None
    labels: tuple[str, ...] = ()
    expected_per_day: float | None = None
    """What the file's author expects, for the estimate of days."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """What must hold for a run to begin. None: any. ``paths_up``: how many of the roles, all when None."""

    mobile: bool | None = None
    speed_class: str | None = None
    paths_up: int | None = None
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True)
class Budget:
    """None: no limit. ``path_bytes``: of each path (SIM) from one reset of its plan to the next, ``by_role`` for single ones;
    ``day_bytes``: of each path in a day; ``reset_day``: of the month, the last day where the month is shorter. Days of bytes are UTC, as
    those of the SIMs' accounts; those of ``day_runs`` are the campaign's local days."""

    path_bytes: int | None = None
    by_role: Mapping[str, int] = field(default_factory=dict)
    day_bytes: int | None = None
    day_runs: int | None = None
    reset_day: int = 1

    def of_role(self, role: str) -> int | None:
        """Bytes that the path may carry from reset to reset."""
        return self.by_role.get(role, self.path_bytes)


@dataclass(frozen=True, slots=True)
class Requires:
    """What the measurement that is repeated had. ``substitutes``: by controller, the one to take where it is missing."""

    scheduler: str | None = None
    controllers: tuple[str, ...] = ()
    substitutes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Step:
    """One experiment with its arms. ``shape``: by role and quantity (``campaign_keys.SHAPE``) the arms; ``sysctl``: what is set on the
    probe for each run (``campaign_keys.SYSCTLS``)."""

    name: str
    experiment: str
    repetitions: int
    order: Order
    priority: int
    optional: bool
    parameters: Mapping[str, Arms]
    arms: tuple[Mapping[str, Any], ...]
    shape: Mapping[str, Mapping[str, Arms]]
    trigger: Trigger
    conditions: Conditions
    seconds: float | None = None
    """How long a run takes, where the file says so."""
    bytes: int | None = None
    """What a run moves over each path, where the file says so."""
    sysctl: Mapping[str, str | int] = field(default_factory=dict)

    @property
    def arm_count(self) -> int:
        count = max(1, len(self.arms))
        for values in (*self.parameters.values(), *(v for q in self.shape.values() for v in q.values())):
            count *= len(values)
        return count

    @property
    def run_count(self) -> int:
        return self.arm_count * self.repetitions


@dataclass(frozen=True, slots=True)
class Campaign:
    """See the module. ``base``: the shaping of every run, which a step's goes over. ``assumed_bit_per_s``: by role, for the estimate
    where nothing else says how fast a path is; ``form``: ``PAPER``, or which of the file's it is; ``timezone``: the IANA name of the zone
    in whose local time windows and days are, None: the probe's own."""

    name: str
    title: str
    reference: str
    seed: int
    roles: tuple[str, ...]
    quiet_s: float
    hold_maintenance: bool
    on_interrupt: Literal["repeat", "count"]
    allow_substitutes: bool
    steps: tuple[Step, ...]
    budget: Budget
    requires: Requires
    base: Mapping[str, Mapping[str, float]]
    assumed_bit_per_s: Mapping[str, float]
    form: str
    timezone: str | None
    file: str
    lines: Mapping[tuple[str | int, ...], int] = field(repr=False, compare=False, default_factory=dict)
    """Where in the file a thing stands, for those who check it against what is installed: ("step", name, key…)."""

    def where(self, *place: str | int) -> str:
        """``FILE:LINE`` of a place, or of what is around it."""
        while place and place not in self.lines:
            place = place[:-1]
        return f"{self.file}:{self.lines.get(place, 1)}"


@dataclass(frozen=True, slots=True)
class Arm:
    """One combination. ``shape``: by role, what its link is made to be; base conditions included."""

    parameters: Mapping[str, Any]
    shape: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class Item:
    """One run to come. ``number``: its place in the step's sequence, from 0; ``seed``: for what the experiment draws itself."""

    step: str
    number: int
    repetition: int
    arm: int
    seed: int
    parameters: Mapping[str, Any]
    shape: Mapping[str, Mapping[str, float]]


def arms(campaign: Campaign, step: Step) -> list[Arm]:
    """All combinations, as listed: the last key of the file changes fastest, the explicit arms before all others."""
    names = list(step.parameters)
    shaped = [(role, name) for role, quantities in step.shape.items() for name in quantities]
    values = [step.parameters[n] for n in names] + [step.shape[role][name] for role, name in shaped]
    found = []
    for explicit in step.arms or ({},):
        for chosen in itertools.product(*values):
            parameters = {**dict(zip(names, chosen[: len(names)], strict=True)), **explicit}
            shape = {role: dict(quantities) for role, quantities in campaign.base.items()}
            for (role, name), value in zip(shaped, chosen[len(names) :], strict=True):
                shape.setdefault(role, {})[name] = value
            found.append(Arm(parameters, shape))
    return found


def order(campaign: Campaign, step: Step) -> list[tuple[int, int]]:
    """Repetition and arm of every run of the step, in the order in which they are made."""
    count, chance = step.arm_count, random.Random(f"{campaign.seed}/{step.name}/order")
    if step.order == "shuffled":
        runs = [(repetition, arm) for repetition in range(step.repetitions) for arm in range(count)]
        chance.shuffle(runs)
        return runs
    runs = []
    for repetition in range(step.repetitions):
        block = list(range(count))
        if step.order == "blocks":
            chance.shuffle(block)
        runs.extend((repetition, arm) for arm in block)
    return runs


def items(campaign: Campaign, step: Step) -> Iterator[Item]:
    """Every run of the step, in the order that the seed gives."""
    combinations = arms(campaign, step)
    for number, (repetition, arm) in enumerate(order(campaign, step)):
        yield item(campaign, step, combinations[arm], number, repetition, arm)


def item(campaign: Campaign, step: Step, chosen: Arm, number: int, repetition: int, arm: int) -> Item:
    """The run of ``chosen``, the arm numbered ``arm``, with what is drawn for it."""
    chance = random.Random(f"{campaign.seed}/{step.name}/{repetition}/{arm}")
    seed = chance.getrandbits(31)
    drawn = {k: draw(v, chance) if isinstance(v, Draw) else v for k, v in sorted(chosen.parameters.items())}
    return Item(step.name, number, repetition, arm, seed, drawn, chosen.shape)


def draw(law: Draw, chance: random.Random) -> float | int:
    log = law.law == "log_uniform"
    low, high = (math.log(law.low), math.log(law.high)) if log else (law.low, law.high)
    value = chance.uniform(low, high)
    value = math.exp(value) if log else value
    value = min(max(value, law.low), law.high)
    return round(value) if isinstance(law.low, int) and isinstance(law.high, int) else value
