"""A campaign's runs are the collector's own groups of runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tandem.app.campaign.state import Outcome
from tandem.app.config import Config
from tandem.app.runs.executor import RunGroup
from tandem.app.runs.registry import Registry
from tandem.app.runs.request import parse_request
from tandem.app.runs.scheduler import RunScheduler


class Runner:
    """Begins runs. Neither call blocks."""

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
        """How it ended; None before."""
        outcome = begun.outcome
        if outcome is None:
            return None
        failures = [f"{r['kind']} over {r['path']}: {r['failure']}" for r in outcome["results"] if r.get("failure")]
        reason = "; ".join(failures) or (None if outcome["ok"] else "the runs did not come to an end")
        return Outcome(bool(outcome["ok"]), reason, tuple(outcome["runs"]))

    def end(self, begun: RunGroup) -> None:
        """End it now; what it measured counts."""
        begun.stop()
