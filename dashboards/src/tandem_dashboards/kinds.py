"""The ways to draw a panel: one function each. A panel of a board is one function in ``panels/`` that calls one of these.

Everywhere ``override`` changes the panel as a whole, and ``overrides`` a series or column by name or ``/regexp/``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Unpack

from grafana_foundation_sdk.models import barchart, bargauge, common, geomap, statetimeline, timeseries
from grafana_foundation_sdk.models import dashboard as sdk
from grafana_foundation_sdk.models import histogram as histograms
from grafana_foundation_sdk.models import stat as stats
from grafana_foundation_sdk.models import table as tables
from grafana_foundation_sdk.models import text as texts_of

from tandem_dashboards.expressions import Condition
from tandem_dashboards.field_config import field_config
from tandem_dashboards.influxql import Output, Select, select
from tandem_dashboards.overrides import Override, by_name, by_query, columns
from tandem_dashboards.panel import (
    Frame,
    Panel,
    PanelError,
    Query,
    defaults_of,
    joined,
    lettered,
    main_config,
    merged,
    only,
)

Overrides = Mapping[str, Override]
_Made = list[sdk.DashboardFieldConfigSourceOverrides]
NOTHING = "–"
"""Shown when there is no figure."""


def time_series(
    title: str,
    description: str,
    *queries: Query | Select,
    override: Override | None = None,
    overrides: Overrides | None = None,
    style: Literal["line", "bars", "points", "steps"] = "line",
    stacked: bool | Literal["shares"] = False,
    gap_ms: int | None = None,
    fill: int = 0,
    grades: Literal["none", "lines", "areas"] = "none",
    sums: tuple[str, ...] = (),
    logarithmic: bool = False,
    **frame: Unpack[Frame],
) -> Panel:
    """A chart over time. Unit and usual range are those of the first query's figure; a later query with another unit goes on the right
    axis. ``grades``: the schema's limits as lines or as coloured areas. ``sums``: Grafana's reducers (``mean``, ``max``,
    ``lastNotNull``), for which the legend is a table. A null is a gap and stays one; ``gap_ms``: so are points farther apart (for
    queries without windows, whose answers have no nulls). ``stacked``: on one another; ``"shares"``: each as its part of all at that
    instant."""
    targets = lettered(queries, "time_series")
    main, override = main_config(targets), override or Override()
    defaults = defaults_of(targets, override, graded=grades != "none")
    defaults.color = sdk.FieldColor(sdk.FieldColorModeId.PALETTE_CLASSIC_BY_NAME)
    soft = override.low is None and override.high is None
    defaults.custom = common.GraphFieldConfig(
        draw_style=common.GraphDrawStyle(style if style in ("bars", "points") else "line"),
        line_interpolation=common.LineInterpolation.STEP_AFTER if style == "steps" else common.LineInterpolation.LINEAR,
        line_width=1,
        fill_opacity=fill or (60 if style == "bars" else 0),
        show_points=common.VisibilityMode.ALWAYS if style == "points" else common.VisibilityMode.AUTO,
        point_size=4,
        span_nulls=False,
        insert_nulls=gap_ms,
        axis_soft_min=main.low if soft else None,
        axis_soft_max=main.high if soft else None,
        stacking=common.StackingConfig(_STACKING[stacked], "A" if stacked else None),
        scale_distribution=common.ScaleDistributionConfig(common.ScaleDistribution.LOG, 10) if logarithmic else None,
        thresholds_style=common.GraphThresholdsStyleConfig(_GRADES[grades]),
    )
    made: _Made = []
    for target in targets[1:]:
        other = field_config(target.select.outputs[0])
        if other.unit != main.unit and override.unit is None:
            made.append(by_query(target.ref, Override(unit=f"grafana:{other.unit}", axis="right")))
    options = timeseries.Options(legend=_legend(sums), tooltip=_tooltip())
    return Panel("timeseries", title, description, targets, options, defaults, _named(overrides, made), **frame)


_STACKING = {False: common.StackingMode.NONE, True: common.StackingMode.NORMAL, "shares": common.StackingMode.PERCENT}
_GRADES = {
    "none": common.GraphThresholdsStyleMode.OFF,
    "lines": common.GraphThresholdsStyleMode.DASHED,
    "areas": common.GraphThresholdsStyleMode.AREA,
}


def _legend(sums: tuple[str, ...] = (), *, hidden: bool = False) -> common.VizLegendOptions:
    """Below the chart; as a table when figures stand in it."""
    modes = common.LegendDisplayMode
    mode = modes.HIDDEN if hidden else modes.TABLE if sums else modes.LIST
    return common.VizLegendOptions(mode, common.LegendPlacement.BOTTOM, show_legend=not hidden, calcs=list(sums))


def _tooltip(mode: common.TooltipDisplayMode = common.TooltipDisplayMode.MULTI) -> common.VizTooltipOptions:
    return common.VizTooltipOptions(mode)


def _named(
    overrides: Overrides | None, before: _Made | None = None
) -> tuple[sdk.DashboardFieldConfigSourceOverrides, ...]:
    return (*(before or ()), *(by_name(name, its) for name, its in (overrides or {}).items()))


def _of_columns(
    queries: Sequence[Query], overrides: Overrides | None
) -> tuple[sdk.DashboardFieldConfigSourceOverrides, ...]:
    return tuple(columns((o for query in queries for o in query.select.outputs), overrides or {}))


def _reduced(*, texts: bool = False) -> common.ReduceDataOptions:
    """The newest of each column. ``texts``: also of columns that are no numbers."""
    return common.ReduceDataOptions(values=False, calcs=["lastNotNull"], fields="/^(?!Time$)/" if texts else "")


def stat(
    title: str,
    description: str,
    *queries: Query | Select,
    override: Override | None = None,
    overrides: Overrides | None = None,
    texts: bool = False,
    background: bool = False,
    names: bool = True,
    **frame: Unpack[Frame],
) -> Panel:
    """A big figure for each series, in the colour of its grade or state. For "now" the query must be ``recent``. ``texts``: columns of
    text, too. ``names``: the series' names beside the figures."""
    targets = lettered(queries, "time_series")
    defaults = defaults_of(targets, override, graded=True)
    defaults.no_value = NOTHING
    options = stats.Options(
        graph_mode=common.BigValueGraphMode.NONE,
        color_mode=common.BigValueColorMode.BACKGROUND_SOLID if background else common.BigValueColorMode.VALUE,
        text_mode=common.BigValueTextMode.VALUE_AND_NAME if names else common.BigValueTextMode.VALUE,
        reduce_options=_reduced(texts=texts),
    )
    return Panel("stat", title, description, targets, options, defaults, _named(overrides), **frame)


def bar_gauge(
    title: str, description: str, *queries: Query | Select, override: Override, **frame: Unpack[Frame]
) -> Panel:
    """A bar for each series, lying, coloured by the grade. ``override`` has a ``low`` and perhaps a ``high``."""
    targets = lettered(queries, "time_series")
    defaults = defaults_of(targets, override, graded=True)
    defaults.no_value = NOTHING
    options = bargauge.Options(
        display_mode=common.BarGaugeDisplayMode.BASIC,
        value_mode=common.BarGaugeValueMode.COLOR,
        name_placement=common.BarGaugeNamePlacement.LEFT,
        orientation=common.VizOrientation.HORIZONTAL,
        reduce_options=_reduced(),
    )
    return Panel("bargauge", title, description, targets, options, defaults, **frame)


def bar_chart(
    title: str,
    description: str,
    *queries: Query | Select,
    across: str,
    override: Override | None = None,
    overrides: Overrides | None = None,
    shares: bool = False,
    **frame: Unpack[Frame],
) -> Panel:
    """A bar for each row of a table; ``across``: the column of names along the axis. ``shares``: bars lie, stacked to 100 %."""
    targets = lettered(queries, "table")
    defaults = defaults_of(targets, override, graded=False)
    defaults.custom = barchart.FieldConfig(line_width=0, fill_opacity=80)
    options = barchart.Options(
        x_field=across,
        orientation=common.VizOrientation.HORIZONTAL if shares else common.VizOrientation.VERTICAL,
        stacking=common.StackingMode.PERCENT if shares else common.StackingMode.NONE,
        show_value=common.VisibilityMode.AUTO,
        legend=_legend(),
        tooltip=_tooltip(),
    )
    return Panel("barchart", title, description, targets, options, defaults, _of_columns(targets, overrides), **frame)


def histogram(title: str, description: str, *queries: Query | Select, **frame: Unpack[Frame]) -> Panel:
    """How often each figure occurs, counted in the browser. For months use counts made in the database and ``bar_chart``."""
    targets = lettered(queries, "time_series")
    defaults = defaults_of(targets, None, graded=False)
    defaults.custom = histograms.FieldConfig(line_width=1, fill_opacity=60)
    options = histograms.Options(combine=False, legend=_legend(), tooltip=_tooltip())
    return Panel("histogram", title, description, targets, options, defaults, **frame)


def state_timeline(
    title: str,
    description: str,
    *queries: Query | Select,
    override: Override | None = None,
    values: bool = True,
    legend: bool = False,
    **frame: Unpack[Frame],
) -> Panel:
    """A lane for each series, coloured by the state's meaning in the schema; a number without words is coloured by its grade or, where it
    has none (a cell), by itself on a scale; a text without words by its own. Queries with windows (``every=INTERVAL``) show silence as a
    gap. ``values``: write the state into its stretch."""
    targets = lettered(queries, "time_series")
    defaults = defaults_of(targets, override, graded=True)
    first, main = targets[0].select.outputs[0], main_config(targets)
    as_is = field_config(first)
    if first.kind in ("int", "float") and not as_is.words and not as_is.steps:
        defaults.color = sdk.FieldColor(sdk.FieldColorModeId.CONTINUOUS_BL_PU)
    elif not main.steps:
        defaults.color = sdk.FieldColor(sdk.FieldColorModeId.PALETTE_CLASSIC_BY_NAME)
    defaults.custom = statetimeline.FieldConfig(line_width=0, fill_opacity=80)
    made: _Made = []
    for target in targets[1:]:
        other = field_config(target.select.outputs[0])
        if other != main:
            its = Override(unit=f"grafana:{other.unit}", words=other.words, steps=other.steps or None)
            made.append(by_query(target.ref, its))
    options = statetimeline.Options(
        show_value=common.VisibilityMode.AUTO if values else common.VisibilityMode.NEVER,
        merge_values=True,
        align_value=common.TimelineValueAlignment.LEFT,
        legend=_legend(hidden=not legend),
        tooltip=_tooltip(common.TooltipDisplayMode.SINGLE),
    )
    return Panel("state-timeline", title, description, targets, options, defaults, tuple(made), **frame)


def table(
    title: str,
    description: str,
    *queries: Query | Select,
    show: Overrides,
    joined_by: str | None = None,
    one_of: bool = False,
    sort_by: tuple[str, bool] | None = None,
    footer: bool = False,
    **frame: Unpack[Frame],
) -> Panel:
    """``show``: the columns in their order, by the query's names (``Time``, a tag, a column), each with what differs from the schema
    (``Override()`` when nothing); no others are shown. Several queries need ``joined_by``: the tag that rows are joined by; or ``one_of``:
    only one of them has rows at a time. ``sort_by``: a column, and whether from the greatest down. Units, words and colours follow from
    the schema."""
    targets = lettered(queries, "table")
    if len(targets) > 1 and joined_by is None and not one_of:
        raise PanelError(f"table {title!r}: several queries need joined_by")
    if len(targets) > 1 and "Time" in show:
        raise PanelError(f"table {title!r}: a join renames the times (Time 1, Time 2 …): select one as a column")
    outputs = _outputs(targets[:1] if one_of else targets, joined_by, title)
    known = {"Time", *(o.name for o in outputs)}
    own = frame.get("transformations", ())
    missing = [name for name in show if name not in known]
    if missing and not own:
        raise PanelError(
            f"table {title!r}: no query has the column {missing[0]!r}; they have {', '.join(sorted(known))}"
        )
    steps = [joined(joined_by)] if joined_by else [merged()] if one_of else []
    frame["transformations"] = (*steps, *own, *only(list(show)))
    made = columns((o for o in outputs if o.name in show), show)
    sorting = [common.TableSortByFieldState(_title(made, show, sort_by[0]), sort_by[1])] if sort_by else None
    options = tables.Options(
        show_header=True,
        sort_by=sorting,
        footer=common.TableFooterOptions(show=footer, reducer=["sum"], count_rows=False),
        cell_height=common.TableCellHeight.SM,
    )
    defaults = sdk.FieldConfig(no_value=NOTHING, custom=common.TableFieldOptions(inspect=False, filterable=True))
    return Panel("table", title, description, targets, options, defaults, tuple(made), **frame)


def listing(
    title: str,
    description: str,
    *,
    of: str,
    where: Sequence[Condition],
    show: Overrides,
    newest_first: bool = False,
    limit: int | None = None,
    sort_by: tuple[str, bool] | None = None,
    footer: bool = False,
    **frame: Unpack[Frame],
) -> Panel:
    """A ``table`` of records as they are: what is shown, tags and fields, is what is asked."""
    asked = [name for name in show if name != "Time"]
    query = select(*asked, of=of, where=where, newest_first=newest_first, limit=limit)
    return table(title, description, query, show=show, sort_by=sort_by, footer=footer, **frame)


def _outputs(targets: Sequence[Query], joined_by: str | None, title: str) -> list[Output]:
    found: dict[str, Output] = {}
    for target in targets:
        tags = [Output(tag, target.select.measurement, None, "") for tag in target.select.grouped]
        for output in (*tags, *target.select.outputs):
            if output.name in found and len(targets) > 1 and output.name != joined_by:
                raise PanelError(
                    f"table {title!r}: two queries have a column {output.name!r}, which the join would rename: give one another name"
                )
            found.setdefault(output.name, output)
    return list(found.values())


def _title(made: _Made, show: Overrides, name: str) -> str:
    """What is above the column ``name``: Grafana sorts by that."""
    if name in show and show[name].title:
        return str(show[name].title)
    properties = (prop for override in made if override.matcher.options == name for prop in override.properties)
    return next((str(prop.value) for prop in properties if prop.id_val == "displayName"), name)


def markers(
    name: str,
    *,
    latitude: str | None = None,
    longitude: str | None = None,
    geohash: str | None = None,
    colour_by: str | None = None,
    text: str | None = None,
    size: int = 7,
) -> common.MapLayerOptions:
    """A layer of a map: a dot for each row, at two columns of degrees, or at the middle of an area (``geohash``). ``colour_by``: the column
    whose grade or state colours it; ``text``: the column beside it."""
    if geohash:
        location = common.FrameGeometrySource(common.FrameGeometrySourceMode.GEOHASH, geohash=geohash)
    else:
        location = common.FrameGeometrySource(
            common.FrameGeometrySourceMode.COORDS, latitude=latitude, longitude=longitude
        )
    style: dict[str, object] = {
        "color": {"fixed": "#5794F2"} if colour_by is None else {"field": colour_by, "fixed": "#8E8E8E"},
        "opacity": 0.8,
        "size": {"fixed": size, "min": 2, "max": 15},
        "symbol": {"mode": "fixed", "fixed": "img/icons/marker/circle.svg"},
        "lineWidth": 3,
    }
    if text is not None:
        above = {"offsetX": 0, "offsetY": -12, "textAlign": "center", "textBaseline": "middle"}
        style |= {"text": {"mode": "field", "field": text, "fixed": ""}, "textConfig": {"fontSize": 12, **above}}
    config = {"style": style, "showLegend": colour_by is not None}
    return common.MapLayerOptions("markers", name, config, location, None, tooltip=True)


def world(
    title: str,
    description: str,
    *queries: Query | Select,
    layers: Sequence[common.MapLayerOptions],
    overrides: Overrides | None = None,
    **frame: Unpack[Frame],
) -> Panel:
    """A map that shows all that ``layers`` have. The background comes from Grafana's default base map, fetched by the reader's browser."""
    targets = lettered(queries, "table")
    options = geomap.Options(
        view=geomap.MapViewConfig(id_val="fit", lat=0, lon=0, zoom=15, padding=8, all_layers=True),
        controls=geomap.ControlsOptions(show_zoom=True, mouse_wheel_zoom=True, show_attribution=True, show_scale=True),
        basemap=common.MapLayerOptions("default", "Base map"),
        layers=list(layers),
        tooltip=geomap.TooltipOptions(geomap.TooltipMode.DETAILS),
    )
    defaults = defaults_of(targets, None, graded=True)
    return Panel("geomap", title, description, targets, options, defaults, _of_columns(targets, overrides), **frame)


def words(title: str, markdown: str, **frame: Unpack[Frame]) -> Panel:
    """A few lines of Markdown."""
    options = texts_of.Options(texts_of.TextMode.MARKDOWN, content=markdown)
    return Panel("text", title, "", (), options, sdk.FieldConfig(), **frame)
