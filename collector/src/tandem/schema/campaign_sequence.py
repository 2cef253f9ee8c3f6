"""The runs of a step, in their order: the same campaign and seed, the same sequence. Pure."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tandem.schema.campaign import Campaign, Draw, Step


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


def items(campaign: Campaign, step: Step, sequence: list[tuple[int, int]] | None = None) -> Iterator[Item]:
    """Every run of the step; ``sequence``: as stored, else by the seed."""
    combinations = arms(campaign, step)
    for number, (repetition, arm) in enumerate(order(campaign, step) if sequence is None else sequence):
        yield item(campaign, step, combinations[arm], number, repetition, arm)


def item(campaign: Campaign, step: Step, chosen: Arm, number: int, repetition: int, arm: int) -> Item:
    """The run of ``chosen``, the arm numbered ``arm``, with what is drawn for it."""
    chance = random.Random(f"{campaign.seed}/{step.name}/{repetition}/{arm}")
    seed = chance.getrandbits(31)
    drawn = {k: draw(v, chance) if isinstance(v, Draw) else v for k, v in sorted(chosen.parameters.items())}
    return Item(step.name, number, repetition, arm, seed, drawn, chosen.shape)


def draw(law: Draw, chance: random.Random) -> float | int:
    """One value within the law's bounds."""
    log = law.law == "log_uniform"
    low, high = (math.log(law.low), math.log(law.high)) if log else (law.low, law.high)
    value = chance.uniform(low, high)
    value = math.exp(value) if log else value
    value = min(max(value, law.low), law.high)
    return round(value) if isinstance(law.low, int) and isinstance(law.high, int) else value
