"""The table ``[position]`` of the configuration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tandem.app.config_schema import TABLES
from tandem.schema.toml_keys import Key
from tandem.schema.toml_lines import Place

MOST_ZONES = 20


@dataclass(frozen=True, slots=True, repr=False)
class HomeZone:
    """A circle that no position leaves. It has no repr: no log shall hold one."""

    latitude_deg: float
    longitude_deg: float
    radius_m: float


@dataclass(frozen=True, slots=True)
class PositionConfig:
    """Of ``device`` and ``modem`` (a path's name) at most one is set, as ``source`` says."""

    mode: Literal["coarse", "full"]
    source: Literal["gpsd", "device", "modem"]
    host: str
    port: int
    device: str | None
    modem: str | None
    grid_deg: float
    lost_after_s: float
    zones: tuple[HomeZone, ...]


Checked = Callable[[tuple[Key, ...], dict[str, Any], Place], dict[str, Any]]
Fail = Callable[[Place, str, str], Exception]


def position_config(content: object, checked: Checked, fail: Fail, modems: Sequence[str]) -> PositionConfig | None:
    """The table checked; None when the mode is off. ``modems``: names of paths with a modem."""
    place: Place = ("position",)
    if not isinstance(content, dict):
        raise fail(place, "'position' is no table", "begin it with [position] on a line of its own")
    values = checked(TABLES["position"], {k: v for k, v in content.items() if k != "home_zone"}, place)
    zones = _zones(content.get("home_zone", []), checked, fail)
    source = values["source"]
    for name in ("device", "modem"):
        if source == name and values[name] is None:
            raise fail((*place, "source"), f"[position] has no {name!r}", f"add it: source is {source!r}")
        if source != name and values[name] is not None:
            raise fail((*place, name), f"position.{name} is given, but source is {source!r}", f'source = "{name}"')
    if values["modem"] is not None and values["modem"] not in modems:
        known = ", ".join(modems) or "none has one"
        raise fail((*place, "modem"), f"position.modem: {values['modem']!r} is no path with a modem", f"known: {known}")
    if values["mode"] == "off":
        return None
    return PositionConfig(**values, zones=zones)


def _zones(listed: object, checked: Checked, fail: Fail) -> tuple[HomeZone, ...]:
    place: Place = ("position", "home_zone")
    if not isinstance(listed, list) or not all(isinstance(zone, dict) for zone in listed):
        raise fail(place, "'home_zone' is no list of tables", "begin each zone with [[position.home_zone]]")
    if len(listed) > MOST_ZONES:
        raise fail((*place, MOST_ZONES), f"{len(listed)} home zones", f"at most {MOST_ZONES}")
    keys = TABLES["position.home_zone"]
    return tuple(HomeZone(**checked(keys, zone, (*place, number))) for number, zone in enumerate(listed))
