"""Carries out one campaign at a time: asks the scheduler once a second, has runs begun, and stores what came of them.

``tick`` and ``noted`` belong to the collector's own thread; the rest may be called from any.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from tandem.app.campaign import progress
from tandem.app.campaign.estimate import cost
from tandem.app.campaign.progress import Begun, Progress
from tandem.app.campaign.request import request_of, used_instead
from tandem.app.campaign.requires import settings
from tandem.app.campaign.scheduler import Scheduler
from tandem.app.campaign.state import Done, Entry, Happening, Moment, Outcome, Sight, Start, Wait
from tandem.schema.campaign import CampaignError

log = logging.getLogger(__name__)

BY_HAND = "by hand: waits to be told"


class Runner(Protocol):
    """What begins runs. Neither call blocks."""

    def begin(self, experiment: str, request: Mapping[str, Any], campaign: Mapping[str, Any]) -> str | None:
        """Begin; what ``done`` is asked with, None when something else is being measured. ValueError: it can never be begun so.
        ``campaign``: which run of which campaign it is, for its manifest."""
        ...

    def done(self, begun: str) -> Outcome | None:
        """How it ended; None before."""
        ...


@dataclass(slots=True)
class _Current:
    progress: Progress
    begun: Begun
    scheduler: Scheduler
    entry: Entry | None = None
    running: str | None = None
    used_before: Mapping[str, int] | None = None
    said: str = ""
    stopping: bool = False


class Campaigns:
    """``folder``: of all campaigns; ``usage``: bytes that each path carried so far, both ways, by its name."""

    def __init__(
        self,
        folder: Path,
        runner: Runner,
        now: Callable[[], Moment],
        sight: Callable[[Mapping[str, str]], Sight],
        usage: Callable[[], Mapping[str, int]],
    ) -> None:
        self._folder, self._runner, self._now, self._sight, self._usage = folder, runner, now, sight, usage
        self._lock = threading.RLock()
        self._current: _Current | None = None
        self._last: dict[str, Any] | None = None

    # --- told by people --------------------------------------------------------------------------------------------------

    def begin(self, begun: Begun, *, anew: bool = False) -> dict[str, Any]:
        """Begin a campaign, or go on with it where it was left, unless ``anew``. CampaignError when it cannot be."""
        campaign = begun.campaign
        with self._lock:
            if self._current is not None:
                name = self._current.begun.campaign.name
                raise CampaignError(f"campaign {name} is under way; mend: tandem campaign stop")
            stored = Progress(self._folder / campaign.name)
            try:
                if stored.exists and not anew:
                    earlier, entries = stored.load()
                    same = earlier.text == begun.text and earlier.campaign.short == campaign.short
                    if same and any(m < n for m, n in _scheduler(earlier, entries).made().values()):
                        return self._go_on(stored, earlier, entries)
                made = stored.begin(begun.text, campaign, begun.paths, begun.label, begun.substitutes, begun.begun)
                return self._go_on(stored, made, [])
            except OSError as error:
                raise CampaignError(
                    f"{stored.folder}: {error.strerror or error}; mend: a writable folder with room"
                ) from error

    def resume(self) -> None:
        """After a start: go on with the campaign that was under way, whatever ended the collector."""
        with self._lock:
            try:
                name = progress.active(self._folder)
                if name is not None:
                    stored = Progress(self._folder / name)
                    self._go_on(stored, *stored.load())
            except (CampaignError, OSError) as error:
                log.error("the campaign that was under way cannot be gone on with: %s", error)

    def tell(self, label: str | None, step: str | None = None) -> None:
        """By hand: see ``Scheduler.tell``; CampaignError when no campaign is under way or none takes it."""
        with self._lock:
            if self._current is None:
                raise CampaignError("no campaign is under way; mend: tandem campaign run NAME")
            try:
                self._current.scheduler.tell(label, step)
            except ValueError as error:
                raise CampaignError(f"{error}; mend: tandem campaign show NAME") from error

    def stop(self) -> str | None:
        """Begin no more runs; one that is under way ends by itself and counts. The campaign's name, None when there is none. ``begin``
        goes on with it."""
        with self._lock:
            current = self._current
            if current is None:
                return None
            current.stopping = True
            if current.entry is None:
                self._end(current, "stopped")
            return current.begun.campaign.name

    # --- the collector's thread ------------------------------------------------------------------------------------------

    def noted(self, kind: str) -> None:
        """An event of the schema's kinds, now."""
        with self._lock:
            if self._current is not None:
                self._current.scheduler.note(Happening(kind, self._now()))

    def tick(self) -> None:
        """Once a second."""
        with self._lock:
            current = self._current
            if current is None:
                return
            try:
                self._tick(current)
            except OSError as error:
                # Without the line on disk a run would be made twice after a power cut: none begins until there is room.
                log.error("%s: %s; mend: free disk space", current.progress.folder, error.strerror or error)

    def _tick(self, current: _Current) -> None:
        if current.entry is not None:
            self._look(current, current.entry)
            if current.entry is not None:
                return
        if current.stopping:
            self._end(current, "stopped")
            return
        decision = current.scheduler.decide(self._now(), self._sight(current.begun.paths))
        if isinstance(decision, Done):
            log.info("campaign %s: all runs are made", current.begun.campaign.name)
            self._end(current, "done")
        elif isinstance(decision, Wait):
            current.said = "; ".join(f"{step}: {why}" if step else why for step, why in decision.reasons.items())
        else:
            self._start(current, decision)

    def _start(self, current: _Current, start: Start) -> None:
        begun = current.begun
        step = next(s for s in begun.campaign.steps if s.name == start.item.step)
        instead = used_instead(start.item, begun.substitutes)
        label = start.label if start.label is not None else begun.label
        told = {
            "name": begun.campaign.name,
            "short": begun.campaign.short,
            "step": step.name,
            "number": start.item.number,
            "repetition": start.item.repetition,
            "arm": start.item.arm,
            "attempt": start.attempt,
            "label": label,
            "roles": dict(begun.paths),
            "substituted": instead,
        }
        current.used_before = self._usage()
        failure = None
        try:
            sysctl = settings(begun.campaign, begun.substitutes)
            request = request_of(step, start.item, begun.paths, begun.substitutes, sysctl)
            current.running = self._runner.begin(step.experiment, request, told)
            if current.running is None:
                current.said = "something else is being measured"
                return
        except ValueError as error:
            failure = str(error)
        entry = current.entry = current.scheduler.started(start, self._now())
        entry.label, entry.substituted = label, instead
        current.said = f"{step.name}: run {start.item.number + 1} of {step.run_count}"
        current.progress.write(entry)
        if failure is not None:
            log.error("campaign %s, step %s: %s", begun.campaign.name, step.name, failure)
            self._ended(current, entry, Outcome(False, failure, (), dict.fromkeys(begun.paths, 0)))

    def _look(self, current: _Current, entry: Entry) -> None:
        outcome = None if current.running is None else self._runner.done(current.running)
        if outcome is None:
            return
        before, after = current.used_before or {}, self._usage()
        used = {r: max(0, after[p] - before.get(p, 0)) for r, p in current.begun.paths.items() if p in after}
        self._ended(current, entry, Outcome(outcome.ok, outcome.failure, outcome.runs, used))

    def _ended(self, current: _Current, entry: Entry, outcome: Outcome) -> None:
        current.scheduler.ended(entry, outcome, self._now())
        current.entry = current.running = None
        current.progress.write(entry)

    # --- within ------------------------------------------------------------------------------------------------------------

    def _go_on(self, stored: Progress, begun: Begun, entries: list[Entry]) -> dict[str, Any]:
        self._current = _Current(stored, begun, _scheduler(begun, entries))
        progress.set_active(self._folder, begun.campaign.name)
        return self.status() or {}

    def _end(self, current: _Current, state: str) -> None:
        self._last = {**describe(current.begun, current.scheduler, self._now()), "state": state}
        self._current = None
        current.progress.close()
        progress.set_active(self._folder, None)

    # --- for people --------------------------------------------------------------------------------------------------------

    @property
    def under_way(self) -> bool:
        """Whether a campaign is; then the collector begins nothing by itself when movement starts."""
        return self._current is not None

    @property
    def waits_for_a_hand(self) -> bool:
        """Whether nothing more comes until somebody says so."""
        with self._lock:
            current = self._current
            if current is None or current.entry is not None:
                return current is None
            decision = current.scheduler.decide(self._now(), self._sight(current.begun.paths))
            return isinstance(decision, Wait) and bool(decision.reasons) and set(decision.reasons.values()) == {BY_HAND}

    @property
    def holds_maintenance(self) -> bool:
        """Whether what is not urgent (uploads of traces, updates) has to wait for a run or for the quiet before it."""
        with self._lock:
            current = self._current
            if current is None:
                return False
            decision = current.scheduler.decide(self._now(), self._sight(current.begun.paths))
            return isinstance(decision, Start) or (isinstance(decision, Wait) and decision.hold)

    def status(self) -> dict[str, Any] | None:
        """The campaign under way, else the last one of this life; None when there was none."""
        with self._lock:
            current = self._current
            if current is None:
                return self._last
            state = "running" if current.entry is not None else "waiting"
            told = {**describe(current.begun, current.scheduler, self._now()), "state": state, "said": current.said}
            if current.entry is not None:
                told["run"] = {
                    k: v for k, v in asdict(current.entry).items() if k in ("step", "number", "arm", "attempt", "label")
                }
            return told


def _scheduler(begun: Begun, entries: list[Entry]) -> Scheduler:
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
    return {**describe(begun, _scheduler(begun, entries), now), "state": state}
