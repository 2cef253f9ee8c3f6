"""What a campaign is thought to take: bytes of each path, time, days. Estimates, from assumed rates; the budgets are kept by what was
measured. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tandem.app.campaign.scheduler import Cost
from tandem.app.config_schema import LONGEST_MONTH, day_share
from tandem.schema.campaign import Campaign, Draw, Item, Step, arms

ASSUMED_BIT_PER_S = 10e6
ASSUMED_RTT_MS = 60.0
_OVERHEAD_S = 2.0
"""A process started, a session opened and closed."""
_INITIAL_WINDOW = 14_600
_DAY_S = 86400.0

Rates = Mapping[str, float]
Rule = Callable[[Mapping[str, Any], Rates, float], Cost]
"""Parameters, bit/s by role, the longest round trip in s."""


def cost(campaign: Campaign, step: Step, item: Item) -> Cost:
    rates, rtt_s = _links(campaign, item.shape, "up" if item.parameters.get("mode") == "oneway" else "down")
    rule = RULES.get(step.experiment, _other)
    found = rule(item.parameters, rates, rtt_s)
    seconds = found.seconds if step.seconds is None else step.seconds
    by_role = found.bytes_by_role if step.bytes is None else dict.fromkeys(campaign.roles, step.bytes)
    return Cost(seconds + _OVERHEAD_S, by_role)


def _links(campaign: Campaign, shape: Mapping[str, Mapping[str, float]], way: str) -> tuple[dict[str, float], float]:
    rates, longest = {}, ASSUMED_RTT_MS
    for role in campaign.roles:
        made = shape.get(role, {})
        assumed = campaign.assumed_bit_per_s.get(role, ASSUMED_BIT_PER_S)
        rates[role] = min(made.get("rate_bit_per_s", math.inf), made.get(f"{way}_bit_per_s", math.inf), assumed)
        delays = sum(made.get(name, 0.0) for name in ("rtt_ms", "down_delay_ms", "up_delay_ms"))
        longest = max(longest, ASSUMED_RTT_MS + delays)
    return rates, longest / 1000


def _transfer_s(size: float, rate: float, rtt_s: float) -> float:
    """Connecting, the round trips of slow start, and what the rate takes."""
    return rtt_s * (2 + max(0.0, math.log2(1 + size / _INITIAL_WINDOW))) + size * 8 / rate


def _download(p: Mapping[str, Any], rates: Rates, rtt_s: float) -> Cost:
    total = sum(rates.values())
    paused = float(p.get("pause_s", 2.0))
    kind, path = p.get("kind"), p.get("path")
    lone = {role: rate for role, rate in rates.items() if kind != "tcp" or path in (role, "random", None)}
    if p.get("seconds") is not None:
        seconds = float(p["seconds"])
        if kind is not None:
            return Cost(seconds, {role: round(rate * seconds / 8) for role, rate in lone.items()})
        simultaneous = p.get("pairing") == "simultaneous"
        times = 1 if simultaneous else 2
        took = seconds if simultaneous else (len(rates) + 1) * (seconds + paused)
        return Cost(took, {role: round(rate * seconds / 8) * times for role, rate in rates.items()})
    size = float(p.get("bytes") or 0)
    shared = {role: size * rate / total for role, rate in rates.items()}
    if kind == "mptcp":
        return Cost(_transfer_s(size, total, rtt_s), _whole(shared))
    if kind == "tcp":
        return Cost(max(_transfer_s(size, rate, rtt_s) for rate in lone.values()), dict.fromkeys(lone, round(size)))
    both = {role: size + shared[role] for role in rates}
    if p.get("pairing") == "simultaneous":
        return Cost(max(_transfer_s(both[role], rate, rtt_s) for role, rate in rates.items()), _whole(both))
    alone = sum(_transfer_s(size, rate, rtt_s) + paused for rate in rates.values())
    return Cost(alone + _transfer_s(size, total, rtt_s), _whole(both))


def _bandwidth(p: Mapping[str, Any], rates: Rates, rtt_s: float) -> Cost:
    """Cordero §3.2.2: (n + 2) transmissions: each path, all at once, MPTCP."""
    seconds, rounds = float(p.get("seconds") or 60.0), float(p.get("repetitions") or 1)
    took = max((len(rates) + 2) * (seconds + rtt_s * 3), float(p.get("interval_s") or 0.0))
    return Cost(rounds * took, {role: round(rounds * 3 * rate * seconds / 8) for role, rate in rates.items()})


def _delay(p: Mapping[str, Any], rates: Rates, rtt_s: float) -> Cost:
    """Cordero §3.2.2: each path, and MPTCP."""
    low, high = float(p.get("min_bytes") or 1000), float(p.get("max_bytes") or 1e7)
    size = _mean(Draw("log_uniform", low, high)) if low < high else low
    rounds = float(p.get("repetitions") or 1)
    one = _download({"pairing": "sequential", "pause_s": 0.0, "bytes": size}, rates, rtt_s)
    return Cost(rounds * one.seconds, {role: round(rounds * count) for role, count in one.bytes_by_role.items()})


def _dash(p: Mapping[str, Any], rates: Rates, rtt_s: float) -> Cost:
    seconds = float(p.get("seconds") or 600.0)
    total = sum(rates.values())
    got = min(total, 15e6) * seconds / 8
    return Cost(seconds + rtt_s * 10, _whole({role: got * rate / total for role, rate in rates.items()}))


def _reachability(p: Mapping[str, Any], rates: Rates, rtt_s: float) -> Cost:  # noqa: ARG001 the rules' signature
    """Each name: resolved on each path; its addresses pinged over each path. A query and its answer some 250 bytes, a handshake and
    its end some 240 (a SYN is 60, headers of the link not counted)."""
    names, pings = float(p.get("first") or 10_000), float(p.get("pings") or 10)
    ways = len(rates)
    by_role = {role: round(names * (250 + ways * pings * 240)) for role in rates}
    pace = float(p.get("ping_hz") or 50)
    return Cost(names * ways * pings / pace, by_role)


def _pageload(p: Mapping[str, Any], rates: Rates, rtt_s: float) -> Cost:
    """Each page 2 MB and 20 round trips, a guess, and 3 s for the browser."""
    names = str(p.get("pages") or "one")
    pages = float(p.get("first") or 1000) if names == "all" else names.count(",") + 1.0
    loads = pages * float(p.get("repetitions") or 1) * (1 + (p.get("browser") == "both"))
    size, total = loads * 2e6, sum(rates.values())
    took = size * 8 / total + loads * (3 + 20 * rtt_s + float(p.get("pause_s") or 0.0))
    return Cost(took, _whole({role: size * rate / total for role, rate in rates.items()}))


def _latency(p: Mapping[str, Any], rates: Rates, rtt_s: float) -> Cost:
    """Each path idle, and beside a download on it."""
    seconds, load = float(p.get("seconds") or 10.0), p.get("load", "both")
    probes = seconds / (float(p.get("interval_ms") or 20.0) / 1000) * 2 * float(p.get("size") or 100)
    loaded_s = 0.0 if load == "none" else seconds + float(p.get("settle_s") or 2.0)
    idle_s = 0.0 if load == "only" else seconds
    by_role = {role: round(probes * 2 + rate * loaded_s / 8) for role, rate in rates.items()}
    return Cost(len(rates) * (idle_s + loaded_s + rtt_s + 4.0), by_role)


def _verdict(p: Mapping[str, Any], rates: Rates, rtt_s: float) -> Cost:
    """Each path as the primary and as the one that joins, and by TCP."""
    size, total = float(p.get("bytes") or 500_000), sum(rates.values())
    took = 3 * len(rates) * _transfer_s(size, min(rates.values()), rtt_s)
    return Cost(took, {role: round(3 * len(rates) * size * rate / total) for role, rate in rates.items()})


def _other(p: Mapping[str, Any], rates: Rates, rtt_s: float) -> Cost:
    """By the parameters that most experiments have."""
    seconds = next((float(p[n]) for n in ("seconds", "duration_s", "deadline_s") if _is_number(p.get(n))), 60.0)
    size = float(p["bytes"]) if _is_number(p.get("bytes")) else 100_000.0
    return Cost(seconds + rtt_s, dict.fromkeys(rates, round(size)))


RULES: dict[str, Rule] = {
    "download": _download,
    "bandwidth": _bandwidth,
    "delay": _delay,
    "dash": _dash,
    "reachability": _reachability,
    "pageload": _pageload,
    "latency": _latency,
    "verdict": _verdict,
}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _whole(values: Mapping[str, float]) -> dict[str, int]:
    return {role: round(value) for role, value in values.items()}


@dataclass(frozen=True, slots=True)
class StepEstimate:
    """One step. ``days``: how long its trigger and its runs take; None where only a person or the road knows."""

    name: str
    experiment: str
    arms: int
    runs: int
    seconds: float
    bytes_by_role: Mapping[str, int]
    largest_run_bytes: int
    days: float | None


@dataclass(frozen=True, slots=True)
class Estimate:
    """The whole. ``days``: at least, with the budgets; None when a step's days are not known; ``held_by``: what makes it so long.
    ``largest_run_bytes``: that a single run takes of one path."""

    steps: tuple[StepEstimate, ...]
    runs: int
    seconds: float
    bytes_by_role: Mapping[str, int]
    largest_run_bytes: int
    days: float | None
    held_by: str


def estimate(campaign: Campaign) -> Estimate:
    """Of all steps. A drawn value counts with its mean."""
    steps = tuple(_step(campaign, step) for step in campaign.steps)
    total = Counter[str]()
    for one in steps:
        total.update(one.bytes_by_role)
    runs = sum(s.runs for s in steps)
    seconds = sum(s.seconds for s in steps)
    limits = {"the runs": seconds / _DAY_S}
    unknown = [s.name for s in steps if s.days is None]
    for one in steps:
        if one.days is not None:
            limits[f"the trigger of {one.name}"] = one.days
    budget = campaign.budget
    if budget.day_runs is not None:
        limits["runs in a day"] = _nights(runs, budget.day_runs)
    for role, count in total.items():
        if budget.day_bytes is not None:
            limits[f"{role}'s bytes in a day"] = _nights(count, budget.day_bytes)
        limit = budget.of_role(role)
        if limit is not None:
            limits[f"{role}'s plan"] = _nights(count, limit) * 30.44
    held_by, days = max(limits.items(), key=lambda pair: pair[1])
    if unknown:
        held_by = f"what starts {', '.join(unknown)}, which is not known (at least {days:.2g} days)"
    largest = max(s.largest_run_bytes for s in steps)
    return Estimate(steps, runs, seconds, dict(total), largest, None if unknown else days, held_by)


def _nights(wanted: float, share: float) -> float:
    """How often one has to wait for the next share, the first of which is there from the beginning."""
    return max(0.0, math.ceil(wanted / share) - 1.0)


def _step(campaign: Campaign, step: Step) -> StepEstimate:
    seconds, total, largest = 0.0, Counter[str](), 0
    for number, arm in enumerate(arms(campaign, step)):
        plain = {n: _mean(v) if isinstance(v, Draw) else v for n, v in arm.parameters.items()}
        one = cost(campaign, step, Item(step.name, number, 0, number, 0, plain, arm.shape))
        seconds += one.seconds
        largest = max(largest, *one.bytes_by_role.values())
        total.update(one.bytes_by_role)
    runs = step.run_count
    seconds = seconds * step.repetitions + max(0, runs - 1) * campaign.quiet_s
    by_role = {role: count * step.repetitions for role, count in total.items()}
    days = _days(step, seconds, runs)
    return StepEstimate(step.name, step.experiment, step.arm_count, runs, seconds, by_role, largest, days)


def _days(step: Step, seconds: float, runs: int) -> float | None:
    trigger = step.trigger
    apart = max(trigger.gap_s, trigger.every_s or 0.0, trigger.mean_s or 0.0)
    days = max(seconds, runs * apart) / _DAY_S
    if trigger.on in ("always", "periodic", "poisson"):
        pass
    elif trigger.on == "window":
        span = ((trigger.end or 0) - (trigger.start or 0)) % 1440
        days *= 1440 / span
    elif trigger.expected_per_day is not None:
        days = max(days, runs / trigger.expected_per_day)
    else:
        return None
    return days


def _mean(law: Draw) -> float:
    if law.law == "uniform":
        return (law.low + law.high) / 2
    return (law.high - law.low) / (math.log(law.high) - math.log(law.low))


# ---------------------------------------------------------------------------------------------------------------------
# Whether a campaign fits the plan of its SIMs; from the estimate, so from assumed rates.


@dataclass(frozen=True, slots=True)
class RoleFit:
    """One SIM. ``month_bytes``: in a month of its plan; ``day_bytes``: a day, on average; their shares of the plan and of the SIM's
    ``day_bytes``. Days begun count, and one where they are not known."""

    month_bytes: int
    plan_share: float
    day_bytes: int
    day_share: float


@dataclass(frozen=True, slots=True)
class PlanFit:
    """All of its SIMs. ``day_bytes``: what a SIM of this plan may carry a day; ``round_trip_day_bytes``: what round trips all the time
    take of it, counted in ``by_role``; ``reason``: why it does not fit, None when it does."""

    plan_bytes: int
    day_bytes: int
    round_trip_day_bytes: int
    by_role: Mapping[str, RoleFit]
    reason: str | None


def plan_fit(found: Estimate, plan_bytes: int, round_trip_day_bytes: int = 0) -> PlanFit:
    """``plan_bytes``: of each SIM, a month. ``round_trip_day_bytes``: of each SIM too, on every day of a month, whatever the campaign."""
    share = day_share(plan_bytes)
    days = math.floor(found.days or 0) + 1
    by_role = {}
    for role, count in found.bytes_by_role.items():
        month = math.ceil(count * min(1.0, LONGEST_MONTH / days)) + LONGEST_MONTH * round_trip_day_bytes
        day = math.ceil(count / days) + round_trip_day_bytes
        by_role[role] = RoleFit(month, month / plan_bytes, day, day / max(1, share))
    reason = None
    role, most = max(by_role.items(), key=lambda pair: pair[1].month_bytes)
    if most.month_bytes > plan_bytes:
        trips = LONGEST_MONTH * round_trip_day_bytes
        part = f" ({trips / 1e9:.3g} GB of it round trips)" if trips else ""
        reason = f"{role} takes {most.month_bytes / 1e9:.3g} GB a month{part}, the plan has {plan_bytes / 1e9:.3g} GB"
    elif found.largest_run_bytes + round_trip_day_bytes > share:
        largest = f"{found.largest_run_bytes / 1e6:.3g} MB"
        part = f" and round trips {round_trip_day_bytes / 1e6:.3g} MB" if round_trip_day_bytes else ""
        reason = f"its largest run takes {largest}{part} of a SIM, whose day_bytes are {share / 1e6:.3g} MB"
    return PlanFit(plan_bytes, share, round_trip_day_bytes, by_role, reason)
