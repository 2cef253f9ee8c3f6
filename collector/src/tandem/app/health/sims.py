"""What each SIM carried in this period of its plan, and what it will have at its end: records, the status, the warning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tandem.app.config_schema import PathConfig, PlanConfig
from tandem.app.daemon.accounts import Account, day_of
from tandem.app.daemon.sim_plan import PlanForecast, forecast, midnight_s
from tandem.schema.record import Record, Value

UNTOLD = PlanConfig(bytes=10**15, reset_day=1, warn_share=1.0)
"""Of a SIM whose plan nobody told: it is counted from the first of the month, and never used up."""

OVER_BELOW = 0.95
"""The warning ends when the forecast is below this share of what it began at: a forecast moves a little every minute."""


@dataclass(frozen=True, slots=True)
class Sim:
    """One path's; ``plan`` None when nobody told it."""

    path: PathConfig
    plan: PlanConfig | None
    told: PlanForecast
    today_bytes: int
    utc_s: float

    @property
    def limit_bytes(self) -> float | None:
        """Above it the forecast is warned of."""
        return None if self.plan is None else self.plan.bytes * self.plan.warn_share

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
        if self.plan is not None:
            fields["plan_bytes"], fields["left_bytes"] = self.plan.bytes, self.told.left_bytes
            if self.told.used_up_utc_s is not None:
                fields["used_up_in_s"] = self.told.used_up_utc_s - self.utc_s
        return Record.make("sim_usage", {"path": self.path.name, "operator": self.path.operator}, fields, now_ns)

    def status(self) -> dict[str, Any]:
        """For people and machines."""
        up = self.told.used_up_utc_s if self.plan is not None else None
        return {
            "used_bytes": self.told.used_bytes,
            "since": self.told.since.isoformat(),
            "counted_from": None if self.told.counted_from is None else self.told.counted_from.isoformat(),
            "reset": self.told.reset.isoformat(),
            "expected_bytes": self.told.expected_bytes,
            "sure": self.told.sure,
            "plan_bytes": None if self.plan is None else self.plan.bytes,
            "left_bytes": None if self.plan is None else self.told.left_bytes,
            "used_up": None if up is None else datetime.fromtimestamp(up, UTC).date().isoformat(),
        }

    def text(self) -> str:
        """What is wrong, in one line; "" without a plan."""
        if self.plan is None:
            return ""
        of = f"{_gb(self.plan.bytes)} (new on {self.told.reset:%d %B})"
        if self.told.left_bytes == 0:
            return f"the SIM's plan is used up: {_gb(self.told.used_bytes)} of {of}"
        if self.told.expected_bytes <= self.plan.bytes or not self.told.sure:
            return f"the SIM's plan: {_gb(self.told.used_bytes)} used, {_gb(self.told.expected_bytes)} forecast of {of}"
        used_up = self.told.used_up_utc_s
        when = "" if used_up is None else f", used up on {datetime.fromtimestamp(used_up, UTC):%d %B}"
        return f"the SIM's plan will not last: {_gb(self.told.expected_bytes)} forecast of {of}{when}"


def sims(paths: Sequence[PathConfig], account: Account, utc_ns: int | None) -> list[Sim]:
    """Of paths with a modem or a plan; none while the time is not known."""
    day = day_of(utc_ns)
    if utc_ns is None or day is None:
        return []
    utc_s = utc_ns / 1e9
    return [
        Sim(p, p.plan, forecast(p.plan or UNTOLD, account.days(p.name), utc_s), account.spent(p.name, day), utc_s)
        for p in paths
        if p.plan is not None or p.modem is not None
    ]


def _gb(count: float) -> str:
    return f"{count / 1e9:.2f} GB" if count < 1e10 else f"{count / 1e9:.0f} GB"
