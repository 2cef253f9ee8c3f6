"""From a request to measure, of any experiment, to a wish. What belongs to downloads alone is ``plan``'s."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tandem.app.conditions import conditions_of
from tandem.app.config import Config
from tandem.app.plan import EXPERIMENT, OF_MPTCP, Wish, WishError, captured, steered, wish_of_request, wished_paths
from tandem.app.registry import Described, Registry
from tandem.experiment.parameters import check

GIVEN = ("run", "paths", "server")
"""Parameters that are the collector's to give."""

BESIDE = ("parameters", "sysctl", "shape", "steering", "capture", "deadline_s", "seed")
"""What a request of any experiment may have: the experiment's own parameters by name, conditions of the run (``conditions``), how its paths
are steered, at which ends its packets are captured, when its process is ended at the latest, the seed of its random order."""

LONGEST_S = 7 * 86400.0


def any_wish(config: Config, registry: Registry, experiment: str, given: Mapping[str, Any], trigger: str) -> Wish:
    """The wish in a request's parameters; ValueError (WishError, RegistryError, ParameterError, ShapeError) with the reason."""
    beside = {name: given[name] for name in BESIDE if given.get(name) is not None}
    rest = {name: value for name, value in given.items() if name not in BESIDE}
    if experiment == EXPERIMENT:
        wish = replace(wish_of_request(config, rest), trigger=trigger)
        if not beside:
            return wish  # as ever: no process is asked what it takes
        fixed: tuple[str, ...] = ("kind", "path", "bytes", "seconds", "sample_hz")
        _one_of_tcp(wish, beside.get("parameters"))
    else:
        for name in rest:
            if name != "paths":
                raise WishError(f"unknown parameter {name!r}; known: {', '.join(('paths', *BESIDE))}")
        paths = wished_paths(config, rest.get("paths"))
        steering = config.runs.steering if len(paths) > 1 else "off"
        wish = Wish(
            "single",
            trigger,
            None,
            None,
            0.0,
            paths[0],
            paths,
            "any",
            experiment=experiment,
            steering=steering,
            capture=config.runs.capture,
        )
        fixed = ()
    described = registry.describe(experiment)
    own = beside.get("parameters", {})
    kind = own.get("kind") if wish.kind == "any" and isinstance(own, Mapping) else wish.kind
    wish = captured(steered(wish, beside.get("steering"), tcp=kind == "tcp"), beside.get("capture"))
    if described.has("deadline_s") and "deadline_s" in beside and isinstance(own, Mapping):
        own = {"deadline_s": beside["deadline_s"], **own}  # that it ends by itself, with what it measured
    parameters = _parameters(described, own, fixed)
    seed = beside.get("seed")
    if seed is not None and (type(seed) is not int or seed < 0):
        raise WishError(f"seed {seed!r} is no whole number from 0")
    return replace(
        wish,
        parameters=parameters,
        conditions=conditions_of(beside.get("sysctl"), beside.get("shape"), wish.paths),
        deadline_s=_deadline(beside.get("deadline_s"), parameters, described),
        seed=seed,
        takes_seed=described.has("seed"),
        quiet=described.quiet,
    )


def _one_of_tcp(wish: Wish, own: object) -> None:
    """A number of subflows fits the paths, and no single run of TCP: told to who wished, not found by the run."""
    asked = {name: own[name] for name in OF_MPTCP if own.get(name) is not None} if isinstance(own, Mapping) else {}
    if asked and wish.kind == "tcp":
        raise WishError(f"{next(iter(asked))} is of MPTCP; a TCP run has one connection over one path")
    number = asked.get("subflows")
    if isinstance(number, int) and number > 1 and len(wish.paths) < 2:
        raise WishError(f"{number} subflows take two paths, there is {len(wish.paths)}")


def _parameters(described: Described, own: object, fixed: tuple[str, ...]) -> dict[str, Any]:
    """Those of the experiment, checked as it will check them itself: a wrong one is told to who wished, not found by the run."""
    if not isinstance(own, Mapping):
        raise WishError("parameters is no object")
    for name in (*GIVEN, *fixed):
        if name in own:
            raise WishError(f"parameter {name!r} is the collector's to give, not a person's")
    ours = {p.name: _stand_in(p.kind, p.keys) for p in described.parameters if p.name in GIVEN}
    asked = [p for p in described.parameters if p.name not in fixed]
    check(asked, {**ours, **own})
    return dict(own)


def _stand_in(kind: str, keys: tuple[str, ...]) -> Any:  # noqa: ANN401 any JSON value
    one = dict.fromkeys(keys, "x")
    return {"str": "x", "object": one, "list": [one]}[kind]


def _deadline(asked: object, parameters: Mapping[str, Any], described: Described) -> float | None:
    """What was asked for, else the experiment's own; None: neither is known, and ``run_parameters`` bounds it."""
    default = next((p.default for p in described.parameters if p.name == "deadline_s"), None)
    wanted = asked if asked is not None else parameters.get("deadline_s", default)
    if wanted is None:
        return None
    number = isinstance(wanted, int | float) and not isinstance(wanted, bool) and math.isfinite(wanted)
    if not number or not 1 <= float(str(wanted)) <= LONGEST_S:
        raise WishError(f"deadline_s {wanted!r} is no number of seconds from 1 to {LONGEST_S:.0f}")
    return float(str(wanted))
