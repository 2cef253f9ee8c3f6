"""What state something was in, over time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Unpack

from grafana_foundation_sdk.models import common
from grafana_foundation_sdk.models import dashboard as sdk
from grafana_foundation_sdk.models import statetimeline as options

from tandem_dashboards.influxql import Select
from tandem_dashboards.kinds.charts import legend_options
from tandem_dashboards.look import Look, by_name, by_query
from tandem_dashboards.panel import Frame, Panel, figure_defaults, main_shown
from tandem_dashboards.shown import shown
from tandem_dashboards.target import Query, lettered


def state_timeline(
    title: str,
    description: str,
    *queries: Query | Select,
    look: Look | None = None,
    looks: Mapping[str, Look] | None = None,
    values: bool = True,
    legend: bool = False,
    **frame: Unpack[Frame],
) -> Panel:
    """A lane for each series, coloured by the state's meaning in the schema; a number without words is coloured by its grade or, where it
    has none (a cell), by itself on a scale; a text without words by its own. Queries with windows (``every=INTERVAL``) show silence as a
    gap. ``values``: write the state into its stretch."""
    targets = lettered(queries, "time_series")
    defaults = figure_defaults(targets, look or Look(), graded=True)
    main = targets[0].select.outputs[0]
    if main.kind in ("int", "float") and not shown(main).words and not shown(main).steps:
        defaults.color = sdk.FieldColor(sdk.FieldColorModeId.CONTINUOUS_BL_PU)
    elif not main_shown(targets).steps:
        defaults.color = sdk.FieldColor(sdk.FieldColorModeId.PALETTE_CLASSIC_BY_NAME)
    defaults.custom = options.FieldConfig(line_width=0, fill_opacity=80)
    overrides = []
    for target in targets[1:]:
        other = shown(target.select.outputs[0])
        if other != main_shown(targets):
            overrides.append(
                by_query(target.ref, Look(unit=f"grafana:{other.unit}", words=other.words, steps=other.steps or None))
            )
    overrides += [by_name(name, its) for name, its in (looks or {}).items()]
    return Panel(
        "state-timeline",
        title,
        description,
        tuple(targets),
        options.Options(
            show_value=common.VisibilityMode.AUTO if values else common.VisibilityMode.NEVER,
            merge_values=True,
            align_value=common.TimelineValueAlignment.LEFT,
            legend=legend_options("list" if legend else "none"),
            tooltip=common.VizTooltipOptions(common.TooltipDisplayMode.SINGLE),
        ),
        defaults,
        tuple(overrides),
        **frame,
    )
