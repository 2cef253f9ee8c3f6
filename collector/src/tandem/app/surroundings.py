"""What every run needs of the collector, and who follows it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tandem.app.clock import Clock
from tandem.app.config import Config
from tandem.app.experiment_process import Ending
from tandem.app.pair_captures import Captured
from tandem.app.parts import CapturesLike, Parts, PathsLike
from tandem.app.plan import Plan, PlannedRun
from tandem.app.registry import Registry
from tandem.app.steering import SteeringPart
from tandem.schema.manifest import Manifest
from tandem.schema.record import Record


class Audience(Protocol):
    """Who follows a pair, called from its threads."""

    def pair_started(self, plan: Plan) -> None:
        """The plan begins."""
        ...

    def run_started(self, plan: Plan, run: PlannedRun) -> None:
        """A run begins."""
        ...

    def run_sampled(self, run: PlannedRun, sample: dict[str, Any]) -> None:
        """A line of type ``sample``."""
        ...

    def run_phased(self, run: PlannedRun, phase: dict[str, Any]) -> None:
        """A line of type ``phase`` that keeps the schema."""
        ...

    def run_ended(self, plan: Plan, run: PlannedRun, ending: Ending, captured: Sequence[Captured]) -> None:
        """A run ended; ``captured``: its captures, unless they were told already."""
        ...

    def pair_ended(self, plan: Plan, ok: bool) -> None:
        """All runs ended; ``ok``: none failed."""
        ...


@dataclass(frozen=True)
class Surroundings:
    """What every pair needs of the collector. ``emit`` takes records, ``save`` a manifest, from any thread."""

    config: Config
    parts: Parts
    clock: Clock
    paths: PathsLike
    captures: CapturesLike | None
    emit: Callable[[list[Record]], None]
    save: Callable[[Manifest], None]
    audience: Audience
    modems: Callable[[], dict[str, dict[str, Any]]]
    environment: dict[str, Any]
    registry: Registry
    steering: SteeringPart
