"""How one column or series differs from what the schema says of it (an override of Grafana), and links from it to other boards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from grafana_foundation_sdk.models import dashboard as sdk

from tandem_dashboards.field_config import Steps, field_config, mappings, thresholds, unit_id
from tandem_dashboards.influxql import Output
from tandem_server.schema import grades

Cell = Literal["colour", "text", "gauge"]
"""Of a table: its background, or its text, in the colour of the grade or state; a bar."""


@dataclass(frozen=True)
class Link:
    """``url`` with Grafana's macros, which the browser fills in."""

    title: str
    url: str
    new_tab: bool = False

    def to_json(self) -> dict[str, object]:
        """As a field's ``links`` has it."""
        return {"title": self.title, "url": self.url, "targetBlank": self.new_tab}


def cell(column: str) -> str:
    """What stands in ``column`` of the row that was clicked, fit for a URL."""
    return f"${{__data.fields.{column}:percentencode}}"


def label(tag: str) -> str:
    """The ``tag`` of the series that was clicked. Grafana ignores a format here: only for names fit for a URL as they are."""
    return f"${{__field.labels.{tag}}}"


def to_board(uid: str, title: str, keep: Sequence[str] = (), **variables: str) -> Link:
    """A link to the board ``uid`` with ``variables`` set (``probe=cell("probe")``) and those in ``keep`` as they are on this board. The
    time range goes along."""
    parts = [f"var-{name}={value}" for name, value in variables.items()]
    parts += [f"${{{name}:queryparam}}" for name in keep]
    return Link(title, f"/d/{uid}?" + "&".join([*parts, "${__url_time_range}"]))


@dataclass(frozen=True)
class Override:
    """All optional. ``unit``: the schema's words (``bit/s``), or ``grafana:ID``. ``colour``: a tone's name or ``#RRGGBB``. ``steps`` and
    ``words``: grades and states in place of the schema's. ``low``, ``high``: hard limits. ``axis``, ``as_bars``, ``as_points``,
    ``dashed``: of a chart. ``width`` (pixels), ``cell``: of a table. ``links``: what a click opens."""

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
    links: tuple[Link, ...] = ()

    def properties(self) -> list[sdk.DynamicConfigValue]:
        """As Grafana's override has them."""
        colour = sdk.FieldColor(sdk.FieldColorModeId.FIXED, web(self.colour)) if self.colour is not None else None
        found: list[tuple[str, object]] = [
            ("displayName", self.title),
            ("unit", None if self.unit is None else unit_id(self.unit)),
            ("decimals", self.decimals),
            ("color", colour),
            *([] if self.steps is None else [("thresholds", thresholds(self.steps)), _BY_STEPS]),
            ("mappings", None if self.words is None else mappings(self.words)),
            ("min", self.low),
            ("max", self.high),
            ("custom.axisPlacement", self.axis),
            *([("custom.drawStyle", "bars"), ("custom.fillOpacity", 60)] if self.as_bars else []),
            *([("custom.drawStyle", "points"), ("custom.showPoints", "always")] if self.as_points else []),
            ("custom.lineStyle", {"fill": "dash", "dash": [8, 6]} if self.dashed else None),
            ("custom.width", self.width),
            ("custom.cellOptions", dict(_CELLS[self.cell]) if self.cell else None),
            ("links", list(self.links) or None),
        ]
        return [sdk.DynamicConfigValue(name, value) for name, value in found if value is not None]


def shown(*names: str, **changed: str | Override) -> dict[str, Override]:
    """Columns of a table in their order: ``names`` as the schema has them, then ``changed``: another title, or an ``Override``."""
    plain = {name: Override() for name in names}
    return plain | {name: Override(its) if isinstance(its, str) else its for name, its in changed.items()}


COLOUR, TEXT = Override(cell="colour"), Override(cell="text")
LIVE = to_board("tandem-probe", "Probe live", probe=cell("probe"))
TO_PROBE = Override(links=(LIVE,))
"""A probe's name, which opens it live."""

_BY_STEPS: tuple[str, object] = ("color", sdk.FieldColor(sdk.FieldColorModeId.THRESHOLDS))
_CELLS: Mapping[str, Mapping[str, object]] = {
    "colour": {"type": "color-background", "mode": "basic"},
    "text": {"type": "color-text"},
    "gauge": {"type": "gauge", "mode": "basic", "valueDisplayMode": "text"},
}


def web(colour: str) -> str:
    """``#RRGGBB`` of a tone's name; of a colour, itself."""
    return colour if colour.startswith("#") else next(c.web for tone, c in grades.COLOURS.items() if tone == colour)


def by_name(name: str, override: Override) -> sdk.DashboardFieldConfigSourceOverrides:
    """For the column or series called ``name``; ``/…/`` is a regular expression."""
    kind = "byRegexp" if len(name) > 1 and name[0] == name[-1] == "/" else "byName"
    return sdk.DashboardFieldConfigSourceOverrides(sdk.MatcherConfig(kind, name), override.properties())


def by_query(ref: str, override: Override) -> sdk.DashboardFieldConfigSourceOverrides:
    """For every series of the query ``ref``."""
    return sdk.DashboardFieldConfigSourceOverrides(sdk.MatcherConfig("byFrameRefID", ref), override.properties())


def columns(
    outputs: Iterable[Output], overrides: Mapping[str, Override]
) -> list[sdk.DashboardFieldConfigSourceOverrides]:
    """Of a table: each column as the schema says, then as its ``Override`` says; one of no column is for what a transformation makes."""
    made, known = [], set()
    for output in outputs:
        if output.name in known:
            continue
        known.add(output.name)
        as_is, override = field_config(output), overrides.get(output.name, Override())
        properties = [sdk.DynamicConfigValue("displayName", as_is.title), sdk.DynamicConfigValue("unit", as_is.unit)]
        if as_is.words:
            properties.append(sdk.DynamicConfigValue("mappings", mappings(as_is.words)))
        if as_is.steps:
            properties.append(sdk.DynamicConfigValue("thresholds", thresholds(as_is.steps)))
            properties.append(sdk.DynamicConfigValue(*_BY_STEPS))
        own = override.properties()
        replaced = {p.id_val for p in own}
        properties = [p for p in properties if p.id_val not in replaced] + own
        made.append(sdk.DashboardFieldConfigSourceOverrides(sdk.MatcherConfig("byName", output.name), properties))
    made += [
        by_name(name, override) for name, override in overrides.items() if name not in known and override.properties()
    ]
    return made
