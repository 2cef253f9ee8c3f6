"""What may still be spent: bytes of each path in a day and from one reset of its plan to the next, runs in a day. Pure.

Days of bytes are UTC, as those of the SIMs' accounts; days of runs are the campaign's local ones.
What was spent at a time unknown (the clock was never synchronised) counts as spent today.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, tzinfo

from tandem.app.config_schema import PlanConfig
from tandem.app.daemon import accounts
from tandem.app.daemon.accounts import midnight_s, reset_after, reset_before
from tandem.schema import zones
from tandem.schema.campaign import Budget

_DAY_S = 86400.0


def day_of(utc_s: float) -> date:
    """The UTC day."""
    return datetime.fromtimestamp(utc_s, UTC).date()


@dataclass(frozen=True, slots=True)
class Forecast:
    """One path's plan. ``at_reset_bytes``: what will have been spent when the plan begins anew (``accounts.forecast``); None before UTC
    is known."""

    used_bytes: int
    used_today_bytes: int
    budget_bytes: int | None
    left_bytes: int | None
    reset: date | None
    at_reset_bytes: int | None

    @property
    def exceeds(self) -> bool:
        """Whether the budget will not last."""
        return None not in (self.at_reset_bytes, self.budget_bytes) and (self.at_reset_bytes or 0) > (
            self.budget_bytes or 0
        )


class Spending:
    """Adds up. ``None`` as a day: not known. ``local``: the zone of the days of runs."""

    def __init__(self, budget: Budget, roles: tuple[str, ...], local: tzinfo = UTC) -> None:
        self._budget, self._roles, self._local = budget, roles, local
        self._bytes: dict[date | None, dict[str, int]] = defaultdict(lambda: dict.fromkeys(roles, 0))
        self._runs: dict[date | None, int] = defaultdict(int)

    def add(self, bytes_by_role: Mapping[str, int], utc_s: float | None, *, run: bool = True) -> None:
        """Something was spent; ``run`` False: a correction of what a run was thought to spend."""
        day = None if utc_s is None else day_of(utc_s)
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

    def forecast(self, role: str, utc_s: float | None) -> Forecast:
        """See ``Forecast``."""
        today = self._today(utc_s)
        used, limit = self._since_reset(today, role), self._budget.of_role(role)
        left = None if limit is None else max(0, limit - used)
        reset = at_reset = None
        if utc_s is not None:
            days = {str(day): spent.get(role, 0) for day, spent in self._bytes.items()}
            told = accounts.forecast(PlanConfig(limit or 0, self._budget.reset_day, 1.0), days, utc_s)
            reset, at_reset = told.reset, told.expected_bytes
        return Forecast(used, self._spent_on(today, role), limit, left, reset, at_reset)

    def _today(self, utc_s: float | None) -> date | None:
        """Without UTC: the last day of which anything is known, so that a budget is never spent twice."""
        if utc_s is not None:
            return day_of(utc_s)
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
