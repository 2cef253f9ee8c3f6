"""What a campaign requires of the kernels: which scheduler and controllers there are, and what is taken where one is missing."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tandem.app.config import Config
from tandem.experiment.control import Control, ControlError
from tandem.experiment.parameters import ParameterError, read_common
from tandem.mptcp import kernels
from tandem.mptcp.kernels import Kernel
from tandem.schema.campaign import Campaign, CampaignError, Step

log = logging.getLogger(__name__)

CONTROLLER = "congestion_control"
"""The parameter that names a controller."""

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
        session = control.open("any", {}, bytes=1, seconds=None)
    except ControlError as error:
        log.warning("which scheduler the server has is not known: %s", error)
        return None
    control.close(session, 2.0)
    told = session.answer.get("environment")
    return None if not isinstance(told, Mapping) else _word(told.get("scheduler"), told.get("mptcp_protocol"))


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
        control.close(session, 2.0)
        found[name] = True
    return found


def _control(config: Config) -> Control | None:
    """A control channel to the configured server; None when none can be had, which is said."""
    paths = [{"name": p.name, "interface": p.interface} for p in config.paths if p.interface is not None]
    asked = {"run": "campaign-check", "paths": paths, "server": config.server.parameter, "control_timeout_s": 8.0}
    try:
        return Control(read_common(asked))
    except (ParameterError, ControlError) as error:
        log.warning("what the server's kernel has is not known: %s", error)
        return None


def asked_controllers(campaign: Campaign) -> tuple[set[str], set[str]]:
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


def settled(
    campaign: Campaign,
    *,
    allow: bool,
    kernel: Kernel,
    there: Callable[[Iterable[str]], Mapping[str, bool | None]],
    sends: Callable[[], str | None] = lambda: None,
) -> Substitutes:
    """What is taken instead of what is missing, empty when nothing is: of this ``kernel`` the scheduler and the controllers of who
    uploads, of the server's the others (``there``) and its scheduler (``sends``). CampaignError with the whole lack when substitutes are
    not allowed, neither by the file nor by ``allow``."""
    found: Substitutes = {}
    lacks: list[str] = []
    wanted = campaign.requires.scheduler
    if wanted is not None:
        now = kernel.scheduler()
        if now != wanted and wanted not in kernel.schedulers():
            found["scheduler"] = {"asked": wanted, "used": now}
            what = f"this kernel has {now or 'no Multipath TCP'}"
            lacks.append(
                f"scheduler {wanted} ({what}{'; minsrtt takes the v0.94 kernel' if wanted == 'minsrtt' else ''})"
            )
        elif (other := sends()) is not None and other != wanted:
            found["scheduler"] = {"asked": wanted, "used": other}
            lacks.append(
                f"scheduler {wanted} (the server's kernel, which sends, has {other}; choose it there by sysctl)"
            )
    probe, server = asked_controllers(campaign)
    here = kernel.controllers()
    missing = [("the probe's", n) for n in sorted(probe) if here is not None and n not in here]
    missing += [("the server's", n) for n, has in (there(sorted(server)) if server else {}).items() if has is False]
    for side, name in missing:
        found[name] = {"asked": name, "used": campaign.requires.substitutes.get(name)}
        # Both ends have the same kind of kernel, so what brings it is the same.
        way = kernel.brings.get(name)
        lacks.append(f"controller {name} ({side} kernel has none{'' if way is None else f': {way}'})")
    if lacks and not (allow or campaign.allow_substitutes):
        hint = "such a kernel, or allow_substitutes = true (--allow-substitutes): every result will say what was used instead"
        raise CampaignError(f"{campaign.where('requires')}: {campaign.name} requires {'; '.join(lacks)}; hint: {hint}")
    return found
