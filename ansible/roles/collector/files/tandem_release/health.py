"""Whether a release measures as well as the one before it did. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tandem_release.service import Told


def lacks(now: Told, release_python: str, before: Mapping[str, Any] | None) -> str | None:
    """What is missing for the release to be healthy, or None. ``before``: the status of the one before; what did not work then (a modem
    that is unplugged, a server out of reach) is not asked of the new one."""
    if not now.active:
        return "systemd does not hold the collector for started"
    if now.program != release_python:
        return f"the collector that runs is another one: {now.program or 'nothing'}"
    if now.status is None:
        return "the collector does not answer"
    if before is None:
        return None
    for name in _in_state(before, "paths", "up") - _in_state(now.status, "paths", "up"):
        return f"path {name} was up before and is not"
    for name in _in_state(before, "modem_health", "usable") - _in_state(now.status, "modem_health", "usable"):
        return f"the modem of path {name} was usable before and is not"
    if _reached(before) and not _reached(now.status):
        return "the server took records before and has taken none since"
    return None


def made(status: Mapping[str, Any] | None) -> int:
    """Records that the collector made since its start; 0 when it does not say."""
    spool = None if status is None else status.get("spool")
    count = spool.get("made") if isinstance(spool, dict) else None
    return count if isinstance(count, int) else 0


def _in_state(status: Mapping[str, Any], table: str, state: str) -> set[str]:
    """Names in a table by path whose state is that. What is no such table has none."""
    entries = status.get(table)
    if not isinstance(entries, dict):
        return set()
    return {name for name, entry in entries.items() if isinstance(entry, dict) and entry.get("state") == state}


def _reached(status: Mapping[str, Any]) -> bool:
    spool = status.get("spool")
    return isinstance(spool, dict) and spool.get("path") is not None
