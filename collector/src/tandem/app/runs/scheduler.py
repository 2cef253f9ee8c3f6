"""When runs begin: one group at a time, by request, and by the radio's events within what the SIMs may carry a day."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import deque
from pathlib import Path
from typing import Any

from tandem.app.campaign.estimate import ASSUMED_BIT_PER_S, ASSUMED_RTT_MS, RULES
from tandem.app.config import Config
from tandem.app.daemon.accounts import Account
from tandem.app.runs.context import RunContext, RunObserver
from tandem.app.runs.executor import RunGroup
from tandem.app.runs.request import DOWNLOAD, Plan, RunRequest, configured_request, parse_request, plan

log = logging.getLogger(__name__)

_MOMENT_S = 5.0
"""For a thread that has nothing more to do than to end."""
_KEPT = 20

STARTING = ("mobility_start", "signal_drop", "handover")
"""Events that begin a paired run: the start of mobility, and later on the move whatever shows that the network changed. The paper's
collector takes every change of 6 dB or more for a start of mobility and begins a transfer when none is under way."""

_TRIGGER = "mobility_start"


class RunScheduler:
    """Begins groups of runs when told, from any thread, never two at once."""

    def __init__(self, context: RunContext, number: int) -> None:
        """``number``: of the first group, counted over the whole campaign."""
        self._context, self._number = context, number
        self._lock = threading.Lock()
        self._groups: deque[RunGroup] = deque(maxlen=_KEPT)
        """The last ones, for who asks by an id; who begins one has the group itself."""
        self._closed = self._held = False

    def begin(self, request: RunRequest) -> RunGroup | None:
        """Begin a group; None when one is running already, a modem is being recovered or the collector stops."""
        current = self._current
        if current is not None and current.outcome is not None:
            current.join(_MOMENT_S)  # who was told of its end asks for the next at once
        with self._lock:
            if self._closed or self._held or self.running:
                return None
            group = RunGroup(self._context, plan(self._context.config, request, self._number))
            self._number += 1
            self._groups.append(group)
            group.start()
            return group

    def request(self, experiment: str, parameters: dict[str, Any]) -> RunGroup:
        """As requested through the status socket; ValueError with the reason when it cannot be."""
        context = self._context
        request = parse_request(context.config, context.registry, experiment, parameters, "request")
        missing = context.missing_requirement(request.conditions)
        if missing is not None:
            raise ValueError(missing)
        group = self.begin(request)
        if group is None:
            doing = "a modem is being recovered" if self._held else "another pair is running"
            raise ValueError(f"{doing}; try again when it has ended")
        return group

    def cancel(self, pair: str | None = None) -> str:
        """End the group that runs, and keep what it measured; its id. None: whichever runs. ValueError when it does not run."""
        with self._lock:
            current = self._current
            if current is None or not current.running:
                raise ValueError("nothing is being measured")
            if pair not in (None, current.plan.pair):
                raise ValueError(f"{pair} is not what is being measured: {current.plan.pair} is")
            current.stop()
            return current.plan.pair

    def outcome(self, pair: str) -> dict[str, Any] | None:
        """See ``RunGroup.outcome``; None also for one that is not among the last."""
        return next((group.outcome for group in list(self._groups) if group.plan.pair == pair), None)

    def hold(self) -> bool:
        """Whether nothing is running; if so, nothing begins until ``release``."""
        with self._lock:
            self._held = not self.running
            return self._held

    def release(self) -> None:
        """Let groups begin again."""
        self._held = False

    @property
    def _current(self) -> RunGroup | None:
        return self._groups[-1] if self._groups else None

    @property
    def running(self) -> bool:
        """Whether a group is running."""
        current = self._current
        return current is not None and current.running

    def stop(self) -> None:
        """End the group that runs, keep what it measured, and begin no other. Returns at once."""
        with self._lock:
            self._closed = True
            if self._current is not None:
                self._current.stop()

    def join(self, timeout_s: float) -> None:
        """Wait until the group that runs has ended."""
        current = self._current
        if current is not None:
            current.join(timeout_s)


def groups_so_far(runs: Path) -> int:
    """Groups that left a manifest, so that a restart goes on in the row of random orders."""
    pairs = set()
    for file in runs.glob("*.json"):
        try:
            pairs.add(json.loads(file.read_bytes())["pair"])
        except (ValueError, KeyError, TypeError, OSError):
            log.warning("%s is no manifest", file)
    return len(pairs)


class MobilityTrigger(RunObserver):
    """As ``[runs]`` has it: ``on_mobility_start``, and ``minimum_gap_s`` between two pairs; within what the SIMs may carry a day."""

    def __init__(self, config: Config, account: Account) -> None:
        self._config, self._account = config, account
        self.limits = {path.name: path.day_limit_bytes for path in config.paths}
        runs = config.runs
        wanted = {"pairing": runs.on_mobility_start, "seconds": runs.seconds, "bytes": runs.bytes, "pause_s": 0.0}
        rates = dict.fromkeys(self.limits, ASSUMED_BIT_PER_S)
        self._takes = dict(RULES[DOWNLOAD](wanted, rates, ASSUMED_RTT_MS / 1000).bytes_by_role)
        self._before: dict[str, int] = {}
        self._begun_s: float | None = None

    def noticed(self, kind: str, scheduler: RunScheduler) -> None:
        """An event on the move while no campaign says what is measured."""
        pairing, now = self._config.runs.on_mobility_start, time.monotonic()
        if kind not in STARTING or pairing == "off":
            return
        if self._begun_s is not None and now - self._begun_s < self._config.runs.minimum_gap_s:
            return
        if (held := self.held()) is not None:
            log.info("no pair begins: %s", held)
        elif scheduler.begin(configured_request(self._config, pairing, _TRIGGER)) is not None:
            self._begun_s = now

    def held(self) -> str | None:
        """Why no pair would begin now, as of the account's last ``update``; None when one may, or none is wanted. From any thread."""
        if self._config.runs.on_mobility_start == "off":
            return None
        for path in self._config.paths:
            left, takes = self._account.left_today(path), self._takes[path.name]
            if left is None or left >= takes:
                continue
            if path.day_limit_bytes == 0:
                return f"day_bytes of path {path.name} is 0"
            return (
                f"until 00:00 UTC: path {path.name} has {left / 1e6:.0f} MB of its SIM's limits left, a pair takes {takes / 1e6:.0f} MB; "
                "hint: day_bytes of [[path]], within its plan"
            )
        return None

    def group_started(self, plan: Plan) -> None:
        """A group begins."""
        self._before = self._carried(plan)

    def group_ended(self, plan: Plan) -> None:
        """It ended: the next one may take as much."""
        after = self._carried(plan)
        if plan.request.trigger == _TRIGGER:
            self._takes |= {path: max(self._takes[path], after[path] - self._before[path]) for path in after}

    def _carried(self, plan: Plan) -> dict[str, int]:
        """By path, all bytes since the start."""
        counted = self._account.update()
        return {path: sum(counted[path]) for path in plan.request.paths}
