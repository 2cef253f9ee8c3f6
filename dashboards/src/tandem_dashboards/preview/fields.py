"""What a panel's JSON says of a column or series: defaults, then every override that matches, in their order."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tandem.schema import grades
from tandem_dashboards.grafana.frames import Value
from tandem_dashboards.preview.units import written

PALETTE = (
    *(colour.web for colour in grades.PATH_COLOURS),
    "#73BF69", "#F2CC0C", "#FF780A", "#F2495C", "#5794F2", "#8AB8FF", "#96D98D", "#FFEE52",
)  # fmt: skip
NOTHING = "–"


@dataclass(frozen=True)
class Config:
    """``raw``: the field's config as Grafana would have it. ``name``: what the column or series is called before it."""

    raw: Mapping[str, Any]
    name: str
    place: int

    @property
    def title(self) -> str:
        return str(self.raw.get("displayName") or self.name)

    @property
    def unit(self) -> str:
        return str(self.raw.get("unit") or "none")

    @property
    def custom(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.raw.get("custom") or {}
        return found

    @property
    def steps(self) -> list[tuple[float | None, str]]:
        """Thresholds from the lowest up."""
        return [(step.get("value"), step["color"]) for step in (self.raw.get("thresholds") or {}).get("steps", [])]

    def mapped(self, value: Value) -> Mapping[str, Any] | None:
        """The value mapping of ``value``."""
        key = ("true" if value else "false") if isinstance(value, bool) else _key(value)
        for mapping in self.raw.get("mappings") or ():
            if mapping.get("type") == "value" and key in mapping["options"]:
                found: Mapping[str, Any] = mapping["options"][key]
                return found
        return None

    def text(self, value: Value) -> str:
        """As people read it."""
        if value is None:
            return str(self.raw.get("noValue") or NOTHING)
        mapping = self.mapped(value)
        if mapping and mapping.get("text"):
            return str(mapping["text"])
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, str):
            return value
        decimals = self.raw.get("decimals")
        return written(float(value), self.unit, int(decimals) if decimals is not None else None)

    def colour(self, value: Value) -> str:
        """By the state's word, the fixed colour, the thresholds, or the place in the palette."""
        mapping = self.mapped(value)
        if mapping and mapping.get("color"):
            return str(mapping["color"])
        mode = (self.raw.get("color") or {}).get("mode")
        if mode == "fixed":
            return str(self.raw["color"]["fixedColor"])
        if mode == "thresholds" and isinstance(value, int | float) and not isinstance(value, bool):
            found = self.steps[0][1] if self.steps else PALETTE[0]
            for limit, colour in self.steps[1:]:
                if limit is not None and value >= limit:
                    found = colour
            return found
        return PALETTE[self.place % len(PALETTE)]


def config(panel: Mapping[str, Any], name: str, ref: str, place: int, sort: str = "number") -> Config:
    """The config of the column or series ``name`` of the query ``ref``; ``sort``: number, string, boolean or time."""
    source = panel.get("fieldConfig") or {}
    raw: dict[str, Any] = copy.deepcopy(source.get("defaults") or {})
    for override in source.get("overrides") or ():
        if _matches(override["matcher"], name, ref, sort):
            for prop in override["properties"]:
                _set(raw, prop["id"], prop.get("value"))
    return Config(raw, name, place)


def sort_of(values: list[Value], name: str) -> str:
    """Grafana's type of a column."""
    if name == "Time":
        return "time"
    known = next((value for value in values if value is not None), None)
    return "boolean" if isinstance(known, bool) else "string" if isinstance(known, str) else "number"


def _matches(matcher: Mapping[str, Any], name: str, ref: str, sort: str) -> bool:
    kind, wanted = matcher["id"], matcher.get("options")
    if kind == "byName":
        return bool(name == wanted)
    if kind == "byRegexp":
        return re.search(str(wanted).strip("/"), name) is not None
    if kind == "byFrameRefID":
        return bool(ref == wanted)
    return bool(kind == "byType" and sort == wanted)


def _set(raw: dict[str, Any], path: str, value: object) -> None:
    """``custom.width`` goes into ``custom``; everything else is a key."""
    head, dot, tail = path.partition(".")
    if dot and head == "custom":
        raw["custom"] = {**(raw.get("custom") or {}), tail: value}
    else:
        raw[path] = value


def _key(value: Value) -> str:
    return f"{value:.15g}" if isinstance(value, int | float) else str(value)
