"""The campaign under way: what it is, how far it is, what runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tandem.app.campaign.progress import Begun, Progress
from tandem.app.campaign.scheduler import Scheduler
from tandem.app.campaign.state import Entry
from tandem.app.campaign.told import scheduler_of
from tandem.app.runs.executor import RunGroup


@dataclass(slots=True)
class Current:
    """``scheduler``: of its runs; ``entry``: the run under way, ``running``: its runs."""

    progress: Progress
    begun: Begun
    scheduler: Scheduler
    entry: Entry | None = None
    running: RunGroup | None = None
    used_before: Mapping[str, int] | None = None
    said: str = ""
    stopping: str | None = None
    """As what it ends when its run has ended."""


def made_of(stored: Progress, begun: Begun, *, anew: bool) -> Current:
    """Begun now and stored, or gone on with where it was left, unless ``anew``. CampaignError, OSError."""
    if stored.exists and not anew:
        earlier, entries = stored.load()
        same = earlier.text == begun.text and all(
            getattr(earlier.campaign, name) == getattr(begun.campaign, name) for name in ("form", "timezone")
        )
        # One that was pushed is the same as long as its id is: what is made is made.
        if begun.origin or (same and any(m < n for m, n in scheduler_of(earlier, entries).made().values())):
            return current_of(stored, earlier, entries)
    return current_of(stored, stored.begin(begun), [])


def current_of(stored: Progress, begun: Begun, entries: list[Entry]) -> Current:
    """As it was left."""
    made = Current(stored, begun, scheduler_of(begun, entries))
    label = begun.label
    if begun.origin is not None and label is not None:
        # Nobody is there to tell it: the label begins one run of each step that waits for a hand, and none again after a restart.
        for step in begun.campaign.steps:
            taken = any(e.step == step.name and e.label == label for e in entries)
            if step.trigger.on == "hand" and not taken and (not step.trigger.labels or label in step.trigger.labels):
                made.scheduler.tell(label, step.name)
    return made
