"""A request to measure: what someone wants measured, read from plain values and checked against the configuration and the experiment.
And what it becomes: which runs, in which order, with which primary path, and what each run's process is given.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast, get_args

from tandem.app.config import Config
from tandem.app.config_schema import TABLES
from tandem.app.runs.conditions import Conditions, conditions_of
from tandem.app.runs.registry import Described, Registry
from tandem.experiment.parameters import check
from tandem.mptcp.steering import POLICIES, Policy
from tandem.schema.manifest import CAPTURE_ENDS, CaptureEnds, Pairing, RunKind, new_id

DOWNLOAD = "download"
PAIRINGS: tuple[str, ...] = get_args(Pairing)

OF_MPTCP = ("subflows",)
"""Parameters of a download's MPTCP runs alone: the TCP runs of a pair go without."""

GIVEN = ("run", "paths", "server")
"""Parameters that are the collector's to give."""

BESIDE = ("parameters", "sysctl", "shape", "steering", "capture", "deadline_s", "seed")
"""What a request of any experiment may have: the experiment's own parameters by name, conditions of the run (``conditions``), how its paths
are steered, at which ends its packets are captured, when its process is ended at the latest, the seed of its random order."""

LONGEST_S = 7 * 86400.0


class RequestError(ValueError):
    """The request cannot be met; the reason is reported to who made it."""


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What someone wants measured over ``paths``, and no others. ``single``: the one run of ``kind`` (``path``: its path, or MPTCP's
    primary). Exactly one of ``seconds`` and ``bytes`` is set, per run of a download; neither for another experiment, whose one run has
    kind ``any``. ``trigger``: mobility_start, request, campaign. ``parameters``: of the experiment's own, over what the collector gives;
    ``takes_seed``: it has a parameter ``seed``. ``deadline_s``: after which its process is ended."""

    pairing: Pairing
    trigger: str
    seconds: float | None
    bytes: int | None
    pause_s: float
    primary: str
    paths: tuple[str, ...]
    kind: RunKind | None = None
    path: str | None = None
    experiment: str = DOWNLOAD
    parameters: Mapping[str, Any] = field(default_factory=dict)
    deadline_s: float | None = None
    seed: int | None = None
    """None: from the configuration's and the number."""
    takes_seed: bool = False
    conditions: Conditions = field(default_factory=Conditions)
    steering: Policy = "off"
    """Of its runs by Multipath TCP."""
    capture: CaptureEnds = "probe"
    campaign: Mapping[str, Any] | None = None
    """Which run of which campaign it is, for the manifest."""
    quiet: bool = False
    """Its experiment wants quiet (``tandem.experiment.base.Experiment``); a download does not."""


def configured_request(config: Config, pairing: str, trigger: str) -> RunRequest:
    """What the configuration describes: downloads over all paths."""
    runs = config.runs
    return RunRequest(
        cast(Pairing, pairing),
        trigger,
        runs.seconds,
        runs.bytes,
        runs.pause_s,
        runs.primary,
        tuple(p.name for p in config.paths),
        steering="off" if pairing == "simultaneous" else runs.steering,
        capture=runs.capture,
    )


def parse_request(
    config: Config, registry: Registry, experiment: str, given: Mapping[str, Any], trigger: str
) -> RunRequest:
    """The request in plain values; ValueError (RequestError, RegistryError, ParameterError, ShapeError) with the reason."""
    beside = {name: given[name] for name in BESIDE if given.get(name) is not None}
    rest = {name: value for name, value in given.items() if name not in BESIDE}
    fixed: tuple[str, ...] = ()
    if experiment == DOWNLOAD:
        request = replace(parse_download(config, rest), trigger=trigger)
        if not beside:
            return request  # no process is asked what it takes
        fixed = ("kind", "path", "bytes", "seconds", "sample_hz")
        _check_subflows(request, beside.get("parameters"))
    else:
        for name in rest:
            if name != "paths":
                raise RequestError(f"unknown parameter {name!r}; known: {', '.join(('paths', *BESIDE))}")
        paths = _paths(config, rest.get("paths"))
        request = RunRequest(
            "single",
            trigger,
            None,
            None,
            0.0,
            paths[0],
            paths,
            "any",
            experiment=experiment,
            steering=config.runs.steering if len(paths) > 1 else "off",
            capture=config.runs.capture,
        )
    described = registry.describe(experiment)
    own = beside.get("parameters", {})
    kind = own.get("kind") if request.kind == "any" and isinstance(own, Mapping) else request.kind
    request = _captured(_steered(request, beside.get("steering"), tcp=kind == "tcp"), beside.get("capture"))
    if described.has("deadline_s") and "deadline_s" in beside and isinstance(own, Mapping):
        own = {"deadline_s": beside["deadline_s"], **own}  # that it ends by itself, with what it measured
    parameters = _parameters(described, own, fixed)
    seed = beside.get("seed")
    if seed is not None and (type(seed) is not int or seed < 0):
        raise RequestError(f"seed {seed!r} is no whole number from 0")
    return replace(
        request,
        parameters=parameters,
        conditions=conditions_of(beside.get("sysctl"), beside.get("shape"), request.paths),
        deadline_s=_deadline(beside.get("deadline_s"), parameters, described),
        seed=seed,
        takes_seed=described.has("seed"),
        quiet=described.quiet,
    )


def parse_download(config: Config, given: Mapping[str, Any]) -> RunRequest:
    """A download in plain values, over the configuration's; RequestError names what is wrong."""
    known = ("pairing", "kind", "path", "paths", "seconds", "bytes", "pause_s", "primary")
    for name in given:
        if name not in known:
            raise RequestError(f"unknown parameter {name!r}; known: {', '.join(known)}")
    values = {name: value for name, value in given.items() if value is not None}
    for key in TABLES["runs"]:
        if key.name in values and (fault := key.wrong(values[key.name])) is not None:
            raise RequestError(f"{key.name}: {fault}; {key.hint}")
    if "seconds" in values and "bytes" in values:
        raise RequestError("give seconds or bytes, not both")
    kind, path = values.get("kind"), values.get("path")
    pairing = values.get("pairing", "sequential" if kind is None else "single")
    if kind not in (None, "mptcp", "tcp"):
        raise RequestError(f"kind {kind!r} is none of mptcp, tcp")
    if (odd := misfit(values)) is not None:
        raise RequestError(odd[1])
    names = _paths(config, values.get("paths"))
    for wanted in (path, values.get("primary")):
        if wanted is not None and wanted != "random" and wanted not in names:
            raise RequestError(f"{wanted!r} is no path; known: {', '.join(names)}")
    default = configured_request(config, pairing, "request")
    usual = default.primary if default.primary in (*names, "random") else names[0]
    sized = "seconds" in values or "bytes" in values
    return replace(
        default,
        seconds=values.get("seconds") if sized else default.seconds,
        bytes=values.get("bytes") if sized else default.bytes,
        pause_s=float(values.get("pause_s", default.pause_s)),
        primary=values.get("primary", usual),
        kind=cast(Literal["mptcp", "tcp"] | None, kind),
        path=path,
        paths=names,
    )


def misfit(given: Mapping[str, Any]) -> tuple[str, str, str] | None:
    """What of a download's pairing, kind and path does not go together: the parameter, what is wrong, the hint. None when all does."""
    kind, path, pairing = (given.get(name) for name in ("kind", "path", "pairing"))
    if pairing not in (None, *PAIRINGS):
        return "pairing", f"pairing {pairing!r} is none of {', '.join(PAIRINGS)}", "one of them"
    if kind is not None and pairing not in (None, "single"):
        return "kind", "a pair takes no 'kind': it has MPTCP and TCP", "take kind or pairing out"
    if kind is None and pairing == "single":
        return "pairing", "a single run has a kind, mptcp or tcp", "add kind"
    if kind is None and path is not None:
        return "path", "a pair takes all of its paths; path belongs to a single run", "take it out, or add kind"
    if kind == "tcp" and path is None:
        return "kind", "a TCP run needs its path", "add path"
    return None


def _paths(config: Config, requested: object) -> tuple[str, ...]:
    """The paths requested, None: all that are configured; RequestError."""
    names = tuple(p.name for p in config.paths)
    if requested is None:
        return names
    if not isinstance(requested, list) or not requested or len(set(map(str, requested))) != len(requested):
        raise RequestError("paths is no list of different names")
    for name in requested:
        if name not in names:
            raise RequestError(f"{name!r} is no path; known: {', '.join(names)}")
    return tuple(requested)


def _steered(request: RunRequest, policy: object, *, tcp: bool) -> RunRequest:
    """With the policy requested, None: the configuration's; ``tcp``: it is one run of TCP. RequestError."""
    if policy is None:
        return replace(request, steering="off") if tcp else request
    if policy not in POLICIES:
        raise RequestError(f"steering {policy!r} is none of {', '.join(POLICIES)}")
    if policy != "off" and tcp:
        raise RequestError("steering is of MPTCP; a TCP run has one path")
    if policy != "off" and request.pairing == "simultaneous":
        raise RequestError(
            "steering takes runs one after the other: beside others, what a path receives is not one run's alone"
        )
    if policy != "off" and len(request.paths) < 2:
        raise RequestError(f"steering takes two paths, there is {len(request.paths)}")
    return replace(request, steering=policy)


def _captured(request: RunRequest, ends: object) -> RunRequest:
    """With its packets captured at the ends requested, None: the configuration's. RequestError."""
    if ends is None:
        return request
    if ends not in CAPTURE_ENDS:
        raise RequestError(f"capture {ends!r} is none of {', '.join(CAPTURE_ENDS)}")
    return replace(request, capture=ends)


def _check_subflows(request: RunRequest, own: object) -> None:
    """A number of subflows fits the paths, and no single run of TCP: reported to who made the request, not found by the run."""
    found = {name: own[name] for name in OF_MPTCP if own.get(name) is not None} if isinstance(own, Mapping) else {}
    if found and request.kind == "tcp":
        raise RequestError(f"{next(iter(found))} is of MPTCP; a TCP run has one connection over one path")
    number = found.get("subflows")
    if isinstance(number, int) and number > 1 and len(request.paths) < 2:
        raise RequestError(f"{number} subflows take two paths, there is {len(request.paths)}")


def _parameters(described: Described, own: object, fixed: tuple[str, ...]) -> dict[str, Any]:
    """Those of the experiment, checked as it will check them itself: a wrong one is reported to who made the request."""
    if not isinstance(own, Mapping):
        raise RequestError("parameters is no object")
    for name in (*GIVEN, *fixed):
        if name in own:
            raise RequestError(f"parameter {name!r} is the collector's to give, not a person's")
    ours = {p.name: _stand_in(p.kind, p.keys) for p in described.parameters if p.name in GIVEN}
    check([p for p in described.parameters if p.name not in fixed], {**ours, **own})
    return dict(own)


def _stand_in(kind: str, keys: tuple[str, ...]) -> Any:  # noqa: ANN401 any JSON value
    one = dict.fromkeys(keys, "x")
    return {"str": "x", "object": one, "list": [one]}[kind]


def _deadline(requested: object, parameters: Mapping[str, Any], described: Described) -> float | None:
    """What was requested, else the experiment's own; None: neither is known, and ``deadline_of`` bounds it."""
    default = next((p.default for p in described.parameters if p.name == "deadline_s"), None)
    wanted = requested if requested is not None else parameters.get("deadline_s", default)
    if wanted is None:
        return None
    number = isinstance(wanted, int | float) and not isinstance(wanted, bool) and math.isfinite(wanted)
    if not number or not 1 <= float(str(wanted)) <= LONGEST_S:
        raise RequestError(f"deadline_s {wanted!r} is no number of seconds from 1 to {LONGEST_S:.0f}")
    return float(str(wanted))


# ---------------------------------------------------------------------------------------------------------------------
# What a request becomes. Pure: the same seed, the same plan.


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
        return self.paths[0]


@dataclass(frozen=True, slots=True)
class Plan:
    """A group of runs (``pair``: its id) in their order (of starting, when they are simultaneous)."""

    pair: str
    request: RunRequest
    seed: int
    runs: tuple[PlannedRun, ...]


def plan(config: Config, request: RunRequest, number: int) -> Plan:
    """The plan of the group numbered ``number`` (from 0) in this campaign: a TCP run on each of its paths and one MPTCP run over all of
    them, in random order; the seed is the configuration's and the number's, so that it can be replayed."""
    seed = config.runs.seed * 1_000_003 + number if request.seed is None else request.seed
    if request.kind == "any":
        return Plan(new_id("pair"), request, seed, (PlannedRun(new_id("run"), "any", request.paths),))
    chance = random.Random(seed)
    names = request.paths
    primary = chance.choice(names) if request.primary == "random" else request.primary
    if request.kind == "mptcp" and request.path is not None:
        primary = request.path
    through = (primary, *(n for n in names if n != primary))
    if request.pairing == "single" and request.kind is not None:
        paths: tuple[str, ...] = through if request.kind == "mptcp" else (request.path or primary,)
        return Plan(new_id("pair"), request, seed, (PlannedRun(new_id("run"), request.kind, paths),))
    runs = [PlannedRun(new_id("run"), "mptcp", through), *(PlannedRun(new_id("run"), "tcp", (n,)) for n in names)]
    if request.pairing == "sequential":
        chance.shuffle(runs)
    return Plan(new_id("pair"), request, seed, tuple(runs))


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
