"""How far a campaign is, as plain values and as records."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import date, tzinfo
from pathlib import Path
from typing import Any

from tandem.app.campaign import progress
from tandem.app.campaign.estimate import cost
from tandem.app.campaign.progress import Begun, Progress
from tandem.app.campaign.scheduler import Scheduler
from tandem.app.campaign.state import Entry, Moment, Start
from tandem.app.daemon.accounts import midnight_s
from tandem.schema import zones
from tandem.schema.metrics import CAMPAIGN_STATES
from tandem.schema.record import Record, Value

EVERY_NS = 60 * 10**9


def scheduler_of(begun: Begun, entries: list[Entry]) -> Scheduler:
    """The scheduler of a campaign with these runs made; CampaignError when its time zone is not there."""
    steps = {s.name: s for s in begun.campaign.steps}
    return Scheduler(
        begun.campaign,
        begun.sequences,
        entries,
        begun.begun,
        lambda item: cost(begun.campaign, steps[item.step], item),
        zones.of(begun.campaign),
    )


def describe(begun: Begun, scheduler: Scheduler, now: Moment) -> dict[str, Any]:
    """How far a campaign is, as plain values."""
    forecast = {}
    for role, one in scheduler.forecast(now).items():
        reset = None if one.reset is None else one.reset.isoformat()
        day_bytes = begun.campaign.budget.day_bytes
        forecast[role] = {**asdict(one), "reset": reset, "exceeds": one.exceeds, "day_budget_bytes": day_bytes}
    return {
        "name": begun.campaign.name,
        "push": None if begun.origin is None else begun.origin.push,
        "priority": None if begun.origin is None else begun.origin.priority,
        "form": begun.campaign.form,
        "timezone": str(scheduler.local),
        "label": begun.label,
        "paths": dict(begun.paths),
        "begun_utc_s": begun.begun.utc_s,
        "steps": {step: {"made": made, "of": of} for step, (made, of) in scheduler.made().items()},
        "runs": dict(scheduler.counts),
        "substitutes": begun.substitutes,
        "budget": forecast,
    }


def run_told(
    begun: Begun,
    start: Start,
    label: str | None,
    instead: Mapping[str, Mapping[str, Any]],
    local: tzinfo,
    utc_s: float | None,
) -> dict[str, Any]:
    """Which run of the campaign it is: for its manifest and its records. ``utc_s``: now, None while it is not known."""
    return {
        "name": begun.campaign.name,
        "form": begun.campaign.form,
        "step": start.item.step,
        "number": start.item.number,
        "repetition": start.item.repetition,
        "arm": start.item.arm,
        "attempt": start.attempt,
        "label": label,
        "roles": dict(begun.paths),
        "substituted": instead,
        "timezone": str(local),
        "utc_offset_s": zones.offset_s(utc_s, local),
        "sha256": hashlib.sha256(begun.text.encode()).hexdigest(),
        **({} if begun.origin is None else {"push": begun.origin.push}),
    }


def stored(folder: Path, name: str, now: Moment) -> dict[str, Any]:
    """How far a stored campaign is, without a collector; CampaignError when there is none."""
    begun, entries = Progress(folder / name).load()
    state = "under way" if progress.active(folder) == name else "not under way"
    return {**describe(begun, scheduler_of(begun, entries), now), "state": state}


# ---------------------------------------------------------------------------------------------------------------------
# Records: of a campaign, its steps and its data, once a minute while it is under way, and whenever something of it changed.


class CampaignRecords:
    """``operators``: by path; ``emit`` takes records from any thread."""

    def __init__(
        self, operators: Mapping[str, str | None], now: Callable[[], Moment], emit: Callable[[list[Record]], None]
    ) -> None:
        self._operators, self._now, self._emit = operators, now, emit
        self._reported_ns: int | None = None

    def changed(self, status: Mapping[str, Any]) -> None:
        """A campaign is as ``status`` says now (``Campaigns.status``). From any thread."""
        self._reported_ns = time.monotonic_ns()
        self._emit(campaign_records(status, self._operators, self._now().utc_s, self._reported_ns))

    def tick(self, status: Callable[[], Mapping[str, Any] | None]) -> None:
        """While a campaign is under way."""
        if self._reported_ns is not None and time.monotonic_ns() - self._reported_ns < EVERY_NS:
            return
        now = status()
        if now is not None:
            self.changed(now)


def campaign_records(
    status: Mapping[str, Any], operators: Mapping[str, str | None], utc_s: float | None, monotonic_ns: int
) -> list[Record]:
    """The campaign's record, and one for each of its steps and of its roles. ``utc_s``: now, None while it is not known. Pure."""
    begun_s = status["begun_utc_s"]
    fields: dict[str, Value | None] = {
        "state": status["state"],
        "state_code": CAMPAIGN_STATES.index(status["state"]),
        "made": sum(step["made"] for step in status["steps"].values()),
        "of": sum(step["of"] for step in status["steps"].values()),
        **{name: status["runs"].get(name, 0) for name in ("ok", "failed", "cut_off")},
        "step": status.get("run", {}).get("step"),
        "said": (status.get("said") or "")[:500] or None,
        "from_server": status["push"] is not None,
        "age_s": None if utc_s is None or begun_s is None else max(0.0, utc_s - begun_s),
    }
    tags = {"campaign": status["name"]}
    records = [Record.make("campaign", tags, fields, monotonic_ns)]
    for step, counts in status["steps"].items():
        records.append(Record.make("campaign_step", {**tags, "step": step}, counts, monotonic_ns))
    for role, path in status["paths"].items():
        spent = status["budget"].get(role)
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
