"""A SIM's plan from one reset to the next (days, in UTC), what it has left, and what it will have carried when it begins anew. Pure:
days of an account in, a forecast out; and what of it becomes records, status and a warning.

The forecast is what was used since the reset, and for the time that is left the mean of the days before: of the last four, three, two
weeks or one, whole weeks so that working days and weekends weigh as they do, and of all days while there is not a week. A day
without an entry counts with 0 bytes (the probe was off, and will be again), from the first day that the account knows. Nothing is
ever extrapolated from a part of a day: today counts as it is, as one more day when that raises the mean. So the forecast
follows a heavy day as far as one day in many should count; of fewer than ``SURE_DAYS`` it is told with ``sure`` False.
"""

from __future__ import annotations

import calendar
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from tandem.app.config_schema import PathConfig, PlanConfig
from tandem.schema.record import Record, Value

if TYPE_CHECKING:
    from tandem.app.daemon.accounts import Account

DAY_S = 86400.0

SURE_DAYS = 3
"""A forecast from fewer whole days warns of nothing."""

_WEEK, _WEEKS = 7, 4


def reset_before(today: date, reset_day: int) -> date:
    """The last day, ``today`` included, on which the plan began anew; in a month without that day it is the month's last."""
    for year, month in _months_back(today):
        reset = date(year, month, min(reset_day, calendar.monthrange(year, month)[1]))
        if reset <= today:
            return reset
    raise AssertionError("the month before always has one")


def reset_after(today: date, reset_day: int) -> date:
    """The next day on which the plan begins anew."""
    last = reset_before(today, reset_day)
    year, month = (last.year, last.month + 1) if last.month < 12 else (last.year + 1, 1)
    return date(year, month, min(reset_day, calendar.monthrange(year, month)[1]))


def _months_back(today: date) -> list[tuple[int, int]]:
    before = (today.year, today.month - 1) if today.month > 1 else (today.year - 1, 12)
    return [(today.year, today.month), before]


def midnight_s(day: date) -> float:
    """When that day begins: seconds since 1970, UTC."""
    return datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()


@dataclass(frozen=True, slots=True)
class PlanForecast:
    """One plan, now. Bytes both ways; days UTC.

    ``since``, ``reset``: the days on which this period began and on which the next does. ``used_bytes``: since then; ``left_bytes``:
    0 when nothing is. ``rate_bytes``: a day, as is expected. ``expected_bytes``: used when the plan begins anew. ``basis_days``: how
    many whole days the rate is from; ``used_up_utc_s``: when nothing will be left (a time that is past when it is so
    now), None when something will be at the reset. ``counted_from``: the first day counted, when the account knows less than
    the period: others' use before is not in here."""

    since: date
    reset: date
    used_bytes: int
    left_bytes: int
    rate_bytes: float
    expected_bytes: int
    basis_days: int
    used_up_utc_s: float | None
    counted_from: date | None

    @property
    def sure(self) -> bool:
        """Whether enough days are known for a warning."""
        return self.basis_days >= SURE_DAYS


def forecast(plan: PlanConfig, days: Mapping[str, int], utc_s: float) -> PlanForecast:
    """The plan at ``utc_s``. ``days``: bytes both ways by day (UTC, ``2026-11-21``), as ``Account.days`` gives them; an entry that is no
    day (bytes seen before the clock was set) counts as today."""
    today = datetime.fromtimestamp(utc_s, UTC).date()
    by_day = _by_day(days, today)
    since, reset = reset_before(today, plan.reset_day), reset_after(today, plan.reset_day)
    used = sum(count for day, count in by_day.items() if since <= day)
    first = min(by_day, default=today)
    rate, basis = _rate(by_day, first, today)
    left_s = midnight_s(reset) - utc_s
    return PlanForecast(
        since=since,
        reset=reset,
        used_bytes=used,
        left_bytes=max(0, plan.bytes - used),
        rate_bytes=rate,
        expected_bytes=used + round(rate * left_s / DAY_S),
        basis_days=basis,
        used_up_utc_s=_used_up(plan.bytes - used, rate, utc_s, left_s),
        counted_from=first if first > since else None,
    )


def _by_day(days: Mapping[str, int], today: date) -> dict[date, int]:
    """The days as dates; those after today (the clock was set back since) and what has no day count as today."""
    found: dict[date, int] = {}
    for name, count in days.items():
        try:
            day = min(date.fromisoformat(name), today)
        except ValueError:
            day = today
        found[day] = found.get(day, 0) + count
    return found


def _rate(by_day: Mapping[date, int], first: date, today: date) -> tuple[float, int]:
    """Bytes a day, and how many whole days they are from."""
    known = (today - first).days
    basis = known if known < _WEEK else min(known // _WEEK, _WEEKS) * _WEEK
    begin = today - timedelta(days=basis)
    before = sum(count for day, count in by_day.items() if begin <= day < today)
    so_far = (before + by_day.get(today, 0)) / (basis + 1)
    return max(before / basis if basis else 0.0, so_far), basis


def _used_up(left: int, rate: float, utc_s: float, left_s: float) -> float | None:
    if left <= 0:
        return utc_s
    if rate <= 0:
        return None
    lasts_s = left / rate * DAY_S
    return utc_s + lasts_s if lasts_s < left_s else None


# ---------------------------------------------------------------------------------------------------------------------
# What each SIM carried in this period of its plan: records, the status, the warning.

UNTOLD = PlanConfig(bytes=10**15, reset_day=1, warn_share=1.0)
"""Of a SIM whose plan nobody told: it is counted from the first of the month, and never used up."""

OVER_BELOW = 0.95
"""The warning ends when the forecast is below this share of what it began at: a forecast moves a little every minute."""


@dataclass(frozen=True, slots=True)
class Sim:
    """One path's."""

    path: PathConfig
    told: PlanForecast
    today_bytes: int
    utc_s: float

    @property
    def limit_bytes(self) -> float | None:
        """Above it the forecast is warned of."""
        return None if self.path.plan is None else self.path.plan.bytes * self.path.plan.warn_share

    def over(self) -> bool | None:
        """Whether to warn: used already, or forecast from enough days; None between the thresholds, or when nothing is known."""
        if self.limit_bytes is None:
            return False
        known = self.told.expected_bytes if self.told.sure else self.told.used_bytes
        if known > self.limit_bytes:
            return True
        return None if known >= self.limit_bytes * OVER_BELOW else False

    def record(self, now_ns: int) -> Record:
        """Its ``sim_usage``."""
        fields: dict[str, Value | None] = {
            "used_bytes": self.told.used_bytes,
            "used_today_bytes": self.today_bytes,
            "whole_period": self.told.counted_from is None,
            "daily_bytes": float(self.told.rate_bytes),
            "basis_days": self.told.basis_days,
            "expected_bytes": self.told.expected_bytes,
            "reset_in_s": max(0.0, midnight_s(self.told.reset) - self.utc_s),
        }
        fields["day_limit_bytes"] = self.path.day_limit_bytes
        if self.path.plan is not None:
            fields["plan_bytes"], fields["left_bytes"] = self.path.plan.bytes, self.told.left_bytes
            if self.told.used_up_utc_s is not None:
                fields["used_up_in_s"] = self.told.used_up_utc_s - self.utc_s
        return Record.make("sim_usage", {"path": self.path.name, "operator": self.path.operator}, fields, now_ns)

    def status(self) -> dict[str, Any]:
        """For people and machines."""
        up = self.told.used_up_utc_s if self.path.plan is not None else None
        return {
            "used_bytes": self.told.used_bytes,
            "since": self.told.since.isoformat(),
            "counted_from": None if self.told.counted_from is None else self.told.counted_from.isoformat(),
            "reset": self.told.reset.isoformat(),
            "expected_bytes": self.told.expected_bytes,
            "sure": self.told.sure,
            "plan_bytes": None if self.path.plan is None else self.path.plan.bytes,
            "left_bytes": None if self.path.plan is None else self.told.left_bytes,
            "used_up": None if up is None else datetime.fromtimestamp(up, UTC).date().isoformat(),
        }

    def text(self) -> str:
        """What is wrong, in one line; "" without a plan."""
        if self.path.plan is None:
            return ""
        of = f"{_gb(self.path.plan.bytes)} (new on {self.told.reset:%d %B})"
        if self.told.left_bytes == 0:
            return f"the SIM's plan is used up: {_gb(self.told.used_bytes)} of {of}"
        if self.told.expected_bytes <= self.path.plan.bytes or not self.told.sure:
            return f"the SIM's plan: {_gb(self.told.used_bytes)} used, {_gb(self.told.expected_bytes)} forecast of {of}"
        used_up = self.told.used_up_utc_s
        when = "" if used_up is None else f", used up on {datetime.fromtimestamp(used_up, UTC):%d %B}"
        return f"the SIM's plan will not last: {_gb(self.told.expected_bytes)} forecast of {of}{when}"


def sims(paths: Sequence[PathConfig], account: Account, utc_ns: int | None) -> list[Sim]:
    """Of paths with a modem or a plan; none while the time is not known."""
    if utc_ns is None:
        return []
    utc_s = utc_ns / 1e9
    day = datetime.fromtimestamp(utc_s, UTC).date().isoformat()
    return [
        Sim(p, forecast(p.plan or UNTOLD, account.days(p.name), utc_s), account.spent(p.name, day), utc_s)
        for p in paths
        if p.plan is not None or p.modem is not None
    ]


def _gb(count: float) -> str:
    return f"{count / 1e9:.2f} GB" if count < 1e10 else f"{count / 1e9:.0f} GB"
