"""Which captures go up, when, over what, and how much of a plan they may take."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tandem.app.config_schema import PathConfig, PlanConfig, TracesConfig
from tandem.app.daemon.accounts import forecast
from tandem.export import LEAST_LEFT_BYTES, Permit
from tandem.spool.durable import write_durably

_DAY = 1440


def begins_in(night: tuple[int, int] | None, minute: float) -> float:
    """Minutes until the night begins; 0 while it lasts. ``minute``: of the local day, 0 to 1440; ``night``: when it begins and ends, also
    over midnight; None: always."""
    if night is None:
        return 0.0
    begin, end = night
    within = begin <= minute < end if begin < end else minute >= begin or minute < end
    return 0.0 if within else (begin - minute) % _DAY


# ---------------------------------------------------------------------------------------------------------------------
# Whether traces may go up now, over which paths, and why not. Pure.


_HELD_S, _PATH_S, _CLOCK_S = 0.5, 10.0, 5.0


@dataclass(frozen=True, slots=True)
class UploadPath:
    """``left_bytes``: what uploads may still cost it today; only looked at where it is ``metered``."""

    name: str
    metered: bool
    up: bool
    left_bytes: int = 0


@dataclass(frozen=True, slots=True)
class UploadState:
    """``held``: what is being measured or about to be, None when nothing is. ``local_minute``: of the day, None while the clock is not set.
    ``still_s``: since the radio changed last, as far as the collector saw; ``requested``: a person wants it now."""

    held: str | None
    local_minute: float | None
    mobile: bool
    still_s: float
    requested: bool
    paths: Sequence[UploadPath]


def decide(rules: TracesConfig, state: UploadState) -> Permit:
    """A person's request overrules the time of day and the two quiet hours; never a measurement, nor a SIM's budget."""
    if state.held is not None:
        return _no(state.held, _HELD_S)
    if not state.requested:
        no = _time(rules, state)
        if no is not None:
            return no
    free = [p for p in state.paths if p.up and not p.metered]
    if free:
        return Permit(tuple(p.name for p in free), f"over {', '.join(p.name for p in free)}", 0.0, {})
    if rules.over == "unmetered":
        return _no("no path without a SIM is up", _PATH_S)
    metered = [p for p in state.paths if p.up]
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


def _time(rules: TracesConfig, state: UploadState) -> Permit | None:
    if not rules.enabled:
        return _no("[traces] enabled is false", 3600.0)
    if rules.night is not None:
        if state.local_minute is None:
            return _no("the clock is not set: nobody knows whether it is night", _CLOCK_S)
        wait_s = begins_in(rules.night, state.local_minute) * 60
        if wait_s > 0:
            return _no(f"night begins in {_span(wait_s)}", wait_s)
    if rules.still_for_s > 0:
        if state.mobile:
            return _no("the probe moves", _PATH_S)
        left_s = rules.still_for_s - state.still_s
        if left_s > 0:
            return _no(f"the radio changed {_span(state.still_s)} ago; in {_span(left_s)} if it stays as it is", left_s)
    return None


def _no(reason: str, again_s: float) -> Permit:
    return Permit((), f"waits: {reason}", again_s, {})


def _span(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


# ---------------------------------------------------------------------------------------------------------------------
# What uploads may still cost a metered path today. Pure.


def left_today(
    rules: TracesConfig,
    plan: PlanConfig | None,
    days: Mapping[str, int],
    uploaded_bytes: int,
    utc_s: float | None,
    sim_left_bytes: int | None = None,
) -> int:
    """Bytes, both ways, headers included. ``days``: what the path carried by day, as ``Account.days``; ``uploaded_bytes``: what uploads
    cost it this day (UTC), which is in ``days`` too; ``utc_s`` None: the clock is not set, and nobody knows which day it is.

    The day's cap, what the SIM may still carry today (``sim_left_bytes``, None: no limit) and, where the SIM has a plan, this day's part
    of what the plan is expected to have left at its reset, if that is less:
    ``plan_share`` of it, the same for every day until then."""
    if utc_s is None:
        return 0
    cap = float(rules.metered_bytes_per_day)
    if plan is not None:
        now = forecast(plan, days, utc_s)
        days_left = max(1, (now.reset - datetime.fromtimestamp(utc_s, UTC).date()).days)
        spare = plan.bytes - now.expected_bytes + uploaded_bytes
        cap = min(cap, spare * rules.plan_share / days_left, now.left_bytes + uploaded_bytes)
    left = max(0, int(cap) - uploaded_bytes)
    return left if sim_left_bytes is None else min(left, sim_left_bytes)


# ---------------------------------------------------------------------------------------------------------------------
# What uploads cost each metered path, by day, kept across restarts. Noted before it is spent, so that no crash makes
# it forgotten.


log = logging.getLogger(__name__)

FORMAT = "tandem-uploads/1"
_DAYS = 2
"""How many are remembered."""


class Spent:
    """``file``: where it is kept. For one thread; ``of`` from any."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._days = _read(file)
        self._reserved: dict[str, tuple[str, int]] = {}

    def of(self, path: str, day: str) -> int:
        """Bytes of a day (UTC, ``2026-11-21``), without what is reserved just now."""
        return self._days.get(day, {}).get(path, 0)

    def reserve(self, path: str, day: str, count: int) -> None:
        """``count`` bytes are about to go. OSError when the disk takes no note of it: then nothing may go."""
        self._write(path, day, count)
        self._reserved[path] = (day, count)

    def settle(self, path: str, used: int) -> None:
        """So many went. A disk that does not take it leaves what was reserved, which is more."""
        day, count = self._reserved.pop(path)
        row = self._days.setdefault(day, {})
        try:
            self._write(path, day, used)
            row[path] = row.get(path, 0) + used
        except OSError as error:
            row[path] = row.get(path, 0) + max(count, used)
            log.error("%s: %s; hint: free disk space", self._file, error.strerror)

    def _write(self, path: str, day: str, more: int) -> None:
        days = {name: dict(row) for name, row in sorted(self._days.items())[-_DAYS:]}
        row = days.setdefault(day, {})
        row[path] = row.get(path, 0) + more
        self._file.parent.mkdir(parents=True, exist_ok=True)
        write_durably(self._file, (json.dumps({"format": FORMAT, "days": days}) + "\n").encode())


def _read(file: Path) -> dict[str, dict[str, int]]:
    try:
        return parse(file.read_text())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        log.error("%s: %s; the account of uploads begins anew", file, error)
        return {}


def parse(text: str) -> dict[str, dict[str, int]]:
    """Bytes by day and path; ValueError when that is not what it says."""
    content: Any = json.loads(text)
    days = content.get("days") if isinstance(content, dict) and content.get("format") == FORMAT else None
    if not isinstance(days, dict):
        raise ValueError(f"no {FORMAT}")
    for row in days.values():
        if not isinstance(row, dict) or any(type(count) is not int or count < 0 for count in row.values()):
            raise ValueError("a day that is none")
    return days
