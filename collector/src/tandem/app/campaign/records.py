"""The records of a campaign, its steps and its data: once a minute while it is under way, and whenever something of it changed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any

from tandem.app.campaign.state import Moment
from tandem.app.daemon.sim_plan import midnight_s
from tandem.schema.metrics import CAMPAIGN_STATES
from tandem.schema.record import Record, Value

EVERY_NS = 60 * 10**9


class CampaignRecords:
    """``operators``: by path; ``emit`` takes records from any thread."""

    def __init__(
        self, operators: Mapping[str, str | None], now: Callable[[], Moment], emit: Callable[[list[Record]], None]
    ) -> None:
        self._operators, self._now, self._emit = operators, now, emit
        self._told_ns: int | None = None

    def changed(self, told: Mapping[str, Any]) -> None:
        """A campaign is as ``told`` now (``Campaigns.status``). From any thread."""
        self._told_ns = time.monotonic_ns()
        self._emit(campaign_records(told, self._operators, self._now().utc_s, self._told_ns))

    def tick(self, status: Callable[[], Mapping[str, Any] | None]) -> None:
        """While a campaign is under way."""
        if self._told_ns is not None and time.monotonic_ns() - self._told_ns < EVERY_NS:
            return
        told = status()
        if told is not None:
            self.changed(told)


def campaign_records(
    told: Mapping[str, Any], operators: Mapping[str, str | None], utc_s: float | None, monotonic_ns: int
) -> list[Record]:
    """The campaign's record, and one for each of its steps and of its roles. ``utc_s``: now, None while it is not known. Pure."""
    begun_s = told["begun_utc_s"]
    fields: dict[str, Value | None] = {
        "state": told["state"],
        "state_code": CAMPAIGN_STATES.index(told["state"]),
        "made": sum(step["made"] for step in told["steps"].values()),
        "of": sum(step["of"] for step in told["steps"].values()),
        **{name: told["runs"].get(name, 0) for name in ("ok", "failed", "cut_off")},
        "step": told.get("run", {}).get("step"),
        "said": (told.get("said") or "")[:500] or None,
        "from_server": told["push"] is not None,
        "age_s": None if utc_s is None or begun_s is None else max(0.0, utc_s - begun_s),
    }
    tags = {"campaign": told["name"]}
    records = [Record.make("campaign", tags, fields, monotonic_ns)]
    for step, counts in told["steps"].items():
        records.append(Record.make("campaign_step", {**tags, "step": step}, counts, monotonic_ns))
    for role, path in told["paths"].items():
        spent = told["budget"].get(role)
        if spent is None:
            continue
        reset = spent["reset"]
        until_s = None if reset is None or utc_s is None else midnight_s(date.fromisoformat(reset)) - utc_s
        of_role: dict[str, Value | None] = {
            "used_bytes": max(0, spent["used_bytes"]),
            "used_today_bytes": max(0, spent["used_today_bytes"]),
            "budget_bytes": spent["budget_bytes"],
            "day_budget_bytes": spent["day_budget_bytes"],
            "left_bytes": spent["left_bytes"],
            "expected_bytes": None if spent["at_reset_bytes"] is None else max(0, spent["at_reset_bytes"]),
            "reset_in_s": None if until_s is None else max(0.0, until_s),
        }
        where = {**tags, "role": role, "path": path, "operator": operators.get(path)}
        records.append(Record.make("campaign_data", where, of_role, monotonic_ns))
    return records
