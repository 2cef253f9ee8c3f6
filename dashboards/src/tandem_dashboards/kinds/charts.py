"""Lines, bars or points over time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Unpack

from grafana_foundation_sdk.models import common
from grafana_foundation_sdk.models import dashboard as sdk
from grafana_foundation_sdk.models import timeseries as options

from tandem_dashboards.influxql import Select
from tandem_dashboards.look import Look, by_name, by_query
from tandem_dashboards.panel import Frame, Panel, figure_defaults, main_shown
from tandem_dashboards.shown import shown
from tandem_dashboards.target import Query, lettered

Legend = Literal["list", "table", "none"]


def time_series(
    title: str,
    description: str,
    *queries: Query | Select,
    look: Look | None = None,
    looks: Mapping[str, Look] | None = None,
    style: Literal["line", "bars", "points", "steps"] = "line",
    stacked: bool | Literal["shares"] = False,
    gap_ms: int | None = None,
    fill: int = 0,
    grades: Literal["none", "lines", "areas"] = "none",
    legend: Legend = "list",
    sums: tuple[str, ...] = (),
    logarithmic: bool = False,
    **frame: Unpack[Frame],
) -> Panel:
    """A chart over time. Unit and usual range are those of the first query's figure; a later query with another unit goes on the right
    axis. ``look`` changes the panel as a whole, ``looks`` a series by name or ``/regexp/``. ``grades``: the schema's limits as lines or as
    coloured areas. ``sums``: Grafana's reducers in the legend (``mean``, ``max``, ``lastNotNull``). A null is a gap and stays one;
    ``gap_ms``: so are points farther apart (for queries without windows, whose answers have no nulls). ``stacked``: on one another;
    ``"shares"``: each as its part of all at that instant."""
    targets = lettered(queries, "time_series")
    main = main_shown(targets)
    look = look or Look()
    defaults = figure_defaults(targets, look, graded=grades != "none")
    defaults.color = sdk.FieldColor(sdk.FieldColorModeId.PALETTE_CLASSIC_BY_NAME)
    narrowed = look.low is None and look.high is None
    defaults.custom = common.GraphFieldConfig(
        draw_style={"bars": common.GraphDrawStyle.BARS, "points": common.GraphDrawStyle.POINTS}.get(
            style, common.GraphDrawStyle.LINE
        ),
        line_interpolation=common.LineInterpolation.STEP_AFTER if style == "steps" else common.LineInterpolation.LINEAR,
        line_width=1,
        fill_opacity=fill or (60 if style == "bars" else 0),
        show_points=common.VisibilityMode.ALWAYS if style == "points" else common.VisibilityMode.AUTO,
        point_size=4,
        span_nulls=False,
        insert_nulls=gap_ms,
        axis_soft_min=main.low if narrowed else None,
        axis_soft_max=main.high if narrowed else None,
        stacking=common.StackingConfig(
            {False: common.StackingMode.NONE, True: common.StackingMode.NORMAL, "shares": common.StackingMode.PERCENT}[
                stacked
            ],
            "A" if stacked else None,
        ),
        scale_distribution=common.ScaleDistributionConfig(common.ScaleDistribution.LOG, 10) if logarithmic else None,
        thresholds_style=common.GraphThresholdsStyleConfig(
            {
                "none": common.GraphThresholdsStyleMode.OFF,
                "lines": common.GraphThresholdsStyleMode.DASHED,
                "areas": common.GraphThresholdsStyleMode.AREA,
            }[grades]
        ),
    )
    overrides = []
    for target in targets[1:]:
        other = shown(target.select.outputs[0])
        if other.unit != main.unit and look.unit is None:
            overrides.append(by_query(target.ref, Look(unit=f"grafana:{other.unit}", axis="right")))
    overrides += [by_name(name, its) for name, its in (looks or {}).items()]
    return Panel(
        "timeseries",
        title,
        description,
        tuple(targets),
        options.Options(
            legend=legend_options(legend, sums), tooltip=common.VizTooltipOptions(common.TooltipDisplayMode.MULTI)
        ),
        defaults,
        tuple(overrides),
        **frame,
    )


def legend_options(legend: Legend, sums: tuple[str, ...] = ()) -> common.VizLegendOptions:
    """Below the chart; as a table when figures stand in it."""
    mode = {
        "list": common.LegendDisplayMode.LIST,
        "table": common.LegendDisplayMode.TABLE,
        "none": common.LegendDisplayMode.HIDDEN,
    }[legend]
    return common.VizLegendOptions(mode, common.LegendPlacement.BOTTOM, show_legend=legend != "none", calcs=list(sums))
