"""Whether traces may go up now, over which paths, and why not. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tandem.app.config_modem import PathConfig
from tandem.app.config_traces import TracesConfig
from tandem.app.traces.night import begins_in
from tandem.export import LEAST_LEFT_BYTES, Permit

_HELD_S, _PATH_S, _CLOCK_S = 0.5, 10.0, 5.0


@dataclass(frozen=True, slots=True)
class PathSight:
    """``left_bytes``: what uploads may still cost it today; only looked at where it is ``metered``."""

    name: str
    metered: bool
    up: bool
    left_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Sight:
    """``held``: what is being measured or about to be, None when nothing is. ``local_minute``: of the day, None while the clock is not set.
    ``still_s``: since the radio changed last, as far as the collector saw; ``asked``: a person wants it now."""

    held: str | None
    local_minute: float | None
    mobile: bool
    still_s: float
    asked: bool
    paths: Sequence[PathSight]


def decide(rules: TracesConfig, sight: Sight) -> Permit:
    """A person's wish overrules the time of day and the two quiet hours; never a measurement, nor a SIM's budget."""
    if sight.held is not None:
        return _no(sight.held, _HELD_S)
    if not sight.asked:
        no = _time(rules, sight)
        if no is not None:
            return no
    free = [p for p in sight.paths if p.up and not p.metered]
    if free:
        return Permit(tuple(p.name for p in free), f"over {', '.join(p.name for p in free)}", 0.0, {})
    if rules.over == "unmetered":
        return _no("no path without a SIM is up", _PATH_S)
    metered = [p for p in sight.paths if p.up]
    if not metered:
        return _no("no path is up", _PATH_S)
    paid = sorted((p for p in metered if p.left_bytes >= LEAST_LEFT_BYTES), key=lambda p: -p.left_bytes)
    if not paid:
        return _no("what uploads may cost the SIMs today is used up", _PATH_S)
    names = tuple(p.name for p in paid)
    return Permit(names, f"over {', '.join(names)}, within today's budget", 0.0, {p.name: p.left_bytes for p in paid})


def intended(rules: TracesConfig, paths: Sequence[PathConfig]) -> tuple[bool, str]:
    """Whether captures and results go up by themselves, and for people: when, over what, at what cost; or how they would."""
    if not rules.enabled:
        return False, "captures and results go up when a person asks for it only: [traces] enabled is false"
    when = "at any time" if rules.night is None else "from {:02}:{:02} to {:02}:{:02}".format(*_clock_of(rules.night))
    if rules.still_for_s > 0:
        when += f" when the radio has been still for {_span(rules.still_for_s)}"
    sims = [f"{p.name} {rules.metered_bytes_per_day / 1e6:.0f} MB" for p in paths if p.is_metered]
    paid = f"over the SIMs, a day at most {', '.join(sims)}, of a told plan ([path.plan]) {rules.plan_share:.0%} of what it will have left"
    free = [p.name for p in paths if not p.is_metered]
    over_free = f"over {', '.join(free)}, which costs no SIM anything"
    if rules.over == "any":
        return True, f"captures and results go up {when}, " + (f"{over_free}, else {paid}" if free else paid)
    if free:
        return True, f"captures and results go up {when}, {over_free}"
    stay = "captures and results stay on the kit, every path has a SIM"
    return False, f'{stay}; [traces] over = "any" sends them {when}, {paid}'


def _clock_of(night: tuple[int, int]) -> tuple[int, int, int, int]:
    return *divmod(night[0], 60), *divmod(night[1], 60)


def _time(rules: TracesConfig, sight: Sight) -> Permit | None:
    if not rules.enabled:
        return _no("[traces] enabled is false", 3600.0)
    if rules.night is not None:
        if sight.local_minute is None:
            return _no("the clock is not set: nobody knows whether it is night", _CLOCK_S)
        wait_s = begins_in(rules.night, sight.local_minute) * 60
        if wait_s > 0:
            return _no(f"night begins in {_span(wait_s)}", wait_s)
    if rules.still_for_s > 0:
        if sight.mobile:
            return _no("the probe moves", _PATH_S)
        left_s = rules.still_for_s - sight.still_s
        if left_s > 0:
            return _no(f"the radio changed {_span(sight.still_s)} ago; in {_span(left_s)} if it stays as it is", left_s)
    return None


def _no(reason: str, again_s: float) -> Permit:
    return Permit((), f"waits: {reason}", again_s, {})


def _span(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
