"""What a campaign requires of the kernels: which scheduler and controllers there are, and what is taken where one is missing."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from tandem.app.config import Config
from tandem.experiment.asked import read_common
from tandem.experiment.control import Control, ControlError
from tandem.experiment.parameters import ParameterError
from tandem.mptcp import sysctls
from tandem.schema.campaign import Campaign, CampaignError, Step

log = logging.getLogger(__name__)

CONTROLLER = "congestion_control"
"""The parameter that names a controller."""

_OLD = "net.mptcp.mptcp_scheduler"
_NEW = "net.mptcp.scheduler"
_HERE = "net.ipv4.tcp_available_congestion_control"

Substitutes = dict[str, dict[str, Any]]
"""``scheduler`` and, by its name, each controller: ``asked``, ``used`` (None: the system's own)."""


def scheduler_here(root: Path = sysctls.ROOT) -> str | None:
    """What the papers would call this kernel's scheduler, None where it has no Multipath TCP. Both ends have the same kind of kernel
    (version 0 and 1 of the protocol do not talk to each other), so the probe's own tells. The v0.9x kernel's ``default`` is minSRTT;
    the stock kernel's ``default`` is BLEST-like."""
    for name, words in ((_OLD, {"default": "minsrtt"}), (_NEW, {"default": "stock"})):
        try:
            value = (root / name.replace(".", "/")).read_text().strip()
        except OSError:
            continue
        return words.get(value, value)
    return None


def controllers_here(wanted: Iterable[str], root: Path = sysctls.ROOT) -> dict[str, bool | None]:
    """Whether the probe's kernel has each; None: not known."""
    try:
        there = (root / _HERE.replace(".", "/")).read_text().split()
    except OSError:
        return dict.fromkeys(wanted)
    return {name: name in there for name in wanted}


def controllers_there(config: Config, wanted: Iterable[str]) -> dict[str, bool | None]:
    """Whether the server's kernel has each, by opening a session with it; None: the server did not say."""
    found: dict[str, bool | None] = {}
    paths = [{"name": p.name, "interface": p.interface} for p in config.paths if p.interface is not None]
    server = config.server
    urls = {"control": server.control, "measurement": server.measurement, "token_file": str(server.token_file)}
    ca_file = {} if server.ca_file is None else {"ca_file": str(server.ca_file)}
    try:
        asked = read_common(
            {"run": "campaign-check", "paths": paths, "server": {**urls, **ca_file}, "control_timeout_s": 8.0}
        )
        control = Control(asked)
    except (ParameterError, ControlError) as error:
        log.warning("which controllers the server has is not known: %s", error)
        return dict.fromkeys(wanted)
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
    scheduler: str | None,
    here: Callable[[Iterable[str]], Mapping[str, bool | None]],
    there: Callable[[Iterable[str]], Mapping[str, bool | None]],
) -> Substitutes:
    """What is taken instead of what is missing, empty when nothing is. CampaignError with the whole lack when substitutes are not
    allowed, neither by the file nor by ``allow``."""
    found: Substitutes = {}
    lacks: list[str] = []
    wanted = campaign.requires.scheduler
    if wanted is not None and scheduler != wanted:
        found["scheduler"] = {"asked": wanted, "used": scheduler}
        lacks.append(
            f"scheduler {wanted} (this kernel has {scheduler or 'no Multipath TCP'}; {wanted} takes the v0.94 kernel)"
        )
    probe, server = asked_controllers(campaign)
    for side, names, ask in (("the probe's", probe, here), ("the server's", server, there)):
        for name, has in (ask(sorted(names)) if names else {}).items():
            if has is False:
                found[name] = {"asked": name, "used": campaign.requires.substitutes.get(name)}
                lacks.append(f"controller {name} ({side} kernel has none)")
    if lacks and not (allow or campaign.allow_substitutes):
        mend = "such a kernel, or allow_substitutes = true (--allow-substitutes): every result will say what was used instead"
        raise CampaignError(f"{campaign.where('requires')}: {campaign.name} requires {'; '.join(lacks)}; mend: {mend}")
    return found
