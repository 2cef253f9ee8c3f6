"""A panel: what it is called, its queries, how it is drawn. ``kinds.py`` has a function for each way to draw one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypedDict

from grafana_foundation_sdk.cog import variants
from grafana_foundation_sdk.models import dashboard as sdk

from tandem_dashboards.field_config import FieldConfig, field_config, mappings, thresholds, unit_id
from tandem_dashboards.influxql import RESOLUTION, ROLLED, QueryError, Select
from tandem_dashboards.overrides import Override

DATASOURCE_TYPE = "influxdb"
DATASOURCE_UID = "tandem"

COLUMNS = 24
"""Of Grafana's grid; a unit of height is 30 pixels and a gap of 8."""

ROLLED_POINTS = 220
"""So many that no window is ever narrower than a roll-up's, whichever serves the time range (a test holds it): else a chart would be
dots with gaps between."""

_ALIAS_TAG = re.compile(r"\$tag_([@\w-]+)")
"""As Grafana reads an alias: a name goes on over hyphens, so ``$tag_path-x`` is the tag ``path-x``."""
Shape = Literal["time_series", "table"]


class PanelError(ValueError):
    """The panel cannot be made; the message says why."""


def datasource() -> sdk.DataSourceRef:
    """The one data source of all boards, by the uid that provisioning gives it."""
    return sdk.DataSourceRef(DATASOURCE_TYPE, DATASOURCE_UID)


@dataclass(frozen=True)
class Query(variants.Dataquery):
    """The SDK knows no InfluxQL, so this is its own ``Dataquery``. ``alias``: name of each series: ``$tag_path``, ``$tag_operator``,
    ``$col``, ``$m``, or plain words; variables of the board, too. ``ref`` is given by the panel when empty: A, B …"""

    select: Select
    shape: Shape
    alias: str = ""
    ref: str = ""

    def __post_init__(self) -> None:
        for name in _ALIAS_TAG.findall(self.alias):
            if name not in self.select.grouped:
                by = ", ".join(self.select.grouped) or "nothing"
                raise QueryError(f"alias {self.alias!r}: the query is not grouped by {name!r}; it is by {by}")

    def to_json(self) -> dict[str, object]:
        """As Grafana's InfluxDB data source keeps a query."""
        payload: dict[str, object] = {
            "refId": self.ref,
            "datasource": datasource(),
            "query": self.select.text,
            "rawQuery": True,
            "resultFormat": self.shape,
        }
        if self.alias:
            payload["alias"] = self.alias
        return payload


def series(select: Select, alias: str = "") -> Query:
    """One series a group and column, named ``alias``: for charts over time."""
    return Query(select, "time_series", alias)


def lettered(queries: tuple[Query | Select, ...], shape: Shape) -> tuple[Query, ...]:
    """Each with a letter; a bare ``Select`` becomes a query of this ``shape``."""
    made = [query if isinstance(query, Query) else Query(query, shape) for query in queries]
    return tuple(query if query.ref else replace(query, ref=chr(ord("A") + n)) for n, query in enumerate(made))


@dataclass(frozen=True)
class Panel:
    """``size``: width of 24, and height in the grid's units. ``cadence``: how far apart points are at least: windows are never narrower.
    ``time_from``: the last while, whatever the board's range."""

    kind: str
    title: str
    description: str
    queries: tuple[Query, ...]
    options: object
    defaults: sdk.FieldConfig
    overrides: tuple[sdk.DashboardFieldConfigSourceOverrides, ...] = ()
    transformations: tuple[sdk.DataTransformerConfig, ...] = ()
    size: tuple[int, int] = (12, 8)
    cadence: str | None = None
    points: int | None = None
    time_from: str | None = None
    repeat: str | None = None

    def __post_init__(self) -> None:
        if not self.title or (not self.description and self.kind != "text"):
            raise PanelError(
                f"panel {self.title!r}: a title, and a description (what it shows, from where, what empty means), are needed"
            )
        width, height = self.size
        if not 1 <= width <= COLUMNS or height < 1:
            raise PanelError(f"panel {self.title!r}: width 1 to {COLUMNS}, height from 1 on")

    @property
    def _rolled(self) -> bool:
        return any(query.select.policy in (RESOLUTION, ROLLED) and query.select.every for query in self.queries)

    def to_sdk(self, number: int, x: int, y: int) -> sdk.Panel:
        """The SDK's panel ``number`` at its place."""
        return sdk.Panel(
            type_val=self.kind,
            id_val=number,
            title=self.title,
            description=self.description,
            datasource=datasource() if self.queries else None,
            targets=list(self.queries) or None,
            grid_pos=sdk.GridPos(self.size[1], self.size[0], x, y),
            interval=self.cadence,
            max_data_points=self.points or (ROLLED_POINTS if self._rolled else None),
            time_from=self.time_from,
            repeat=self.repeat,
            transformations=list(self.transformations) or None,
            options=self.options,
            field_config=sdk.FieldConfigSource(self.defaults, list(self.overrides)),
        )


class Frame(TypedDict, total=False):
    """What every kind of panel takes; see ``Panel``."""

    size: tuple[int, int]
    cadence: str
    points: int
    time_from: str
    repeat: str
    transformations: tuple[sdk.DataTransformerConfig, ...]


def main_config(queries: Sequence[Query]) -> FieldConfig:
    """How the first query's first figure is shown."""
    outputs = queries[0].select.outputs
    return field_config(next((o for o in outputs if o.field is not None or o.measurement is None), outputs[0]))


def defaults_of(queries: Sequence[Query], override: Override | None, *, graded: bool) -> sdk.FieldConfig:
    """Unit, words and, where ``graded``, thresholds of the first query's first figure, changed by ``override``."""
    as_is, override = main_config(queries), override or Override()
    steps = override.steps if override.steps is not None else as_is.steps
    words = override.words if override.words is not None else as_is.words
    return sdk.FieldConfig(
        display_name=override.title,
        unit=as_is.unit if override.unit is None else unit_id(override.unit),
        decimals=override.decimals,
        min_val=override.low,
        max_val=override.high,
        mappings=mappings(words),
        thresholds=thresholds(steps if graded else ()),
        color=sdk.FieldColor(
            sdk.FieldColorModeId.THRESHOLDS if graded and steps else sdk.FieldColorModeId.PALETTE_CLASSIC_BY_NAME
        ),
    )


def joined(by: str) -> sdk.DataTransformerConfig:
    """One table of all queries' tables: rows that agree in the column ``by`` become one."""
    return sdk.DataTransformerConfig("joinByField", options={"byField": by, "mode": "outer"})


def merged() -> sdk.DataTransformerConfig:
    """One table of all: rows that agree in every column that they share become one."""
    return sdk.DataTransformerConfig("merge", options={})


def only(columns: Sequence[str]) -> list[sdk.DataTransformerConfig]:
    """These columns, in this order."""
    order = {name: n for n, name in enumerate(columns)}
    return [
        sdk.DataTransformerConfig("filterFieldsByName", options={"include": {"names": list(columns)}}),
        sdk.DataTransformerConfig("organize", options={"excludeByName": {}, "indexByName": order, "renameByName": {}}),
    ]
