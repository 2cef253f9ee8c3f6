"""What a request becomes: which runs, in which order, with which primary path, and what each run's process is given. Pure: the same seed,
the same plan."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tandem.app.config import Config
from tandem.app.runs.request import OF_MPTCP, RunRequest
from tandem.schema.manifest import RunKind, new_id

SAMPLE_HZ = 10
SETUP_S = 45.0
"""For sessions, connecting and closing, beside the measuring itself."""
BYTES_DEADLINE_S = 660.0
ANY_DEADLINE_S = 6 * 3600.0
"""Of an experiment whose deadline is not known here, since it was given none and reckons its own: only one that hangs meets this."""


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """One run. ``paths``: primary first; all that the run may use (one for TCP)."""

    id: str
    kind: RunKind
    paths: tuple[str, ...]

    @property
    def path(self) -> str:
        """Its primary path."""
        return self.paths[0]


@dataclass(frozen=True, slots=True)
class Plan:
    """A group of runs (``pair``: its id) in their order (of starting, when they are simultaneous)."""

    pair: str
    request: RunRequest
    seed: int
    runs: tuple[PlannedRun, ...]


def plan(config: Config, request: RunRequest, number: int, make_id: Callable[[str], str] = new_id) -> Plan:
    """The plan of the group numbered ``number`` (from 0) in this campaign: a TCP run on each of its paths and one MPTCP run over all of
    them, in random order; the seed is the configuration's and the number's, so that it can be replayed."""
    seed = config.runs.seed * 1_000_003 + number if request.seed is None else request.seed
    if request.kind == "any":
        return Plan(make_id("pair"), request, seed, (PlannedRun(make_id("run"), "any", request.paths),))
    chance = random.Random(seed)
    names = request.paths
    primary = chance.choice(names) if request.primary == "random" else request.primary
    if request.kind == "mptcp" and request.path is not None:
        primary = request.path
    through = (primary, *(n for n in names if n != primary))
    if request.pairing == "single" and request.kind is not None:
        paths: tuple[str, ...] = through if request.kind == "mptcp" else (request.path or primary,)
        return Plan(make_id("pair"), request, seed, (PlannedRun(make_id("run"), request.kind, paths),))
    runs = [PlannedRun(make_id("run"), "mptcp", through), *(PlannedRun(make_id("run"), "tcp", (n,)) for n in names)]
    if request.pairing == "sequential":
        chance.shuffle(runs)
    return Plan(make_id("pair"), request, seed, tuple(runs))


def parameters_of(
    config: Config, plan: Plan, run: PlannedRun, interfaces: Mapping[str, str | None], addresses: Mapping[str, str]
) -> dict[str, Any]:
    """The JSON object for its stdin. The token is named by its file."""
    request = plan.request
    every = {p.name: p for p in config.paths}
    # To a TCP run the others too: the control channel may take another path, so that a dead one shows in the measurement.
    names = (*run.paths, *(n for n in request.paths if n not in run.paths))
    paths = [
        {
            "name": n,
            "operator": every[n].operator,
            "interface": interfaces[n] or f"usb{every[n].usb}",
            "address": addresses.get(n),
        }
        for n in names
    ]
    server = {**config.server.parameter, "capture": request.capture == "both"}
    common = {"run": run.id, "paths": paths, "server": server}
    if run.kind == "any":
        # Bounded, so that every experiment's own range of a seed holds it; the manifest has it among the parameters.
        seed = {"seed": plan.seed % 2**31} if request.takes_seed else {}
        return {**common, **seed, **request.parameters}
    size = {"bytes": request.bytes} if request.seconds is None else {"seconds": request.seconds}
    own = {n: value for n, value in request.parameters.items() if run.kind == "mptcp" or n not in OF_MPTCP}
    return {**common, "kind": run.kind, "path": run.path, **size, "sample_hz": SAMPLE_HZ, **own}


def deadline_of(plan: Plan) -> float:
    """Seconds after which the process is told to end."""
    request = plan.request
    if request.deadline_s is not None:
        return request.deadline_s + SETUP_S
    if request.kind == "any":
        return ANY_DEADLINE_S
    return BYTES_DEADLINE_S if request.seconds is None else request.seconds + SETUP_S
