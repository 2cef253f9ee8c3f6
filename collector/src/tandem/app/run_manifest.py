"""A run's manifest: put together, and written so that it is there whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from tandem.app.clock import Clock
from tandem.app.config import Config
from tandem.app.experiment_process import Ending
from tandem.app.plan import Plan, PlannedRun
from tandem.experiment.server_captures import not_made
from tandem.schema.manifest import (
    FORMAT,
    CampaignRun,
    Conditions,
    Failure,
    Manifest,
    RunFile,
    RunResult,
    ServerCapture,
    Usage,
)
from tandem.spool.durable import write_durably

_OF_THEIR_OWN = ("type", "result", "failure", "environment", "server_captures")
_UNTOLD = "no session was opened, or the run was cut off before it told of one"


@dataclass(frozen=True, slots=True)
class Facts:
    """What was seen of a run. Times are CLOCK_MONOTONIC ns. ``counts``: records by measurement."""

    parameters: dict[str, Any]
    experiment: dict[str, Any]
    started_ns: int
    ended_ns: int
    modems_before: dict[str, dict[str, Any]]
    modems_after: dict[str, dict[str, Any]]
    environment: dict[str, Any]
    counts: dict[str, int]
    files: list[RunFile]
    usage: Usage
    conditions: Conditions | None = None
    steering: dict[str, Any] | None = None


def manifest(config: Config, clock: Clock, plan: Plan, run: PlannedRun, ending: Ending, facts: Facts) -> Manifest:
    """The manifest of a run that ended."""
    modems = {
        path: {"at_start": facts.modems_before.get(path), "at_end": facts.modems_after.get(path)}
        for path in facts.modems_after
    }
    further = {k: v for k, v in ending.said.items() if k not in _OF_THEIR_OWN}
    told = Manifest(
        format=FORMAT,
        id=run.id,
        pair=plan.pair,
        pairing=plan.wish.pairing,
        kind=run.kind,
        paths=list(run.paths),
        probe=config.probe,
        boot=clock.boot,
        trigger=plan.wish.trigger,
        experiment={
            "name": plan.wish.experiment,
            "version": facts.experiment.get("version"),
            **{key: value for key, value in facts.experiment.items() if key == "units"},
        },
        parameters={
            **{k: v for k, v in facts.parameters.items() if k not in ("run", "server")},
            "server": {k: v for k, v in facts.parameters["server"].items() if k in ("control", "measurement")},
            **_of_the_pair(plan),
        },
        seed=plan.seed,
        started_utc_ns=clock.utc_ns(facts.started_ns),
        ended_utc_ns=clock.utc_ns(facts.ended_ns),
        started_monotonic_ns=facts.started_ns,
        ended_monotonic_ns=facts.ended_ns,
        environment={**facts.environment, "experiment": ending.environment, "further": further},
        modems=modems,
        clock=clock.state(facts.started_ns, facts.ended_ns),
        records={name: count for name, count in facts.counts.items() if count},
        result=cast("RunResult | dict[str, Any] | None", ending.result),
        failure=cast("Failure | None", ending.failure),
        files=facts.files,
        usage=facts.usage,
    )
    if plan.wish.capture == "both":
        told["server_captures"] = server_captures(ending)
    if facts.conditions is not None:
        told["conditions"] = facts.conditions
    if facts.steering is not None:
        told["steering"] = facts.steering
    if plan.wish.campaign is not None:
        told["campaign"] = cast("CampaignRun", dict(plan.wish.campaign))
    return told


def server_captures(ending: Ending) -> list[ServerCapture]:
    """What became of the server's captures of a run that asked for them."""
    said = ending.said.get("server_captures")
    known = ServerCapture.__annotations__.keys()
    told = [one for one in said if isinstance(one, dict) and one.keys() == known] if isinstance(said, list) else []
    return cast("list[ServerCapture]", told) or [not_made(None, _UNTOLD)]


def _of_the_pair(plan: Plan) -> dict[str, Any]:
    if plan.wish.kind == "any":
        return {}
    return {"order": [r.id for r in plan.runs], "pause_s": plan.wish.pause_s, "primary": plan.wish.primary}


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """``.tmp``, sync, rename. OSError when the disk takes nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_durably(path, (json.dumps(content, indent=1, allow_nan=False) + "\n").encode())
