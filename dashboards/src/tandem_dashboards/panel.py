"""A panel: what it is called, what it asks, how it is drawn. ``kinds/`` has a function for each way to draw one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

from grafana_foundation_sdk.models import dashboard as sdk

from tandem_dashboards.look import Look, unit_id
from tandem_dashboards.shown import Shown, mappings, shown, thresholds
from tandem_dashboards.target import Query, datasource
from tandem_dashboards.vocabulary import RESOLUTION, ROLLED

COLUMNS = 24
"""Of Grafana's grid; a unit of height is 30 pixels and a gap of 8."""

ROLLED_POINTS = 220
"""So many that no window is ever narrower than a roll-up's, whichever serves the time range (a test holds it): else a chart would be
dots with gaps between."""


class PanelError(ValueError):
    """The panel cannot be as it was asked for; the message says why."""


@dataclass(frozen=True)
class Panel:
    """``width`` of 24, ``height`` in the grid's units. ``cadence``: how far apart points are at least: windows are never narrower.
    ``time_from``: the last while, whatever the board's range."""

    kind: str
    title: str
    description: str
    queries: tuple[Query, ...]
    options: object
    defaults: sdk.FieldConfig
    overrides: tuple[sdk.DashboardFieldConfigSourceOverrides, ...] = ()
    transformations: tuple[sdk.DataTransformerConfig, ...] = ()
    width: int = 12
    height: int = 8
    cadence: str | None = None
    points: int | None = None
    time_from: str | None = None
    repeat: str | None = None

    def __post_init__(self) -> None:
        if not self.title or (not self.description and self.kind != "text"):
            raise PanelError(
                f"panel {self.title!r}: a title, and a description (what it shows, from where, what empty means), are needed"
            )
        if not 1 <= self.width <= COLUMNS or self.height < 1:
            raise PanelError(f"panel {self.title!r}: width 1 to {COLUMNS}, height from 1 on")

    @property
    def _rolled(self) -> bool:
        return any(query.select.policy in (RESOLUTION, ROLLED) and query.select.every for query in self.queries)

    def to_sdk(self, number: int, x: int, y: int) -> sdk.Panel:
        """The SDK's panel ``number`` at its place."""
        asks = bool(self.queries)
        return sdk.Panel(
            type_val=self.kind,
            id_val=number,
            title=self.title,
            description=self.description,
            datasource=datasource() if asks else None,
            targets=list(self.queries) if asks else None,
            grid_pos=sdk.GridPos(self.height, self.width, x, y),
            interval=self.cadence,
            max_data_points=self.points or (ROLLED_POINTS if self._rolled else None),
            time_from=self.time_from,
            repeat=self.repeat,
            transformations=list(self.transformations) or None,
            options=self.options,
            field_config=sdk.FieldConfigSource(self.defaults, list(self.overrides)),
        )


class Frame(TypedDict, total=False):
    """What every kind of panel may be told; see ``Panel``."""

    width: int
    height: int
    cadence: str
    points: int
    time_from: str
    repeat: str
    transformations: tuple[sdk.DataTransformerConfig, ...]


def main_shown(queries: Sequence[Query]) -> Shown:
    """What the first query's first figure is shown as."""
    outputs = queries[0].select.outputs
    return shown(next((o for o in outputs if o.field is not None or o.measurement is None), outputs[0]))


def figure_defaults(queries: Sequence[Query], look: Look, *, graded: bool) -> sdk.FieldConfig:
    """Unit, words and, where ``graded``, thresholds of the first query's first figure, changed by ``look``."""
    as_is = main_shown(queries)
    steps = look.steps if look.steps is not None else as_is.steps
    words = look.words if look.words is not None else as_is.words
    return sdk.FieldConfig(
        display_name=look.title,
        unit=as_is.unit if look.unit is None else unit_id(look.unit),
        decimals=look.decimals,
        min_val=look.low,
        max_val=look.high,
        mappings=mappings(words),
        thresholds=thresholds(steps if graded else ()),
        color=sdk.FieldColor(
            sdk.FieldColorModeId.THRESHOLDS if graded and steps else sdk.FieldColorModeId.PALETTE_CLASSIC_BY_NAME
        ),
    )
