"""Everything that is wrong with a probe now, in one list of lines for people, the gravest first. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tandem.schema.grades import SCALES

BEHIND_S = SCALES["health.spool_oldest_s"].fair
"""The oldest record may be unsent for so long (a tunnel, a village) before it is worth a word."""


def all_that_is_wrong(status: Mapping[str, Any]) -> list[str]:
    """From the parts of the status object."""
    return [
        *([str(status["trouble"])] if status.get("trouble") else []),
        *(status.get("wrong") or []),
        *_clock(status.get("health") or {}, status.get("clock") or {}),
        *_modems(status.get("modem_health") or {}),
        *_paths(status.get("paths") or {}),
        *_records(status.get("spool") or {}, status.get("health") or {}),
    ]


def _clock(health: Mapping[str, Any], clock: Mapping[str, Any]) -> list[str]:
    """Where the clock itself says why, that is the trouble already."""
    if health.get("clock_synchronised") is False and not clock.get("trouble"):
        return ["the clock was never set in this boot: records wait for their time; mend: a network, or a receiver"]
    return []


def _modems(modems: Mapping[str, Mapping[str, Any]]) -> list[str]:
    said: list[str] = []
    for path, modem in modems.items():
        state, since_s = modem.get("state"), modem.get("state_since_s")
        if state not in ("lost", "recovering"):
            continue
        how = {"silent": "is silent", "refusing": "refuses"}.get(str(modem.get("sickness")), "is lost")
        steps = modem.get("recovery_steps") or 0
        doing = f", recovering: {modem.get('recovery_step')} was done" if state == "recovering" else ""
        if state == "lost" and steps:
            doing = f", {steps} recovery steps did not help"
        said.append(f"path {path}: its modem {how}, for {_duration(since_s)}{doing}")
    return said


def _paths(paths: Mapping[str, Mapping[str, Any]]) -> list[str]:
    said: list[str] = []
    for path, told in paths.items():
        state = told.get("state")
        if state not in (None, "up"):
            detail = f": {told['detail']}" if told.get("detail") else ""
            said.append(f"path {path} is {str(state).replace('_', ' ')}{detail}")
    return said


def _records(spool: Mapping[str, Any], health: Mapping[str, Any]) -> list[str]:
    said: list[str] = []
    if spool.get("dropped"):
        said.append(f"{spool['dropped']} records were dropped: the spool was full")
    if spool.get("rejected"):
        said.append(f"{spool['rejected']} records were refused by the server (spool/ has them with the reasons)")
    oldest_s = health.get("spool_oldest_s")
    if isinstance(oldest_s, int | float) and oldest_s > BEHIND_S:
        said.append(f"{spool.get('pending', 0)} records wait to be sent, the oldest for {_duration(oldest_s)}")
    return said


def _duration(seconds: object) -> str:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return "some time"
    minutes = int(seconds) // 60
    if minutes < 1:
        return f"{int(seconds)} s"
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if days else f"{hours} h {minutes} min" if hours else f"{minutes} min"
