"""Maps: where probes are, where they went, how it was there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Unpack

from grafana_foundation_sdk.models import common, geomap

from tandem_dashboards.influxql import Select
from tandem_dashboards.look import Look, columns
from tandem_dashboards.panel import Frame, Panel, figure_defaults
from tandem_dashboards.target import Query, lettered


@dataclass(frozen=True)
class Layer:
    """One layer of a map: ``kind`` is Grafana's; ``colour_by``: the column whose grade or state colours it."""

    name: str
    kind: Literal["markers", "route", "heatmap"]
    latitude: str | None
    longitude: str | None
    geohash: str | None
    colour_by: str | None
    text: str | None
    size: int
    query: str | None

    def to_sdk(self) -> common.MapLayerOptions:
        """As Grafana's options have it."""
        if self.geohash:
            location = common.FrameGeometrySource(common.FrameGeometrySourceMode.GEOHASH, geohash=self.geohash)
        else:
            location = common.FrameGeometrySource(
                common.FrameGeometrySourceMode.COORDS, latitude=self.latitude, longitude=self.longitude
            )
        colour: dict[str, object] = (
            {"fixed": "#5794F2"} if self.colour_by is None else {"field": self.colour_by, "fixed": "#8E8E8E"}
        )
        style: dict[str, object] = {
            "color": colour,
            "opacity": 0.8,
            "size": {"fixed": self.size, "min": 2, "max": 15},
            "symbol": {"mode": "fixed", "fixed": "img/icons/marker/circle.svg"},
            "lineWidth": 3,
        }
        if self.text is not None:
            style["text"] = {"mode": "field", "field": self.text, "fixed": ""}
            style["textConfig"] = {
                "fontSize": 12,
                "offsetX": 0,
                "offsetY": -12,
                "textAlign": "center",
                "textBaseline": "middle",
            }
        config: dict[str, object] = {"style": style, "showLegend": self.colour_by is not None}
        if self.kind == "heatmap":
            config = {"blur": 15, "radius": 8, "weight": {"fixed": 1, "min": 0, "max": 1}}
        if self.kind == "route":
            config = {"style": style, "arrow": 0}
        only = {"id": "byRefId", "options": self.query} if self.query else None
        return common.MapLayerOptions(self.kind, self.name, config, location, only, tooltip=True)


def markers(
    name: str,
    *,
    latitude: str | None = None,
    longitude: str | None = None,
    geohash: str | None = None,
    colour_by: str | None = None,
    text: str | None = None,
    size: int = 7,
    query: str | None = None,
) -> Layer:
    """A dot for each row: at two columns of degrees, or at the middle of an area (``geohash``). ``query``: the letter of its query."""
    return Layer(name, "markers", latitude, longitude, geohash, colour_by, text, size, query)


def route(
    name: str, *, latitude: str, longitude: str, colour_by: str | None = None, size: int = 3, query: str | None = None
) -> Layer:
    """A line through the rows in their order."""
    return Layer(name, "route", latitude, longitude, None, colour_by, None, size, query)


def world(
    title: str,
    description: str,
    *queries: Query | Select,
    layers: Sequence[Layer],
    look: Look | None = None,
    looks: Mapping[str, Look] | None = None,
    **frame: Unpack[Frame],
) -> Panel:
    """A map that shows all that ``layers`` have. The background comes from Grafana's default base map, fetched by the reader's browser."""
    targets = lettered(queries, "table")
    defaults = figure_defaults(targets, look or Look(), graded=True)
    return Panel(
        "geomap",
        title,
        description,
        tuple(targets),
        geomap.Options(
            view=geomap.MapViewConfig(id_val="fit", lat=0, lon=0, zoom=15, padding=8, all_layers=True),
            controls=geomap.ControlsOptions(
                show_zoom=True, mouse_wheel_zoom=True, show_attribution=True, show_scale=True
            ),
            basemap=common.MapLayerOptions("default", "Base map"),
            layers=[layer.to_sdk() for layer in layers],
            tooltip=geomap.TooltipOptions(geomap.TooltipMode.DETAILS),
        ),
        defaults,
        tuple(columns((o for t in targets for o in t.select.outputs), looks or {})),
        **frame,
    )
