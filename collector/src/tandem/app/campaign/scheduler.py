"""What a campaign measures next, or why it waits. Pure: whoever drives it says what time it is and what happened.

Rules. One run at a time. After a run ``quiet_s`` without another. Of the steps that may begin, the highest priority first, then the
order of the file. A run that failed on the network was made: failure is a result. A run that was cut off (power) is made again, at
most ``MOST_ATTEMPTS`` times in all, or counts, as the campaign says. After three failures in a row there is a pause that grows.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, tzinfo
from typing import Any

from tandem.app.config_schema import PlanConfig
from tandem.app.daemon import accounts
from tandem.app.daemon.accounts import midnight_s, reset_after, reset_before
from tandem.position.zones import Point, distance_m
from tandem.schema import zones
from tandem.schema.campaign import Budget, Campaign, Conditions, Item, Step, Trigger, arms, item


@dataclass(frozen=True, slots=True)
class Moment:
    """An instant. ``monotonic_s`` of ``boot``; ``utc_s`` None before the clock was synchronised."""

    boot: str
    monotonic_s: float
    utc_s: float | None = None

    def since(self, earlier: Moment) -> float | None:
        """Seconds from ``earlier``, never below 0; None when they cannot be compared (another boot, and no UTC)."""
        if self.boot == earlier.boot:
            return max(0.0, self.monotonic_s - earlier.monotonic_s)
        if self.utc_s is None or earlier.utc_s is None:
            return None
        return max(0.0, self.utc_s - earlier.utc_s)


@dataclass(frozen=True, slots=True)
class ProbeState:
    """The probe now. ``speed_class``: still, low, high, None while it is not known; ``position``: latitude and longitude in degrees;
    ``paths_up``: roles whose path can carry data; ``busy``: something else is being measured;
    ``left_bytes``: by role what the SIM may still carry today, where its owner set a limit (``day_bytes``)."""

    mobile: bool = False
    speed_class: str | None = None
    position: tuple[float, float] | None = None
    paths_up: frozenset[str] = frozenset()
    busy: bool = False
    left_bytes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Happening:
    """An event of the schema's kinds."""

    kind: str
    at: Moment


@dataclass(frozen=True, slots=True)
class Cost:
    """What a run is thought to take. ``bytes_by_role``: in both directions together."""

    seconds: float
    bytes_by_role: Mapping[str, int]


@dataclass(slots=True)
class Entry:
    """A run of the campaign, as it is stored. ``ok`` None: it did not come to an end (power cut) or is under way; ``bytes_by_role``:
    measured, the estimate where it was not."""

    step: str
    number: int
    repetition: int
    arm: int
    attempt: int
    started: Moment
    bytes_by_role: dict[str, int]
    label: str | None = None
    ended: Moment | None = None
    ok: bool | None = None
    failure: str | None = None
    runs: list[str] = field(default_factory=list)
    substituted: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By parameter or ``scheduler``: ``asked`` and ``used``, where this kernel had not what the campaign requires."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended. ``bytes_by_role``: None where it was not measured."""

    ok: bool
    failure: str | None
    runs: tuple[str, ...]
    bytes_by_role: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Start:
    """Begin this run now."""

    item: Item
    attempt: int
    cost: Cost
    label: str | None


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing begins. ``reasons``: by step, or under "" for all of them; ``in_s``: when it is worth asking again, None: when something
    happens; ``hold``: maintenance has to wait too."""

    reasons: Mapping[str, str]
    in_s: float | None
    hold: bool


@dataclass(frozen=True, slots=True)
class Done:
    """Every run of every step was made."""


Decision = Start | Wait | Done

# ---------------------------------------------------------------------------------------------------------------------
# What may still be spent: bytes of each path in a day and from one reset of its plan to the next, runs in a day. Days of bytes
# are UTC, as those of the SIMs' accounts; days of runs are the campaign's local ones. What was spent at a time unknown (the
# clock was never synchronised) counts as spent today.


_DAY_S = 86400.0


class Spending:
    """Adds up. ``None`` as a day: not known. ``local``: the zone of the days of runs."""

    def __init__(self, budget: Budget, roles: tuple[str, ...], local: tzinfo = UTC) -> None:
        self._budget, self._roles, self._local = budget, roles, local
        self._bytes: dict[date | None, dict[str, int]] = defaultdict(lambda: dict.fromkeys(roles, 0))
        self._runs: dict[date | None, int] = defaultdict(int)

    def add(self, bytes_by_role: Mapping[str, int], utc_s: float | None, *, run: bool = True) -> None:
        """Something was spent; ``run`` False: a correction of what a run was thought to spend."""
        day = None if utc_s is None else zones.day_of(utc_s, UTC)
        for role, count in bytes_by_role.items():
            self._bytes[day][role] = self._bytes[day].get(role, 0) + count
        self._runs[None if utc_s is None else zones.day_of(utc_s, self._local)] += run

    def refuses(
        self, cost: Mapping[str, int], utc_s: float | None, sims_left: Mapping[str, int] | None = None
    ) -> tuple[str, float | None] | None:
        """Why a run of this cost may not begin, and in how many seconds it may (None: not known); None when it may. ``sims_left``: by
        role what its SIM may still carry today."""
        budget = self._budget
        today = self._today(utc_s)
        to_midnight = None if utc_s is None else _DAY_S - utc_s % _DAY_S
        if budget.day_runs is not None and self._runs_today(utc_s) >= budget.day_runs:
            wait_s = None if utc_s is None else zones.to_midnight(utc_s, self._local)
            return f"the day's {budget.day_runs} runs are made", wait_s
        for role, count in cost.items():
            if count > (left := (sims_left or {}).get(role, count)):
                return f"{role}: its SIM's day_bytes have {left} left, the run takes {count}", to_midnight
            spent = self._spent_on(today, role)
            if budget.day_bytes is not None and spent + count > budget.day_bytes:
                return (
                    f"{role}: the day's budget has {max(0, budget.day_bytes - spent)} bytes left, the run takes {count}",
                    to_midnight,
                )
            limit = budget.of_role(role)
            if limit is not None and self._since_reset(today, role) + count > limit:
                left = max(0, limit - self._since_reset(today, role))
                return f"{role}: the plan has {left} bytes left, the run takes {count}", self._to_reset(today, utc_s)
        return None

    def forecast(self, role: str, utc_s: float | None) -> dict[str, Any]:
        """A role's plan now, as the status has it. ``at_reset_bytes``: what will have been spent when the plan begins anew
        (``accounts.forecast``); None before UTC is known. ``exceeds``: the budget will not last."""
        today = self._today(utc_s)
        used, limit = self._since_reset(today, role), self._budget.of_role(role)
        reset = at_reset = None
        if utc_s is not None:
            days = {str(day): spent.get(role, 0) for day, spent in self._bytes.items()}
            expected = accounts.forecast(PlanConfig(limit or 0, self._budget.reset_day, 1.0), days, utc_s)
            reset, at_reset = expected.reset.isoformat(), expected.expected_bytes
        return {
            "used_bytes": used,
            "used_today_bytes": self._spent_on(today, role),
            "budget_bytes": limit,
            "left_bytes": None if limit is None else max(0, limit - used),
            "reset": reset,
            "at_reset_bytes": at_reset,
            "exceeds": at_reset is not None and limit is not None and at_reset > limit,
            "day_budget_bytes": self._budget.day_bytes,
        }

    def _today(self, utc_s: float | None) -> date | None:
        """Without UTC: the last day of which anything is known, so that a budget is never spent twice."""
        if utc_s is not None:
            return zones.day_of(utc_s, UTC)
        return max((d for d in self._bytes if d is not None), default=None)

    def _runs_today(self, utc_s: float | None) -> int:
        days = [day for day in self._runs if day is not None]
        today = max(days, default=None) if utc_s is None else zones.day_of(utc_s, self._local)
        return sum(self._runs.get(day, 0) for day in {None, today})

    def _spent_on(self, today: date | None, role: str) -> int:
        days = {None, today}
        return sum(self._bytes[d].get(role, 0) for d in days if d in self._bytes)

    def _since_reset(self, today: date | None, role: str) -> int:
        begin = None if today is None else reset_before(today, self._budget.reset_day)
        return sum(
            spent.get(role, 0) for day, spent in self._bytes.items() if day is None or begin is None or day >= begin
        )  # fmt: skip

    def _to_reset(self, today: date | None, utc_s: float | None) -> float | None:
        if today is None or utc_s is None:
            return None
        return max(0.0, midnight_s(reset_after(today, self._budget.reset_day)) - utc_s)


# ---------------------------------------------------------------------------------------------------------------------
# The scheduler: whether a step's trigger and conditions let a run begin now, and which is next.


MOST_ATTEMPTS = 3
BY_HAND = "by hand: waits to be told"
_REMEMBERED = 64
_PATIENCE = 3
_PAUSE_S, _LONGEST_PAUSE_S = 30.0, 600.0


@dataclass(slots=True)
class Life:
    """What happened to one step so far. ``starts``: how many runs began; ``labels``: those by hand that wait."""

    starts: int = 0
    last_start: Moment | None = None
    labels: deque[str | None] = field(default_factory=deque)


@dataclass(frozen=True, slots=True)
class Not:
    """Why not; ``in_s``: when it is worth asking again, None: when something happens."""

    reason: str
    in_s: float | None = None


def _speed(wanted: str | None, probe: ProbeState) -> Not | None:
    return None if probe.speed_class == wanted else Not(f"waits for speed class {wanted}")


def _place(trigger: Trigger, probe: ProbeState) -> Not | None:
    if probe.position is None:
        return Not("where the probe is is not known")
    if trigger.latitude_deg is None or trigger.longitude_deg is None or trigger.radius_m is None:
        raise ValueError("a place needs latitude_deg, longitude_deg and radius_m")
    away = distance_m(Point(*probe.position), Point(trigger.latitude_deg, trigger.longitude_deg))
    return None if away <= trigger.radius_m else Not(f"is not at its place (radius {trigger.radius_m:g} m)")


class Scheduler:
    """``sequences``: by step, repetition and arm of every run in order; ``entries``: what was made so far, oldest first; ``begun``:
    when the campaign began; ``estimate``: what a run is thought to cost; ``local``: the zone of its windows and days."""

    def __init__(
        self,
        campaign: Campaign,
        sequences: Mapping[str, Sequence[tuple[int, int]]],
        entries: Iterable[Entry],
        begun: Moment,
        estimate: Callable[[Item], Cost],
        local: tzinfo = UTC,
    ) -> None:
        self.local = local
        self._campaign, self._sequences, self._begun, self._estimate = campaign, sequences, begun, estimate
        self._arms = {step.name: arms(campaign, step) for step in campaign.steps}
        self._lives = {step.name: Life() for step in campaign.steps}
        self._settled: dict[str, set[int]] = {step.name: set() for step in campaign.steps}
        self._first_open = dict.fromkeys(self._lives, 0)
        self._attempts: Counter[tuple[str, int]] = Counter()
        self._spending = Spending(campaign.budget, campaign.roles, local)
        self._happened: deque[Happening] = deque(maxlen=_REMEMBERED)
        self._running: Entry | None = None
        self._last_end: Moment | None = None
        self._failures = 0
        self.counts = Counter[str]()
        for entry in entries:
            self._remember(entry)

    def _remember(self, entry: Entry) -> None:
        if entry.step not in self._lives:
            return
        self._begin(entry)
        if entry.ended is None:
            self._cut_off(entry)
        else:
            self._finish(entry)
        self._running = None

    # --- what happens ----------------------------------------------------------------------------------------------------

    def note(self, happening: Happening) -> None:
        self._happened.append(happening)

    def tell(self, label: str | None, step: str | None = None) -> None:
        """By hand: one run of each step that waits for it, or of ``step``. ValueError with the reason when none takes it."""
        taking = [s for s in self._campaign.steps if s.trigger.on == "hand" and step in (None, s.name)]
        if not taking:
            raise ValueError(
                "no step of this campaign begins by hand" if step is None else f"no step {step!r} begins by hand"
            )
        takers = [s for s in taking if not s.trigger.labels or label in s.trigger.labels]
        if not takers:
            known = sorted({name for s in taking for name in s.trigger.labels})
            raise ValueError(f"label {label!r} is none of {', '.join(known)}")
        for taker in takers:
            self._lives[taker.name].labels.append(label)

    def started(self, start: Start, now: Moment) -> Entry:
        chosen = start.item
        entry = Entry(
            chosen.step,
            chosen.number,
            chosen.repetition,
            chosen.arm,
            start.attempt,
            now,
            dict(start.cost.bytes_by_role),
            start.label,
        )
        self._begin(entry)
        labels = self._lives[chosen.step].labels
        if labels:
            labels.popleft()
        return entry

    def ended(self, entry: Entry, outcome: Outcome, now: Moment) -> None:
        thought = dict(entry.bytes_by_role)
        entry.ended, entry.ok, entry.failure, entry.runs = now, outcome.ok, outcome.failure, list(outcome.runs)
        if outcome.bytes_by_role is not None:
            entry.bytes_by_role = {**thought, **outcome.bytes_by_role}
            change = {role: count - thought.get(role, 0) for role, count in entry.bytes_by_role.items()}
            self._spending.add(change, entry.started.utc_s, run=False)
        self._finish(entry)

    def _begin(self, entry: Entry) -> None:
        life = self._lives[entry.step]
        life.starts, life.last_start = life.starts + 1, entry.started
        self._attempts[entry.step, entry.number] += 1
        self._spending.add(entry.bytes_by_role, entry.started.utc_s)
        self._running = entry

    def _finish(self, entry: Entry) -> None:
        self._settled[entry.step].add(entry.number)
        self._last_end = entry.ended
        self._failures = 0 if entry.ok else self._failures + 1
        self.counts["ok" if entry.ok else "failed"] += 1
        self._running = None

    def _cut_off(self, entry: Entry) -> None:
        self.counts["cut_off"] += 1
        enough = self._attempts[entry.step, entry.number] >= MOST_ATTEMPTS
        if self._campaign.on_interrupt == "count" or enough:
            self._settled[entry.step].add(entry.number)

    # --- what next -------------------------------------------------------------------------------------------------------

    def decide(self, now: Moment, probe: ProbeState) -> Decision:
        if self._running is not None:
            return Wait({"": "a run is under way"}, None, hold=self._campaign.hold_maintenance)
        open_steps = [s for s in self._campaign.steps if self._open(s) is not None]
        if not open_steps:
            return Done()
        if probe.busy:
            return Wait({"": "something else is being measured"}, None, hold=False)
        pause = self._pause(now)
        if pause is not None:
            return Wait({"": pause.reason}, pause.in_s, hold=self._campaign.hold_maintenance)
        reasons: dict[str, str] = {}
        soonest: float | None = None
        for step in sorted(open_steps, key=lambda s: -s.priority):
            ready = self._ready(step, now, probe)
            if isinstance(ready, Start):
                return ready
            reasons[step.name] = ready.reason
            if ready.in_s is not None:
                soonest = ready.in_s if soonest is None else min(soonest, ready.in_s)
        near = soonest is not None and soonest <= self._campaign.quiet_s
        return Wait(reasons, soonest, hold=near and self._campaign.hold_maintenance)

    def _ready(self, step: Step, now: Moment, probe: ProbeState) -> Start | Not:
        life, campaign = self._lives[step.name], self._campaign
        number = self._open(step)
        not_yet = self._due(step, life, now, probe) or self._holds(step.conditions, now, probe)
        if not_yet is not None or number is None:
            return not_yet or Not("all its runs are made")
        repetition, arm = self._sequences[step.name][number]
        chosen = item(campaign, step, self._arms[step.name][arm], number, repetition, arm)
        cost = self._estimate(chosen)
        refused = self._spending.refuses(cost.bytes_by_role, now.utc_s, probe.left_bytes)
        if refused is not None:
            return Not(*refused)
        label = life.labels[0] if life.labels else None
        return Start(chosen, self._attempts[step.name, number] + 1, cost, label)

    def _open(self, step: Step) -> int | None:
        """The next run of the step; None when all are made."""
        number, settled = self._first_open[step.name], self._settled[step.name]
        while number in settled:
            number += 1
        self._first_open[step.name] = number
        return number if number < len(self._sequences[step.name]) else None

    def _pause(self, now: Moment) -> Not | None:
        since = None if self._last_end is None else now.since(self._last_end)
        if since is None:
            return None
        if self._failures >= _PATIENCE:
            wait = min(_PAUSE_S * 2 ** min(self._failures - _PATIENCE, 10), _LONGEST_PAUSE_S)
            if since < wait:
                return Not(f"{self._failures} runs in a row failed: {wait - since:.0f} s until the next", wait - since)
        quiet = self._campaign.quiet_s
        return Not(f"quiet for {quiet - since:.0f} s more", quiet - since) if since < quiet else None

    # --- whether a step's trigger and conditions let a run begin now: None when they do ----------------------------------

    def _due(self, step: Step, life: Life, now: Moment, probe: ProbeState) -> Not | None:
        trigger = step.trigger
        since = None if life.last_start is None else now.since(life.last_start)
        if since is not None and since < trigger.gap_s:
            return Not(f"{trigger.gap_s - since:.0f} s until the step may start again", trigger.gap_s - since)
        match trigger.on:
            case "always":
                return None
            case "mobility_start" | "event":
                return self._event(trigger, life, now)
            case "periodic" | "poisson":
                return self._timed(step, life, now, since)
            case "speed_class":
                return _speed(trigger.speed_class, probe)
            case "window":
                return self._window(trigger.start, trigger.end, now)
            case "place":
                return _place(trigger, probe)
            case _:
                return None if life.labels else Not(BY_HAND)

    def _holds(self, conditions: Conditions, now: Moment, probe: ProbeState) -> Not | None:
        roles = self._campaign.roles
        needed = len(roles) if conditions.paths_up is None else conditions.paths_up
        if len(probe.paths_up) < needed:
            down = ", ".join(r for r in roles if r not in probe.paths_up)
            return Not(f"{len(probe.paths_up)} of {needed} paths are up; down: {down}")
        if conditions.mobile is not None and probe.mobile != conditions.mobile:
            return Not("waits for the probe to move" if conditions.mobile else "waits for the probe to stand still")
        slow = None if conditions.speed_class is None else _speed(conditions.speed_class, probe)
        return slow or self._window(conditions.start, conditions.end, now)

    def _event(self, trigger: Trigger, life: Life, now: Moment) -> Not | None:
        kinds = trigger.event or (trigger.on,)
        for happening in self._happened:
            age = now.since(happening.at)
            used = life.last_start is not None and (happening.at.since(life.last_start) or 0.0) <= 0.0
            if happening.kind in kinds and age is not None and age <= trigger.within_s and not used:
                return None
        return Not(f"waits for {' or '.join(kinds)}")

    def _timed(self, step: Step, life: Life, now: Moment, since: float | None) -> Not | None:
        if step.trigger.on == "periodic":
            if life.last_start is None:
                return None
            gap = step.trigger.every_s or 0.0
        else:
            chance = random.Random(f"{self._campaign.seed}/{step.name}/gap/{life.starts}")
            gap = chance.expovariate(1.0 / (step.trigger.mean_s or 1.0))
            if life.last_start is None:
                since = now.since(self._begun)
        # Not to be compared (another boot, no UTC yet): long enough ago, or the campaign would stand still until the clock is set.
        if since is None or since >= gap:
            return None
        return Not(f"next start in {gap - since:.0f} s", gap - since)

    def _window(self, start: int | None, end: int | None, now: Moment) -> Not | None:
        if start is None or end is None:
            return None
        if now.utc_s is None:
            return Not("the time of day is not known: the clock is not synchronised")
        wait_s = zones.until(start, end, now.utc_s, self.local)
        return Not(f"waits for {zones.shown(now.utc_s + wait_s, self.local)}", wait_s) if wait_s else None

    # --- for people ------------------------------------------------------------------------------------------------------

    def made(self) -> dict[str, tuple[int, int]]:
        """By step: runs that need no further attempt, and all."""
        return {name: (len(self._settled[name]), len(self._sequences[name])) for name in self._lives}

    def forecast(self, now: Moment) -> dict[str, dict[str, Any]]:
        """By role."""
        return {role: self._spending.forecast(role, now.utc_s) for role in self._campaign.roles}
