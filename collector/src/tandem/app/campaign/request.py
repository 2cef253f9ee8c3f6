"""From a run of a campaign to what a collector is asked (``app.parse_request``), with the probe's paths for the roles. Pure."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from tandem.app.campaign.requires import CONTROLLER, Substitutes
from tandem.schema.campaign import CampaignError, Item, Step

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
    """The request's parameters. ``sysctl``: what the run needs set, by name (its step's, ``requires.settings``)."""
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
