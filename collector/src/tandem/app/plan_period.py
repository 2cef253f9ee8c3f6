"""From one reset of a SIM's plan to the next: days, in UTC. Pure."""

from __future__ import annotations

import calendar
from datetime import UTC, date, datetime

DAY_S = 86400.0


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
