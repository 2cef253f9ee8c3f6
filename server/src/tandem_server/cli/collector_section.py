"""``[collector]`` of server.toml: what the server expects of the collectors that talk to it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ExpectedCollector:
    """``version``: of the collector that probes shall run, told to those that ask (``tandem preflight``); None: the server's own,
    since both are released together. No probe is turned away for another."""

    version: str | None = None
