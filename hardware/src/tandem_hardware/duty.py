"""How much of its time on a campaign has the probe measure, and what that moves. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from tandem.schema.campaign import Campaign, Step, Trigger
from tandem.schema.campaign_sequence import arms
from tandem_hardware.runs import Took, run_of

AROUND_S = 2.0
"""Around each run: a process started, a session opened and closed."""


@dataclass(frozen=True, slots=True)
class Duty:
    """Of a day with every step still to do. ``share``: of the time on, from 0 to 1; ``bytes_per_day``: over the path that carries most;
    ``assumed``: steps of which nothing says how often they start, taken as if they started whenever they may."""

    share: float
    runs_per_day: float
    seconds_per_run: float
    bytes_per_day: float
    assumed: tuple[str, ...]


def duty(campaign: Campaign, hours_on: float) -> Duty:
    """What triggers ask for, at most all the time; less where a day's runs or bytes are limited."""
    on_s = hours_on * 3600
    costs = [run(campaign, step) for step in campaign.steps]
    runs = [_runs(s.trigger, c.seconds + campaign.quiet_s, on_s) for s, c in zip(campaign.steps, costs, strict=True)]
    count = sum(runs)
    busy_s = sum(n * c.seconds for n, c in zip(runs, costs, strict=True))
    whole_s = busy_s + count * campaign.quiet_s
    moved = max(
        (sum(n * c.bytes[r] for n, c in zip(runs, costs, strict=True)) for r in range(len(campaign.roles))), default=0
    )
    part = min(1.0, on_s / whole_s) if whole_s > 0 else 1.0
    budget = campaign.budget
    if budget.day_runs is not None and count > 0:
        part = min(part, budget.day_runs / count)
    if budget.day_bytes is not None and moved > 0:
        part = min(part, budget.day_bytes / moved)
    assumed = tuple(step.name for step in campaign.steps if _unknown(step.trigger))
    share = min(1.0, part * busy_s / on_s)
    return Duty(share, part * count, busy_s / count if count else 0.0, part * moved, assumed)


def run(campaign: Campaign, step: Step) -> Took:
    """A run of the step: the mean of its arms."""
    found = [run_of(campaign, step, arm) for arm in arms(campaign, step)]
    seconds = sum(one.seconds for one in found) / len(found)
    moved = tuple(sum(one.bytes[r] for one in found) / len(found) for r in range(len(campaign.roles)))
    if step.bytes is not None:
        moved = (float(step.bytes),) * len(campaign.roles)
    return Took((seconds if step.seconds is None else step.seconds) + AROUND_S, moved)


def _unknown(trigger: Trigger) -> bool:
    return trigger.on not in ("always", "periodic", "poisson", "window") and trigger.expected_per_day is None


def _runs(trigger: Trigger, took_s: float, on_s: float) -> float:
    """Runs that a day with ``on_s`` asks for."""
    apart = max(trigger.gap_s, trigger.every_s or 0.0, trigger.mean_s or 0.0, took_s, 1e-3)
    if trigger.on == "window":
        span_s = ((trigger.end or 0) - (trigger.start or 0)) % 1440 * 60
        return min(on_s, span_s or 86400) / apart
    most = on_s / apart
    if trigger.on in ("always", "periodic", "poisson") or trigger.expected_per_day is None:
        return most
    return min(trigger.expected_per_day, most)
