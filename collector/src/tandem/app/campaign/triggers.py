"""Whether a step's trigger and conditions let a run begin now. Pure."""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import tzinfo

from tandem.app.campaign.state import Happening, Moment, ProbeState
from tandem.schema import zones
from tandem.schema.campaign import Conditions, Trigger

_EARTH_M = 6_371_000.0


@dataclass(slots=True)
class Life:
    """What happened to one step so far. ``starts``: how many runs began; ``told``: labels by hand that wait."""

    starts: int = 0
    last_start: Moment | None = None
    told: deque[str | None] = field(default_factory=deque)


@dataclass(frozen=True, slots=True)
class Not:
    """Why not; ``in_s``: when it is worth asking again, None: when something happens."""

    reason: str
    in_s: float | None = None


def due(
    trigger: Trigger,
    life: Life,
    now: Moment,
    probe: ProbeState,
    happened: Iterable[Happening],
    begun: Moment,
    chance: str,
    local: tzinfo,
) -> Not | None:
    """None when a run is due. ``begun``: when the campaign began; ``chance``: seeds the gaps of this step; ``local``: of windows."""
    since = None if life.last_start is None else now.since(life.last_start)
    if since is not None and since < trigger.gap_s:
        return Not(f"{trigger.gap_s - since:.0f} s until the step may start again", trigger.gap_s - since)
    match trigger.on:
        case "always":
            return None
        case "mobility_start" | "event":
            return _event(trigger, life, now, happened)
        case "periodic" | "poisson":
            return _timed(trigger, life, now, since, begun, chance)
        case "speed_class":
            return (
                None
                if probe.speed_class == trigger.speed_class
                else Not(f"waits for speed class {trigger.speed_class}")
            )
        case "window":
            return _window(trigger.start, trigger.end, now, local)
        case "place":
            return _place(trigger, probe)
        case _:
            return None if life.told else Not("by hand: waits to be told")


def holds(conditions: Conditions, roles: tuple[str, ...], now: Moment, probe: ProbeState, local: tzinfo) -> Not | None:
    """None when the conditions hold; ``local``: of ``between``."""
    needed = len(roles) if conditions.paths_up is None else conditions.paths_up
    if len(probe.paths_up) < needed:
        down = ", ".join(r for r in roles if r not in probe.paths_up)
        return Not(f"{len(probe.paths_up)} of {needed} paths are up; down: {down}")
    if conditions.mobile is not None and probe.mobile != conditions.mobile:
        return Not("waits for the probe to move" if conditions.mobile else "waits for the probe to stand still")
    if conditions.speed_class is not None and probe.speed_class != conditions.speed_class:
        return Not(f"waits for speed class {conditions.speed_class}")
    return _window(conditions.start, conditions.end, now, local)


def _event(trigger: Trigger, life: Life, now: Moment, happened: Iterable[Happening]) -> Not | None:
    kinds = trigger.event or (trigger.on,)
    for happening in happened:
        age = now.since(happening.at)
        used = life.last_start is not None and (happening.at.since(life.last_start) or 0.0) <= 0.0
        if happening.kind in kinds and age is not None and age <= trigger.within_s and not used:
            return None
    return Not(f"waits for {' or '.join(kinds)}")


def _timed(trigger: Trigger, life: Life, now: Moment, since: float | None, begun: Moment, chance: str) -> Not | None:
    if trigger.on == "periodic":
        if life.last_start is None:
            return None
        gap = trigger.every_s or 0.0
    else:
        gap = random.Random(f"{chance}/gap/{life.starts}").expovariate(1.0 / (trigger.mean_s or 1.0))
        if life.last_start is None:
            since = now.since(begun)
    # Not to be compared (another boot, no UTC yet): long enough ago, or the campaign would stand still until the clock is set.
    if since is None or since >= gap:
        return None
    return Not(f"next start in {gap - since:.0f} s", gap - since)


def _window(start: int | None, end: int | None, now: Moment, local: tzinfo) -> Not | None:
    if start is None or end is None:
        return None
    if now.utc_s is None:
        return Not("the time of day is not known: the clock is not synchronised")
    wait_s = zones.until(start, end, now.utc_s, local)
    return Not(f"waits for {zones.shown(now.utc_s + wait_s, local)}", wait_s) if wait_s else None


def _place(trigger: Trigger, probe: ProbeState) -> Not | None:
    if probe.position is None:
        return Not("where the probe is is not known")
    if trigger.latitude_deg is None or trigger.longitude_deg is None or trigger.radius_m is None:
        raise ValueError("a place needs latitude_deg, longitude_deg and radius_m")
    away = distance_m(probe.position, (trigger.latitude_deg, trigger.longitude_deg))
    return None if away <= trigger.radius_m else Not(f"is not at its place (radius {trigger.radius_m:g} m)")


def distance_m(a: tuple[float, float], b: tuple[float, float]) -> float:
    """Great-circle distance of two positions (latitude, longitude in degrees), on a sphere."""
    (lat_a, lon_a), (lat_b, lon_b) = ((math.radians(x), math.radians(y)) for x, y in (a, b))
    half = math.sin((lat_b - lat_a) / 2) ** 2 + math.cos(lat_a) * math.cos(lat_b) * math.sin((lon_b - lon_a) / 2) ** 2
    return 2 * _EARTH_M * math.asin(math.sqrt(min(1.0, half)))
