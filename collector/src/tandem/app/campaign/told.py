"""How far a campaign is, as plain values. Pure but for ``stored``, which reads the disk, and for the system's time zones."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict
from datetime import tzinfo
from pathlib import Path
from typing import Any

from tandem.app.campaign import progress
from tandem.app.campaign.estimate import cost
from tandem.app.campaign.progress import Begun, Progress
from tandem.app.campaign.scheduler import Scheduler
from tandem.app.campaign.state import Entry, Moment, Start
from tandem.schema import zones


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
