"""Whether a campaign fits the plan of its SIMs. Pure; from the estimate, so from assumed rates."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from tandem.app.campaign.estimate import Estimate
from tandem.app.config_modem import LONGEST_MONTH, day_share


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
    """All of its SIMs. ``day_bytes``: what a SIM of this plan may carry a day; ``reason``: why it does not fit, None when it does."""

    plan_bytes: int
    day_bytes: int
    by_role: Mapping[str, RoleFit]
    reason: str | None


def plan_fit(found: Estimate, plan_bytes: int) -> PlanFit:
    """``plan_bytes``: of each SIM, a month."""
    share = day_share(plan_bytes)
    days = math.floor(found.days or 0) + 1
    by_role = {}
    for role, count in found.bytes_by_role.items():
        month, day = math.ceil(count * min(1.0, LONGEST_MONTH / days)), math.ceil(count / days)
        by_role[role] = RoleFit(month, month / plan_bytes, day, day / max(1, share))
    reason = None
    role, most = max(by_role.items(), key=lambda pair: pair[1].month_bytes)
    if most.month_bytes > plan_bytes:
        reason = f"{role} takes {most.month_bytes / 1e9:.3g} GB a month, the plan has {plan_bytes / 1e9:.3g} GB"
    elif found.largest_run_bytes > share:
        largest = f"{found.largest_run_bytes / 1e6:.3g} MB"
        reason = f"its largest run takes {largest} of a SIM, whose day_bytes are {share / 1e6:.3g} MB"
    return PlanFit(plan_bytes, share, by_role, reason)
