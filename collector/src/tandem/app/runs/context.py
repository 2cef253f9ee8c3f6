"""What every run needs of the collector, and who follows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tandem.app.config import Config
from tandem.app.daemon.accounts import Account
from tandem.app.daemon.paths import NetworkPaths
from tandem.app.runs.captures import Captured, Captures
from tandem.app.runs.conditions import Conditions, ConditionsMade
from tandem.app.runs.process import Ending
from tandem.app.runs.registry import Registry
from tandem.app.runs.request import Plan, PlannedRun
from tandem.app.runs.steering import SteeringPart
from tandem.export.clock import Clock
from tandem.schema.manifest import Manifest
from tandem.schema.record import Record


class RunObserver:
    """Follows runs, called from their threads; overrides what it wants to know."""

    def group_started(self, plan: Plan) -> None:
        """The plan begins."""

    def run_started(self, plan: Plan, run: PlannedRun) -> None:
        """A run begins."""

    def run_sampled(self, run: PlannedRun, sample: dict[str, Any]) -> None:
        """A line of type ``sample``."""

    def run_phased(self, run: PlannedRun, phase: dict[str, Any]) -> None:
        """A line of type ``phase`` that keeps the schema."""

    def run_ended(self, plan: Plan, run: PlannedRun, ending: Ending, captured: Sequence[Captured]) -> None:
        """A run ended; ``captured``: its captures, unless they were reported already."""

    def group_ended(self, plan: Plan) -> None:
        """All runs ended."""


@dataclass(frozen=True)
class RunContext:
    """What every run needs of the collector. From any thread: ``emit`` takes records, ``event`` kind, detail and path of an event's,
    ``save`` a manifest. ``modems``: who they are and what they said last."""

    config: Config
    clock: Clock
    paths: NetworkPaths
    account: Account
    captures: Captures | None
    emit: Callable[[list[Record]], None]
    event: Callable[[str, str, str | None], None]
    save: Callable[[Manifest], None]
    modems: Callable[[], dict[str, dict[str, Any]]]
    environment: dict[str, Any]
    registry: Registry
    conditions: Callable[[Conditions, Mapping[str, str | None], Path, str], ConditionsMade]
    """Makes conditions on these interfaces by path; the spool's folder and the boot's id. ConditionsError when it cannot."""
    missing_requirement: Callable[[Conditions], str | None]
    """What conditions require and this machine has not; None when nothing is known to be missing."""
    steering: SteeringPart
    observers: list[RunObserver] = field(default_factory=list)
