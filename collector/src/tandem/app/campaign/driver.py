"""Carries out one campaign at a time: asks the scheduler once a second, has runs begun, and stores what came of them.

``tick`` and ``noted`` belong to the collector's own thread; the rest may be called from any.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from tandem.app.campaign import progress
from tandem.app.campaign.progress import Begun, Origin, Progress, describe, run_description, scheduler_of
from tandem.app.campaign.request import request_of, settings, used_instead
from tandem.app.campaign.scheduler import (
    BY_HAND,
    Done,
    Entry,
    Happening,
    Moment,
    Outcome,
    ProbeState,
    Scheduler,
    Start,
    Wait,
)
from tandem.app.config import Config
from tandem.app.runs.executor import RunGroup, RunScheduler
from tandem.app.runs.registry import Registry
from tandem.app.runs.request import parse_request
from tandem.schema.campaign import CampaignError

log = logging.getLogger(__name__)

Ended = Callable[[Origin | None, str, dict[str, Any]], None]
"""A campaign ended (origin None: a person's): ``done``, ``stopped`` (by a person), ``paused`` or ``withdrawn``, and how far it was. Must
not block."""


class Runner:
    """A campaign's runs are groups of the collector's own runs. No call blocks."""

    def __init__(self, config: Config, registry: Registry, scheduler: RunScheduler) -> None:
        self._config, self._registry, self._scheduler = config, registry, scheduler

    def begin(self, experiment: str, request: Mapping[str, Any], campaign: Mapping[str, Any]) -> RunGroup | None:
        """Begin; None when something else is being measured, or the experiment is still being asked what it takes. ValueError: it can
        never be begun so. ``campaign``: which run of which campaign it is, for its manifest."""
        if not self._registry.ready(experiment):
            return None
        parsed = parse_request(self._config, self._registry, experiment, request, "campaign")
        return self._scheduler.begin(replace(parsed, campaign=campaign))

    def done(self, begun: RunGroup) -> Outcome | None:
        outcome = begun.outcome
        if outcome is None:
            return None
        failures = [f"{r['kind']} over {r['path']}: {r['failure']}" for r in outcome["results"] if r.get("failure")]
        reason = "; ".join(failures) or (None if outcome["ok"] else "the runs did not come to an end")
        return Outcome(bool(outcome["ok"]), reason, tuple(outcome["runs"]))

    def end(self, begun: RunGroup) -> None:
        """End it now; what it measured counts."""
        begun.stop()


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


class BusyError(CampaignError):
    """Another campaign is under way."""


class Campaigns:
    """``folder``: of all campaigns; ``usage``: bytes that each path carried so far, both ways, by its name."""

    def __init__(
        self,
        folder: Path,
        runner: Runner,
        now: Callable[[], Moment],
        probe_state: Callable[[Mapping[str, str]], ProbeState],
        usage: Callable[[], Mapping[str, int]],
    ) -> None:
        self._folder, self._runner, self._now, self._probe_state, self._usage = folder, runner, now, probe_state, usage
        self._lock = threading.RLock()
        self._current: Current | None = None
        self._next: Current | None = None
        """A person's campaign that waits for the last run of a pushed one."""
        self._last: dict[str, Any] | None = None
        self.on_end: Ended = lambda _origin, _state, _status: None
        """Called from any thread that ends one."""
        self.on_change: Callable[[dict[str, Any]], None] = lambda _status: None
        """Called with ``status`` by any thread that changes it: begun, gone on with, a run begun or ended, the end. Must not block."""

    # --- told by people --------------------------------------------------------------------------------------------------

    def begin(self, begun: Begun, *, anew: bool = False) -> dict[str, Any]:
        """Begin a campaign, or go on with it where it was left, unless ``anew``. CampaignError when it cannot be. A person's goes before
        a pushed one, which is paused; its run that is under way ends by itself first."""
        with self._lock:
            current = self._current
            if self._next is not None or (current is not None and (current.begun.origin is None or begun.origin)):
                under_way = self._next or current
                name = "" if under_way is None else under_way.begun.campaign.name
                raise BusyError(f"campaign {name} is under way; hint: tandem campaign stop")
            stored = Progress(self._folder / begun.key)
            try:
                made = made_of(stored, begun, anew=anew)
                progress.set_active(self._folder, begun.key)
            except OSError as error:
                raise CampaignError(
                    f"{stored.folder}: {error.strerror or error}; hint: a writable folder with room"
                ) from error
            if current is None:
                self._current = made
                self._changed()
            else:
                self._next = made
                self._stop(current, "paused")
            return self.status() or {}

    def resume(self, *, pushed: bool = True) -> None:
        """After a start: go on with the campaign that was under way, whatever ended the collector; ``pushed`` False: not with the
        server's."""
        with self._lock:
            try:
                key = progress.active(self._folder)
                if key is not None:
                    stored = Progress(self._folder / key)
                    begun, entries = stored.load()
                    if begun.origin is not None and not pushed:
                        log.warning("campaign %s was pushed by the server and is not gone on with", begun.campaign.name)
                        return
                    self._current = current_of(stored, begun, entries)
                    self._changed()
            except (CampaignError, OSError) as error:
                log.error("the campaign that was under way cannot be gone on with: %s", error)

    def tell(self, label: str | None, step: str | None = None) -> None:
        """By hand: see ``Scheduler.tell``; CampaignError when no campaign is under way or none takes it."""
        with self._lock:
            if self._current is None:
                raise CampaignError("no campaign is under way; hint: tandem campaign run NAME")
            try:
                self._current.scheduler.tell(label, step)
            except ValueError as error:
                raise CampaignError(f"{error}; hint: tandem campaign show NAME") from error

    def stop(self) -> str | None:
        """Begin no more runs; one that is under way ends by itself and counts. The campaign's name, None when there is none. ``begin``
        goes on with it."""
        with self._lock:
            current = self._next or self._current
            if current is not None:
                self._stop(current, "stopped")
            return None if current is None else current.begun.campaign.name

    def pause(self, push: str) -> None:
        """End that pushed campaign for now, after its run that is under way."""
        with self._lock:
            current = self._pushed(push)
            if current is not None:
                self._stop(current, "paused")

    def withdraw(self, push: str) -> bool:
        """End that pushed campaign for good, its run that is under way too; False when it is not the one under way."""
        with self._lock:
            current = self._pushed(push)
            if current is not None:
                if current.running is not None:
                    self._runner.end(current.running)
                self._stop(current, "withdrawn")
            return current is not None

    def _pushed(self, push: str) -> Current | None:
        current = self._current
        return current if current is not None and current.begun.origin and current.begun.origin.push == push else None

    def _stop(self, current: Current, state: str) -> None:
        if current is self._next:
            self._next = None  # it never began; the one that was to make room for it is paused all the same
            progress.set_active(self._folder, None if self._current is None else self._current.begun.key)
            return
        # What was said last holds, but for a pause: nobody who ended it for good is overruled by one.
        current.stopping = current.stopping if state == "paused" and current.stopping else state
        if current.entry is None:
            self._end(current, current.stopping or state)

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
                log.error("%s: %s; hint: free disk space", current.progress.folder, error.strerror or error)

    def _tick(self, current: Current) -> None:
        if current.entry is not None:
            self._look(current, current.entry)
            if current.entry is not None:
                return
        if current.stopping is not None:
            self._end(current, current.stopping)
            return
        decision = current.scheduler.decide(self._now(), self._probe_state(current.begun.paths))
        if isinstance(decision, Done):
            log.info("campaign %s: all runs are made", current.begun.campaign.name)
            self._end(current, "done")
        elif isinstance(decision, Wait):
            current.said = "; ".join(f"{step}: {why}" if step else why for step, why in decision.reasons.items())
        else:
            self._start(current, decision)

    def _start(self, current: Current, start: Start) -> None:
        begun = current.begun
        step = next(s for s in begun.campaign.steps if s.name == start.item.step)
        instead = used_instead(start.item, begun.substitutes)
        label = start.label if start.label is not None else begun.label
        campaign_run = run_description(begun, start, label, instead, current.scheduler.local, self._now().utc_s)
        current.used_before = self._usage()
        failure = None
        try:
            sysctl = {**step.sysctl, **settings(begun.campaign, begun.substitutes)}
            request = request_of(step, start.item, begun.paths, begun.substitutes, sysctl)
            current.running = self._runner.begin(step.experiment, request, campaign_run)
            if current.running is None:
                current.said = "something else is being measured"
                return
        except ValueError as error:
            failure = str(error)
        entry = current.entry = current.scheduler.started(start, self._now())
        entry.label, entry.substituted = label, instead
        current.said = f"{step.name}: run {start.item.number + 1} of {step.run_count}"
        current.progress.write(entry)
        self._changed()
        if failure is not None:
            log.error("campaign %s, step %s: %s", begun.campaign.name, step.name, failure)
            self._ended(current, entry, Outcome(False, failure, (), dict.fromkeys(begun.paths, 0)))

    def _look(self, current: Current, entry: Entry) -> None:
        outcome = None if current.running is None else self._runner.done(current.running)
        if outcome is None:
            return
        before, after = current.used_before or {}, self._usage()
        used = {r: max(0, after[p] - before.get(p, 0)) for r, p in current.begun.paths.items() if p in after}
        self._ended(current, entry, Outcome(outcome.ok, outcome.failure, outcome.runs, used))

    def _ended(self, current: Current, entry: Entry, outcome: Outcome) -> None:
        current.scheduler.ended(entry, outcome, self._now())
        current.entry = current.running = None
        current.progress.write(entry)
        self._changed()

    def _end(self, current: Current, state: str) -> None:
        status = self._last = {**describe(current.begun, current.scheduler, self._now()), "state": state}
        self._current, self._next = self._next, None
        current.progress.close()
        progress.set_active(self._folder, None if self._current is None else self._current.begun.key)
        self.on_change(status)
        if self._current is not None:
            self._changed()
        self.on_end(current.begun.origin, state, status)

    def _changed(self) -> None:
        status = self.status()
        if status is not None:
            self.on_change(status)

    # --- for people --------------------------------------------------------------------------------------------------------

    @property
    def under_way(self) -> bool:
        """Whether a campaign is; then the collector begins nothing by itself when movement starts."""
        with self._lock:
            return self._current is not None

    @property
    def origin(self) -> Origin | None:
        """Of the campaign under way; None: a person began it, or there is none."""
        with self._lock:
            current = self._next or self._current
            return None if current is None else current.begun.origin

    @property
    def measuring(self) -> bool:
        current = self._current
        return current is not None and current.entry is not None

    @property
    def waits_for_a_hand(self) -> bool:
        """Whether nothing more comes until somebody says so."""
        with self._lock:
            current = self._current
            if current is None or current.entry is not None:
                return current is None
            decision = current.scheduler.decide(self._now(), self._probe_state(current.begun.paths))
            return isinstance(decision, Wait) and bool(decision.reasons) and set(decision.reasons.values()) == {BY_HAND}

    @property
    def holds_maintenance(self) -> bool:
        """Whether what is not urgent (uploads of traces, updates) has to wait for a run or for the quiet before it."""
        with self._lock:
            current = self._current
            if current is None:
                return False
            decision = current.scheduler.decide(self._now(), self._probe_state(current.begun.paths))
            return isinstance(decision, Start) or (isinstance(decision, Wait) and decision.hold)

    def status(self) -> dict[str, Any] | None:
        """The campaign under way, else the last one of this life; None when there was none."""
        with self._lock:
            current = self._current
            if current is None:
                return self._last
            state = "running" if current.entry is not None else "waiting"
            status = {**describe(current.begun, current.scheduler, self._now()), "state": state, "said": current.said}
            if current.entry is not None:
                status["run"] = {
                    k: v for k, v in asdict(current.entry).items() if k in ("step", "number", "arm", "attempt", "label")
                }
            return status
