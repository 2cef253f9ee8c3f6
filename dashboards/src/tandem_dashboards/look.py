"""How one column or series differs from what the schema says of it: an override of Grafana."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from grafana_foundation_sdk.models import dashboard as sdk

from tandem.schema import grades
from tandem_dashboards.influxql import Output
from tandem_dashboards.links import Link
from tandem_dashboards.shown import Steps, mappings, shown, thresholds
from tandem_dashboards.units import grafana_unit

Cell = Literal["plain", "colour", "text", "gauge"]
"""Of a table: as it is; its background, or its text, in the colour of the grade or state; a bar."""


@dataclass(frozen=True)
class Look:
    """All optional. ``unit``: the schema's words (``bit/s``), or ``grafana:ID``. ``colour``: a tone's name or ``#RRGGBB``. ``steps`` and
    ``words``: grades and states in place of the schema's. ``low``, ``high``: hard limits. ``axis``, ``as_bars``, ``as_points``,
    ``dashed``: of a chart. ``width`` (pixels), ``cell``, ``hidden``: of a table. ``links``: what a click opens."""

    title: str | None = None
    unit: str | None = None
    decimals: int | None = None
    colour: str | None = None
    steps: Steps | None = None
    words: grades.Words | None = None
    low: float | None = None
    high: float | None = None
    axis: Literal["left", "right"] | None = None
    as_bars: bool = False
    as_points: bool = False
    dashed: bool = False
    width: int | None = None
    cell: Cell | None = None
    hidden: bool = False
    links: tuple[Link, ...] = ()

    def properties(self) -> list[sdk.DynamicConfigValue]:
        """As Grafana's override has them."""
        found: list[tuple[str, object]] = []
        if self.title is not None:
            found.append(("displayName", self.title))
        if self.unit is not None:
            found.append(("unit", unit_id(self.unit)))
        if self.decimals is not None:
            found.append(("decimals", self.decimals))
        if self.colour is not None:
            found.append(("color", sdk.FieldColor(sdk.FieldColorModeId.FIXED, web(self.colour))))
        if self.steps is not None:
            found += [("thresholds", thresholds(self.steps)), _BY_STEPS]
        if self.words is not None:
            found.append(("mappings", mappings(self.words)))
        found += [(name, limit) for name, limit in (("min", self.low), ("max", self.high)) if limit is not None]
        found += self._custom()
        if self.links:
            found.append(("links", list(self.links)))
        return [sdk.DynamicConfigValue(name, value) for name, value in found]

    def _custom(self) -> list[tuple[str, object]]:
        found: list[tuple[str, object]] = []
        if self.axis is not None:
            found.append(("custom.axisPlacement", self.axis))
        if self.as_bars:
            found += [("custom.drawStyle", "bars"), ("custom.fillOpacity", 60)]
        if self.as_points:
            found += [("custom.drawStyle", "points"), ("custom.showPoints", "always")]
        if self.dashed:
            found.append(("custom.lineStyle", {"fill": "dash", "dash": [8, 6]}))
        if self.width is not None:
            found.append(("custom.width", self.width))
        if self.cell is not None and self.cell != "plain":
            found.append(("custom.cellOptions", dict(_CELLS[self.cell])))
        if self.hidden:
            found.append(("custom.hidden", True))
        return found


_BY_STEPS: tuple[str, object] = ("color", sdk.FieldColor(sdk.FieldColorModeId.THRESHOLDS))
_CELLS: Mapping[str, Mapping[str, object]] = {
    "colour": {"type": "color-background", "mode": "basic"},
    "text": {"type": "color-text"},
    "gauge": {"type": "gauge", "mode": "basic", "valueDisplayMode": "text"},
}


def unit_id(unit: str) -> str:
    """Grafana's id of a unit given in the schema's words, or as ``grafana:ID``."""
    return unit.removeprefix("grafana:") if unit.startswith("grafana:") else grafana_unit(unit) if unit else "none"


def web(colour: str) -> str:
    """``#RRGGBB`` of a tone's name; of a colour, itself."""
    return colour if colour.startswith("#") else next(c.web for tone, c in grades.COLOURS.items() if tone == colour)


def by_name(name: str, look: Look) -> sdk.DashboardFieldConfigSourceOverrides:
    """For the column or series called ``name``; ``/…/`` is a regular expression."""
    kind = "byRegexp" if len(name) > 1 and name[0] == name[-1] == "/" else "byName"
    return sdk.DashboardFieldConfigSourceOverrides(sdk.MatcherConfig(kind, name), look.properties())


def by_query(ref: str, look: Look) -> sdk.DashboardFieldConfigSourceOverrides:
    """For every series of the query ``ref``."""
    return sdk.DashboardFieldConfigSourceOverrides(sdk.MatcherConfig("byFrameRefID", ref), look.properties())


def columns(outputs: Iterable[Output], looks: Mapping[str, Look]) -> list[sdk.DashboardFieldConfigSourceOverrides]:
    """Of a table: each column as the schema says, then as its ``Look`` says. A Look of no column is for what a transformation makes."""
    made, known = [], set()
    for output in outputs:
        if output.name in known:
            continue
        known.add(output.name)
        as_is, look = shown(output), looks.get(output.name, Look())
        properties = [sdk.DynamicConfigValue("displayName", as_is.title), sdk.DynamicConfigValue("unit", as_is.unit)]
        if as_is.words:
            properties.append(sdk.DynamicConfigValue("mappings", mappings(as_is.words)))
        if as_is.steps:
            properties.append(sdk.DynamicConfigValue("thresholds", thresholds(as_is.steps)))
            properties.append(sdk.DynamicConfigValue(*_BY_STEPS))
        said = look.properties()
        replaced = {p.id_val for p in said}
        properties = [p for p in properties if p.id_val not in replaced] + said
        made.append(sdk.DashboardFieldConfigSourceOverrides(sdk.MatcherConfig("byName", output.name), properties))
    made += [by_name(name, look) for name, look in looks.items() if name not in known and look.properties()]
    return made
