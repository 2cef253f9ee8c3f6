"""Whether a campaign fits the plan of its SIMs. Pure; from the estimate, so from assumed rates."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from tandem.app.campaign.estimate import Estimate
from tandem.app.config import LONGEST_MONTH, day_share


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
        asked = LONGEST_MONTH * round_trip_day_bytes
        told = f" ({asked / 1e9:.3g} GB of it round trips)" if asked else ""
        reason = f"{role} takes {most.month_bytes / 1e9:.3g} GB a month{told}, the plan has {plan_bytes / 1e9:.3g} GB"
    elif found.largest_run_bytes + round_trip_day_bytes > share:
        largest = f"{found.largest_run_bytes / 1e6:.3g} MB"
        told = f" and round trips {round_trip_day_bytes / 1e6:.3g} MB" if round_trip_day_bytes else ""
        reason = f"its largest run takes {largest}{told} of a SIM, whose day_bytes are {share / 1e6:.3g} MB"
    return PlanFit(plan_bytes, share, round_trip_day_bytes, by_role, reason)
