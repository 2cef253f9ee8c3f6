"""The table ``[traces]`` of the configuration: when, where and how fast captures and other files of runs go to the server."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

from tandem.schema.toml_keys import Key

NIGHT_OFF = "off"
_NIGHT = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])-([01][0-9]|2[0-3]):([0-5][0-9])\Z")


def _night(value: str) -> str | None:
    if value == NIGHT_OFF:
        return None
    found = _NIGHT.match(value)
    if found is None:
        return f"{value!r} is no time of day"
    return f"{value!r} begins when it ends" if found[1] + found[2] == found[3] + found[4] else None


KEYS: tuple[Key, ...] = (
    Key("enabled", "truth", "true, or false: nothing goes up but what a person asks for", default=True),
    Key("over", "text", "unmetered or any", default="unmetered", choices=("unmetered", "any")),
    Key(
        "night",
        "text",
        "as in 01:00-05:00, this machine's local time; off: at any time",
        default="01:00-05:00",
        check=_night,
    ),
    Key(
        "still_for_s",
        "number",
        "seconds without a change of the radio, 0 to 86400",
        default=7200.0,
        minimum=0,
        maximum=86400,
    ),
    Key(
        "rate_bit_per_s",
        "whole",
        "bit/s at most on a path, 64000 to 10^9",
        default=10_000_000,
        minimum=64_000,
        maximum=10**9,
    ),
    Key(
        "metered_bytes_per_day",
        "whole",
        "bytes that uploads may cost each SIM a day (UTC), from 0",
        default=50_000_000,
        minimum=0,
        maximum=10**12,
    ),
    Key(
        "plan_share",
        "number",
        "share of what the SIM's plan is expected to have left at its reset, 0 to 1",
        default=0.5,
        minimum=0,
        maximum=1,
    ),
    Key("encoding", "text", "gzip or identity", default="gzip", choices=("gzip", "identity")),
    Key("keep", "text", "while_room or until_received", default="while_room", choices=("while_room", "until_received")),
    Key(
        "free_bytes",
        "whole",
        "bytes of the disk to be kept free where received files are kept, from 0",
        default=500_000_000,
        minimum=0,
        maximum=10**14,
    ),
)


@dataclass(frozen=True, slots=True)
class TracesConfig:
    """``over``: ``unmetered`` is Wi-Fi and Ethernet only. ``night``: minutes of the local day at which it begins and ends, None: at any
    time; ``metered_bytes_per_day``: for each metered path, headers included; ``keep``: what becomes of a file that the server has."""

    enabled: bool = True
    over: Literal["unmetered", "any"] = "unmetered"
    night: tuple[int, int] | None = (60, 300)
    still_for_s: float = 7200.0
    rate_bit_per_s: int = 10_000_000
    metered_bytes_per_day: int = 50_000_000
    plan_share: float = 0.5
    encoding: Literal["gzip", "identity"] = "gzip"
    keep: Literal["while_room", "until_received"] = "while_room"
    free_bytes: int = 500_000_000


def traces_config(values: dict[str, Any]) -> TracesConfig:
    """From checked values."""
    found = _NIGHT.match(values["night"])
    night = None if found is None else (int(found[1]) * 60 + int(found[2]), int(found[3]) * 60 + int(found[4]))
    return TracesConfig(**{**values, "night": night})
