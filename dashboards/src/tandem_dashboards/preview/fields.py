"""What a panel's JSON says of a column or series (defaults, then every override that matches, in their order), and figures with their
units, as Grafana writes them: of its units those that boards here use."""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tandem.schema import grades
from tandem_dashboards.grafana.frames import Value

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
        return written(
            float(value), str(self.raw.get("unit") or "none"), int(decimals) if decimals is not None else None
        )

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


def config(panel: Mapping[str, Any], name: str, ref: str, place: int) -> Config:
    """The config of the column or series ``name`` of the query ``ref``."""
    source = panel.get("fieldConfig") or {}
    raw: dict[str, Any] = copy.deepcopy(source.get("defaults") or {})
    for override in source.get("overrides") or ():
        if _matches(override["matcher"], name, ref):
            for prop in override["properties"]:
                _set(raw, prop["id"], prop.get("value"))
    return Config(raw, name, place)


def sort_of(values: list[Value], name: str) -> str:
    """Grafana's type of a column."""
    if name == "Time":
        return "time"
    known = next((value for value in values if value is not None), None)
    return "boolean" if isinstance(known, bool) else "string" if isinstance(known, str) else "number"


def _matches(matcher: Mapping[str, Any], name: str, ref: str) -> bool:
    kind, wanted = matcher["id"], matcher.get("options")
    if kind == "byName":
        return bool(name == wanted)
    if kind == "byRegexp":
        return re.search(str(wanted).strip("/"), name) is not None
    return bool(kind == "byFrameRefID" and ref == wanted)


def _set(raw: dict[str, Any], path: str, value: object) -> None:
    """``custom.width`` goes into ``custom``; everything else is a key."""
    head, dot, tail = path.partition(".")
    if dot and head == "custom":
        raw["custom"] = {**(raw.get("custom") or {}), tail: value}
    else:
        raw[path] = value


def _key(value: Value) -> str:
    return f"{value:.15g}" if isinstance(value, int | float) else str(value)


_SCALED = {"bps": "b/s", "decbytes": "B", "Bps": "B/s"}
_PLAIN = {
    "dBm": " dBm", "dB": " dB", "percent": " %", "celsius": " °C", "velocityms": " m/s", "ppm": " ppm", "degree": "°",
    "cps": " c/s", "cpm": " c/m",
}  # fmt: skip
_TIMES_S = {"ns": 1e-9, "ms": 1e-3, "s": 1.0}
_SPANS = (
    (86_400 * 365, "years"), (86_400, "days"), (3600, "hours"), (60, "mins"), (1, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"),
)  # fmt: skip


def written(value: float, unit: str, decimals: int | None = None) -> str:
    """``12.3 Mb/s``, ``4.5 mins``, ``-97 dBm``."""
    if not math.isfinite(value):
        return str(value)
    if unit in _SCALED:
        prefixes = ["", "k", "M", "G", "T", "P"]
        while abs(value) >= 1000 and len(prefixes) > 1:
            value = value / 1000
            del prefixes[0]
        return f"{_digits(value, decimals)} {prefixes[0]}{_SCALED[unit]}"
    if unit in _TIMES_S:
        seconds = value * _TIMES_S[unit]
        size, name = next(((size, name) for size, name in _SPANS if abs(seconds) >= size), (_TIMES_S[unit], unit))
        return f"{_digits(seconds / size, decimals)} {name}"
    if unit == "percentunit":
        return f"{_digits(value * 100, decimals)} %"
    if unit == "lengthm":
        return f"{_digits(value / 1000, decimals)} km" if abs(value) >= 1000 else f"{_digits(value, decimals)} m"
    if unit.startswith("suffix:"):
        return f"{_digits(value, decimals)} {unit.removeprefix('suffix:')}"
    return _digits(value, decimals) + _PLAIN.get(unit, "")


def _digits(value: float, decimals: int | None) -> str:
    """Three figures that count, or as many ``decimals``."""
    if decimals is not None:
        return f"{value:.{decimals}f}"
    if value == int(value):
        return str(int(value))
    places = max(0, 2 - math.floor(math.log10(abs(value)))) if value else 0
    text = f"{value:.{min(places, 6)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
