"""How far a campaign is, as plain values. Pure but for ``stored``, which reads the disk."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from tandem.app.campaign import progress
from tandem.app.campaign.estimate import cost
from tandem.app.campaign.progress import Begun, Progress
from tandem.app.campaign.scheduler import Scheduler
from tandem.app.campaign.state import Entry, Moment


def scheduler_of(begun: Begun, entries: list[Entry]) -> Scheduler:
    """The scheduler of a campaign with these runs made."""
    steps = {s.name: s for s in begun.campaign.steps}
    return Scheduler(
        begun.campaign, begun.sequences, entries, begun.begun, lambda item: cost(begun.campaign, steps[item.step], item)
    )  # fmt: skip


def describe(begun: Begun, scheduler: Scheduler, now: Moment) -> dict[str, Any]:
    """How far a campaign is, as plain values."""
    forecast = {}
    for role, one in scheduler.forecast(now).items():
        reset = None if one.reset is None else one.reset.isoformat()
        forecast[role] = {**asdict(one), "reset": reset, "exceeds": one.exceeds}
    return {
        "name": begun.campaign.name,
        "push": None if begun.origin is None else begun.origin.push,
        "priority": None if begun.origin is None else begun.origin.priority,
        "short": begun.campaign.short,
        "label": begun.label,
        "paths": dict(begun.paths),
        "begun_utc_s": begun.begun.utc_s,
        "steps": {step: {"made": made, "of": of} for step, (made, of) in scheduler.made().items()},
        "runs": dict(scheduler.counts),
        "substitutes": begun.substitutes,
        "budget": forecast,
    }


def stored(folder: Path, name: str, now: Moment) -> dict[str, Any]:
    """How far a stored campaign is, without a collector; CampaignError when there is none."""
    begun, entries = Progress(folder / name).load()
    state = "under way" if progress.active(folder) == name else "not under way"
    return {**describe(begun, scheduler_of(begun, entries), now), "state": state}
