"""The table ``[campaigns]`` of the configuration: of those that the server pushes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CampaignsConfig:
    """``from_server``: whether they are run; ``ask_every_s``: how often the server is asked for them."""

    from_server: bool = True
    ask_every_s: float = 300.0
