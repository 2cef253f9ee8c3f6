"""From a run of a campaign to what a collector is asked (``runs.request.parse_request``), with the probe's paths for the roles; and what
the campaign requires of the kernels at both ends: which scheduler and controllers there are, and what is taken where one is missing.
"""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tandem.app.config import Config
from tandem.experiment.control import Control, ControlError
from tandem.experiment.parameters import ParameterError, read_common
from tandem.mptcp import kernels
from tandem.mptcp.kernels import Kernel
from tandem.mptcp.sockets import UnsupportedError
from tandem.schema.campaign import Campaign, CampaignError, Item, Step

log = logging.getLogger(__name__)


# ---------------------------------------------------------------------------------------------------------------------
# What a campaign requires of the kernels.


CONTROLLER = "congestion_control"
"""The parameter that names a controller."""
SUBFLOWS = "subflows"
"""The parameter of downloads that orders so many."""

_DEFAULTS = {"0": "minsrtt", "1": "stock"}
"""By the version of the protocol that a server speaks, what its kernel calls ``default``."""

Substitutes = dict[str, dict[str, Any]]
"""``scheduler`` and, by its name, each controller: ``asked``, ``used`` (None: the system's own)."""


def settings(campaign: Campaign, substitutes: Substitutes, kernel: Kernel | None = None) -> dict[str, str]:
    """The sysctls that a run needs for what the campaign requires of this ``kernel``; empty when it is so already, or has a substitute.
    ValueError when the scheduler has gone since the campaign began."""
    wanted = campaign.requires.scheduler
    kernel = kernels.here() if kernel is None else kernel
    if wanted is None or "scheduler" in substitutes or kernel.scheduler() == wanted:
        return {}
    value = kernel.schedulers().get(wanted)
    if value is None:
        raise ValueError(f"scheduler {wanted}: this kernel has it no more")
    return {kernel.scheduler_sysctl: value}


def scheduler_there(config: Config) -> str | None:
    """The scheduler of the server, which sends what is downloaded, in the papers' words; None: it did not say."""
    control = _control(config)
    if control is None:
        return None
    try:
        session = control.open("tcp", {}, bytes=1, seconds=None)
    except (ControlError, UnsupportedError) as error:  # the latter: before Linux 5.7 a path takes CAP_NET_RAW
        log.warning("which scheduler the server has is not known: %s", error)
        return None
    control.close(session, 2.0)
    environment = session.answer.get("environment")
    return (
        None
        if not isinstance(environment, Mapping)
        else _word(environment.get("scheduler"), environment.get("mptcp_protocol"))
    )


def _word(scheduler: object, protocol: object) -> str | None:
    if not isinstance(scheduler, str) or not isinstance(protocol, str):
        return None
    return _DEFAULTS.get(protocol) if scheduler == "default" else scheduler


def controllers_there(config: Config, wanted: Iterable[str]) -> dict[str, bool | None]:
    """Whether the server's kernel has each, by opening a session with it; None: the server did not say."""
    control = _control(config)
    if control is None:
        return dict.fromkeys(wanted)
    found: dict[str, bool | None] = {}
    for name in wanted:
        try:
            session = control.open("tcp", {}, bytes=1, seconds=None, options={CONTROLLER: name})
        except ControlError as error:
            refused = name in json.dumps(error.failure["reason"])
            found[name] = False if refused and not error.failure["retry"] else None
            continue
        except UnsupportedError as error:
            log.warning("whether the server's kernel has %s is not known: %s", name, error)
            found[name] = None
            continue
        control.close(session, 2.0)
        found[name] = True
    return found


def _control(config: Config) -> Control | None:
    """A control channel to the configured server; None when none can be had, which is said."""
    paths = [{"name": p.name, "interface": p.interface} for p in config.paths if p.interface is not None]
    parameters = {"run": "campaign-check", "paths": paths, "server": config.server.parameter, "control_timeout_s": 8.0}
    try:
        return Control(read_common(parameters))
    except (ParameterError, ControlError) as error:
        log.warning("what the server's kernel has is not known: %s", error)
        return None


def required_controllers(campaign: Campaign) -> tuple[set[str], set[str]]:
    """Controllers that runs name and the campaign requires: those that the probe needs, those that the server needs (who sends)."""
    here: set[str] = set()
    there: set[str] = set()
    for step in campaign.steps:
        named = {*_values(step, CONTROLLER)} & set(campaign.requires.controllers)
        modes = {*_values(step, "mode")} or {"reqresp"}
        if "oneway" in modes:
            here |= named
        if modes - {"oneway"}:
            there |= named
    return here, there


def _values(step: Step, name: str) -> list[Any]:
    return [*step.parameters.get(name, ()), *(arm[name] for arm in step.arms if name in arm)]


def _takes_orders(campaign: Campaign, kernel: Kernel) -> None:
    """CampaignError where a step orders subflows one by one and the kernel makes them by itself alone."""
    for step in campaign.steps if kernel.protocol == 0 else ():
        if any(number is not None for number in _values(step, SUBFLOWS)):
            place = campaign.where("step", step.name, "arms" if step.arms else "parameters", SUBFLOWS)
            raise CampaignError(
                f"{place}: step {step.name}: subflows are ordered one by one, which the {kernel.name} kernel refuses; hint: a form without "
                "them, as emulated of chen-sizes: that kernel makes one from each path to each of the server's addresses"
            )


def settled(
    campaign: Campaign,
    *,
    allow: bool,
    kernel: Kernel,
    there: Callable[[Iterable[str]], Mapping[str, bool | None]],
    sends: Callable[[], str | None] = lambda: None,
) -> Substitutes:
    """What is taken instead of what is missing, empty when nothing is: of this ``kernel`` the scheduler and the controllers of who
    uploads, of the server's the others (``there``) and its scheduler (``sends``). CampaignError with all that is missing when substitutes
    are not allowed, neither by the file nor by ``allow``; and for orders that nothing can stand in for."""
    _takes_orders(campaign, kernel)
    found: Substitutes = {}
    unmet: list[str] = []
    wanted = campaign.requires.scheduler
    if wanted is not None:
        now = kernel.scheduler()
        if now != wanted and wanted not in kernel.schedulers():
            found["scheduler"] = {"asked": wanted, "used": now}
            what = f"this kernel has {now or 'no Multipath TCP'}"
            unmet.append(
                f"scheduler {wanted} ({what}{'; minsrtt takes the v0.94 kernel' if wanted == 'minsrtt' else ''})"
            )
        elif (other := sends()) is not None and other != wanted:
            found["scheduler"] = {"asked": wanted, "used": other}
            unmet.append(
                f"scheduler {wanted} (the server's kernel, which sends, has {other}; choose it there by sysctl)"
            )
    probe, server = required_controllers(campaign)
    here = kernel.controllers()
    missing = [("the probe's", n) for n in sorted(probe) if here is not None and n not in here]
    missing += [("the server's", n) for n, has in (there(sorted(server)) if server else {}).items() if has is False]
    for side, name in missing:
        found[name] = {"asked": name, "used": campaign.requires.substitutes.get(name)}
        # Both ends have the same kind of kernel, so what brings it is the same.
        way = kernel.brings.get(name)
        unmet.append(f"controller {name} ({side} kernel has none{'' if way is None else f': {way}'})")
    if unmet and not (allow or campaign.allow_substitutes):
        hint = "such a kernel, or allow_substitutes = true (--allow-substitutes): every result will say what was used instead"
        raise CampaignError(f"{campaign.where('requires')}: {campaign.name} requires {'; '.join(unmet)}; hint: {hint}")
    return found


# ---------------------------------------------------------------------------------------------------------------------
# A run's request. Pure.


PAIRED = "download"
"""Asked for as pairs: MPTCP over all paths and TCP on each."""
STEERING = "steering"
"""A parameter of every experiment: how its paths are steered (``tandem.mptcp.steering``)."""
CAPTURE = "capture"
"""A parameter of every experiment: at which ends its packets are captured (``tandem.schema.manifest.CAPTURE_ENDS``)."""
OF_EVERY = (STEERING, CAPTURE)

_DOWNLOAD = ("pairing", "kind", "path", "seconds", "bytes", "pause_s", "primary")
"""Of a download: the collector's own words for it."""
_ROLES = ("path", "primary")


def bound(roles: tuple[str, ...], names: list[str], given: Mapping[str, str]) -> dict[str, str]:
    """Which path of the probe plays which role: as ``given``, the rest in the order of both lists. CampaignError when it cannot be."""
    for role, name in given.items():
        if role not in roles:
            raise CampaignError(f"{role!r} is no role of the campaign; hint: one of {', '.join(roles)}")
        if name not in names:
            raise CampaignError(f"{name!r} is no path of this probe; hint: one of {', '.join(names)}")
    if len(set(given.values())) != len(given):
        raise CampaignError("a path plays two roles; hint: another path for one of them")
    free = [n for n in names if n not in given.values()]
    found = dict(given)
    for role in roles:
        if role not in found:
            if not free:
                raise CampaignError(
                    f"the campaign has {len(roles)} paths, this probe has {len(names)}; hint: configure another path"
                )
            found[role] = free.pop(0)
    return {role: found[role] for role in roles}


def request_of(
    step: Step,
    item: Item,
    paths: Mapping[str, str],
    substitutes: Substitutes,
    sysctl: Mapping[str, str | int] | None = None,
) -> dict[str, Any]:
    """The request's parameters. ``sysctl``: what the run needs set, by name (its step's, ``settings``)."""
    chance = random.Random(f"{item.seed}/path")
    given: dict[str, Any] = {}
    for name, value in item.parameters.items():
        if name in _ROLES:
            given[name] = paths[chance.choice(list(paths)) if value == "random" else value]
        elif name == CONTROLLER and value in substitutes:
            if substitutes[value]["used"] is not None:
                given[name] = substitutes[value]["used"]
        else:
            given[name] = value
    own_words = _DOWNLOAD if step.experiment == PAIRED else ()
    request: dict[str, Any] = {name: value for name, value in given.items() if name in own_words}
    own = {name: value for name, value in given.items() if name not in (*own_words, *OF_EVERY)}
    if own:
        request["parameters"] = own
    request["paths"] = list(paths.values())
    shape = {paths[role]: made for role, wanted in item.shape.items() if (made := shaped(wanted))}
    if shape:
        request["shape"] = shape
    request |= {name: given[name] for name in OF_EVERY if name in given}
    if sysctl:
        request["sysctl"] = dict(sysctl)
    return {**request, "seed": item.seed}


def used_instead(item: Item, substitutes: Substitutes) -> dict[str, dict[str, Any]]:
    """What this run has instead of what the campaign requires."""
    found = {"scheduler": substitutes["scheduler"]} if "scheduler" in substitutes else {}
    controller = item.parameters.get(CONTROLLER)
    if isinstance(controller, str) and controller in substitutes:
        found[CONTROLLER] = substitutes[controller]
    return found


def shaped(wanted: Mapping[str, float]) -> dict[str, float]:
    """A role's link in the words of ``tandem.shaping``; empty when nothing is done to it."""
    made = {k: v for k, v in wanted.items() if k not in ("rate_bit_per_s", "rtt_ms")}
    if "rate_bit_per_s" in wanted:
        made |= {"down_bit_per_s": wanted["rate_bit_per_s"], "up_bit_per_s": wanted["rate_bit_per_s"]}
    if "rtt_ms" in wanted:
        made |= {"down_delay_ms": wanted["rtt_ms"] / 2, "up_delay_ms": wanted["rtt_ms"] / 2}
    return made if any(v for k, v in made.items() if k != "queue_ms") else {}
