"""What a pair of runs is made of: which runs, in which order, with which primary path. Pure: the same seed, the same plan."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

from tandem.app.conditions import Conditions
from tandem.app.config import Config
from tandem.app.config_schema import TABLES
from tandem.mptcp.steering import POLICIES, Policy
from tandem.schema.manifest import CAPTURE_ENDS, CaptureEnds, Pairing, RunKind, new_id

EXPERIMENT = "download"

OF_MPTCP = ("subflows",)
"""Parameters of a download's MPTCP runs alone: the TCP runs of a pair go without."""


class WishError(ValueError):
    """The wish cannot be met; the reason is told to who wished."""


@dataclass(frozen=True, slots=True)
class Wish:
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
    experiment: str = EXPERIMENT
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
    """Its experiment wants quiet (``tandem.experiment.base.Quiet``); a download does not."""


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
    """A pair: its runs in their order (of starting, when they are simultaneous)."""

    pair: str
    wish: Wish
    seed: int
    runs: tuple[PlannedRun, ...]


def wish_of(config: Config, pairing: str, trigger: str) -> Wish:
    """The wish that the configuration describes: over all paths."""
    runs = config.runs
    every = tuple(p.name for p in config.paths)
    steering: Policy = "off" if pairing == "simultaneous" else runs.steering
    return Wish(
        cast(Pairing, pairing),
        trigger,
        runs.seconds,
        runs.bytes,
        runs.pause_s,
        runs.primary,
        every,
        steering=steering,
        capture=runs.capture,
    )


def wished_paths(config: Config, asked: object) -> tuple[str, ...]:
    """The paths asked for, None: all that are configured; WishError."""
    names = tuple(p.name for p in config.paths)
    if asked is None:
        return names
    if not isinstance(asked, list) or not asked or len(set(map(str, asked))) != len(asked):
        raise WishError("paths is no list of different names")
    for name in asked:
        if name not in names:
            raise WishError(f"{name!r} is no path; known: {', '.join(names)}")
    return tuple(asked)


def wish_of_request(config: Config, given: Mapping[str, Any]) -> Wish:
    """The wish in a request's parameters, over the configuration's values; WishError names what is wrong."""
    known = ("pairing", "kind", "path", "paths", "seconds", "bytes", "pause_s", "primary")
    for name in given:
        if name not in known:
            raise WishError(f"unknown parameter {name!r}; known: {', '.join(known)}")
    values = {name: value for name, value in given.items() if value is not None}
    for key in TABLES["runs"]:
        if key.name in values and (fault := key.wrong(values[key.name])) is not None:
            raise WishError(f"{key.name}: {fault}; {key.mend}")
    if "seconds" in values and "bytes" in values:
        raise WishError("give seconds or bytes, not both")
    kind, path = values.get("kind"), values.get("path")
    pairing = values.get("pairing", "sequential" if kind is None else "single")
    if pairing not in ("sequential", "simultaneous", "single"):
        raise WishError(f"pairing {pairing!r} is none of sequential, simultaneous, single")
    if (kind is None) == (pairing == "single"):
        raise WishError("a single run has a kind, mptcp or tcp; a pair has none")
    if kind not in (None, "mptcp", "tcp"):
        raise WishError(f"kind {kind!r} is none of mptcp, tcp")
    if kind == "tcp" and path is None:
        raise WishError("a TCP run needs its path")
    if path is not None and kind is None:
        raise WishError("a pair takes all of its paths; path belongs to a single run")
    names = wished_paths(config, values.get("paths"))
    for wanted in (path, values.get("primary")):
        if wanted is not None and wanted != "random" and wanted not in names:
            raise WishError(f"{wanted!r} is no path; known: {', '.join(names)}")
    default = wish_of(config, pairing, "request")
    usual = default.primary if default.primary in (*names, "random") else names[0]
    sized = "seconds" in values or "bytes" in values
    return Wish(
        pairing=default.pairing,
        trigger="request",
        seconds=values.get("seconds") if sized else default.seconds,
        bytes=values.get("bytes") if sized else default.bytes,
        pause_s=float(values.get("pause_s", default.pause_s)),
        primary=values.get("primary", usual),
        kind=cast(Literal["mptcp", "tcp"] | None, kind),
        path=path,
        paths=names,
        steering=default.steering,
        capture=default.capture,
    )


def steered(wish: Wish, policy: object, *, tcp: bool) -> Wish:
    """The wish with a policy asked for, None: the configuration's; ``tcp``: it is one run of TCP. WishError."""
    if policy is None:
        return replace(wish, steering="off") if tcp else wish
    if policy not in POLICIES:
        raise WishError(f"steering {policy!r} is none of {', '.join(POLICIES)}")
    if policy != "off" and tcp:
        raise WishError("steering is of MPTCP; a TCP run has one path")
    if policy != "off" and wish.pairing == "simultaneous":
        raise WishError(
            "steering takes runs one after the other: beside others, what a path receives is not one run's alone"
        )
    if policy != "off" and len(wish.paths) < 2:
        raise WishError(f"steering takes two paths, there is {len(wish.paths)}")
    return replace(wish, steering=policy)


def captured(wish: Wish, ends: object) -> Wish:
    """The wish with its packets captured at the ends asked for, None: the configuration's. WishError."""
    if ends is None:
        return wish
    if ends not in CAPTURE_ENDS:
        raise WishError(f"capture {ends!r} is none of {', '.join(CAPTURE_ENDS)}")
    return replace(wish, capture=ends)


def plan(config: Config, wish: Wish, number: int, make_id: Callable[[str], str] = new_id) -> Plan:
    """The plan of the pair numbered ``number`` (from 0) in this campaign: a TCP run on each of its paths and one MPTCP run over all of
    them, in random order; the seed is the configuration's and the number's, so that it can be replayed."""
    seed = config.runs.seed * 1_000_003 + number if wish.seed is None else wish.seed
    if wish.kind == "any":
        return Plan(make_id("pair"), wish, seed, (PlannedRun(make_id("run"), "any", wish.paths),))
    chance = random.Random(seed)
    names = wish.paths
    primary = chance.choice(names) if wish.primary == "random" else wish.primary
    if wish.kind == "mptcp" and wish.path is not None:
        primary = wish.path
    through = (primary, *(n for n in names if n != primary))
    if wish.pairing == "single" and wish.kind is not None:
        paths: tuple[str, ...] = through if wish.kind == "mptcp" else (wish.path or primary,)
        return Plan(make_id("pair"), wish, seed, (PlannedRun(make_id("run"), wish.kind, paths),))
    runs = [PlannedRun(make_id("run"), "mptcp", through), *(PlannedRun(make_id("run"), "tcp", (n,)) for n in names)]
    if wish.pairing == "sequential":
        chance.shuffle(runs)
    return Plan(make_id("pair"), wish, seed, tuple(runs))
