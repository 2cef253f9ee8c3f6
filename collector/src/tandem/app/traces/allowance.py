"""What uploads may still cost a metered path today. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from tandem.app.config_plan import PlanConfig
from tandem.app.config_traces import TracesConfig
from tandem.app.sim_plan import forecast


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
