"""How often what occurred, over time: colours for counts."""

from __future__ import annotations

from typing import Unpack

from grafana_foundation_sdk.models import common, heatmap
from grafana_foundation_sdk.models import dashboard as sdk

from tandem_dashboards.influxql import Select
from tandem_dashboards.look import Look
from tandem_dashboards.panel import Frame, Panel, figure_defaults
from tandem_dashboards.target import Query, lettered


def heat_map(
    title: str,
    description: str,
    *queries: Query | Select,
    counted: bool = False,
    look: Look | None = None,
    **frame: Unpack[Frame],
) -> Panel:
    """Time across, figure up, colour for how many. ``counted``: each series is one row of counts that the database made, named by its
    alias, lowest first; else the browser counts the figures."""
    targets = lettered(queries, "time_series")
    as_counted = figure_defaults(targets, look or Look(), graded=False)
    return Panel(
        "heatmap",
        title,
        description,
        tuple(targets),
        heatmap.Options(
            calculate=not counted,
            calculation=None if counted else common.HeatmapCalculationOptions(),
            color=heatmap.HeatmapColorOptions(
                mode=heatmap.HeatmapColorMode.SCHEME,
                scheme="Viridis",
                fill="dark-blue",
                scale=heatmap.HeatmapColorScale.EXPONENTIAL,
                exponent=0.5,
                steps=64,
            ),
            rows_frame=heatmap.RowsHeatmapOptions(layout=common.HeatmapCellLayout.AUTO) if counted else None,
            filter_values=heatmap.FilterValueRange(le=1e-9),
            cell_gap=1,
            y_axis=heatmap.YAxisConfig(
                unit=None if counted else as_counted.unit, axis_placement=common.AxisPlacement.LEFT
            ),
            legend=heatmap.HeatmapLegend(True),
            tooltip=heatmap.HeatmapTooltip(common.TooltipDisplayMode.SINGLE, y_histogram=False, show_color_scale=True),
            exemplars=heatmap.ExemplarConfig("rgba(255,0,255,0.7)"),
        ),
        sdk.FieldConfig(custom=heatmap.FieldConfig(hide_from=common.HideSeriesConfig())),
        **frame,
    )
