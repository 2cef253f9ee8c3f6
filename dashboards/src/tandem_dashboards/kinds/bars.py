"""Figures side by side: gauges, bar charts, histograms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Unpack

from grafana_foundation_sdk.models import barchart, bargauge, common
from grafana_foundation_sdk.models import dashboard as sdk
from grafana_foundation_sdk.models import histogram as histograms

from tandem_dashboards.influxql import Select
from tandem_dashboards.kinds.charts import Legend, legend_options
from tandem_dashboards.kinds.figures import Reduced, reduced
from tandem_dashboards.look import Look, by_name, columns
from tandem_dashboards.panel import Frame, Panel, figure_defaults
from tandem_dashboards.target import Query, lettered


def bar_gauge(
    title: str,
    description: str,
    *queries: Query | Select,
    of: Reduced = "lastNotNull",
    look: Look | None = None,
    looks: Mapping[str, Look] | None = None,
    nothing: str = "–",
    **frame: Unpack[Frame],
) -> Panel:
    """A bar for each series, lying, coloured by the grade. Give ``look`` a ``low`` and a ``high``."""
    targets = lettered(queries, "time_series")
    defaults = figure_defaults(targets, look or Look(), graded=True)
    defaults.no_value = nothing
    return Panel(
        "bargauge",
        title,
        description,
        tuple(targets),
        bargauge.Options(
            display_mode=common.BarGaugeDisplayMode.BASIC,
            value_mode=common.BarGaugeValueMode.COLOR,
            name_placement=common.BarGaugeNamePlacement.LEFT,
            orientation=common.VizOrientation.HORIZONTAL,
            reduce_options=reduced(of),
        ),
        defaults,
        tuple(by_name(name, its) for name, its in (looks or {}).items()),
        **frame,
    )


def bar_chart(
    title: str,
    description: str,
    *queries: Query | Select,
    across: str,
    look: Look | None = None,
    looks: Mapping[str, Look] | None = None,
    stacked: bool = False,
    per_cent: bool = False,
    lying: bool = False,
    legend: Legend = "list",
    **frame: Unpack[Frame],
) -> Panel:
    """A bar for each row of a table; ``across``: the column of names along the axis. ``per_cent``: stacked to 100 %."""
    targets = lettered(queries, "table")
    defaults = figure_defaults(targets, look or Look(), graded=False)
    defaults.color = sdk.FieldColor(sdk.FieldColorModeId.PALETTE_CLASSIC_BY_NAME)
    defaults.custom = barchart.FieldConfig(line_width=0, fill_opacity=80)
    stacking = common.StackingMode.NORMAL if stacked else common.StackingMode.NONE
    return Panel(
        "barchart",
        title,
        description,
        tuple(targets),
        barchart.Options(
            x_field=across,
            orientation=common.VizOrientation.HORIZONTAL if lying else common.VizOrientation.VERTICAL,
            stacking=common.StackingMode.PERCENT if per_cent else stacking,
            show_value=common.VisibilityMode.AUTO,
            legend=legend_options(legend),
            tooltip=common.VizTooltipOptions(common.TooltipDisplayMode.MULTI),
        ),
        defaults,
        tuple(columns((o for t in targets for o in t.select.outputs), looks or {})),
        **frame,
    )


def histogram(
    title: str,
    description: str,
    *queries: Query | Select,
    bucket: int | None = None,
    look: Look | None = None,
    looks: Mapping[str, Look] | None = None,
    **frame: Unpack[Frame],
) -> Panel:
    """How often each figure occurs, counted in the browser; ``bucket``: width of a bar in the figure's unit. For months use counts made in
    the database and ``bar_chart``."""
    targets = lettered(queries, "time_series")
    defaults = figure_defaults(targets, look or Look(), graded=False)
    defaults.color = sdk.FieldColor(sdk.FieldColorModeId.PALETTE_CLASSIC_BY_NAME)
    defaults.custom = histograms.FieldConfig(line_width=1, fill_opacity=60)
    return Panel(
        "histogram",
        title,
        description,
        tuple(targets),
        histograms.Options(
            bucket_size=bucket,
            combine=False,
            legend=legend_options("list"),
            tooltip=common.VizTooltipOptions(common.TooltipDisplayMode.MULTI),
        ),
        defaults,
        tuple(by_name(name, its) for name, its in (looks or {}).items()),
        **frame,
    )
