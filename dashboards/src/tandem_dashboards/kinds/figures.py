"""Single figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Unpack

from grafana_foundation_sdk.models import common
from grafana_foundation_sdk.models import stat as options

from tandem_dashboards.influxql import Select
from tandem_dashboards.look import Look, by_name
from tandem_dashboards.panel import Frame, Panel, figure_defaults
from tandem_dashboards.target import Query, lettered

Reduced = Literal["lastNotNull", "last", "mean", "max", "min", "sum", "count", "allValues"]


def reduced(how: Reduced, *, texts: bool = False) -> common.ReduceDataOptions:
    """One figure of each column; ``allValues``: each row's. ``texts``: also of columns that are no numbers."""
    return common.ReduceDataOptions(
        values=how == "allValues",
        calcs=["lastNotNull"] if how == "allValues" else [how],
        fields="/^(?!Time$)/" if texts else "",
    )


def stat(
    title: str,
    description: str,
    *queries: Query | Select,
    of: Reduced = "lastNotNull",
    look: Look | None = None,
    looks: Mapping[str, Look] | None = None,
    texts: bool = False,
    background: bool = False,
    spark: bool = False,
    names: bool = True,
    nothing: str = "–",
    **frame: Unpack[Frame],
) -> Panel:
    """A big figure for each series, in the colour of its grade or state. For "now" the query must be ``recent``. ``nothing``: said
    when there is none.
    ``texts``: columns of text, too. ``names``: the series' names beside the figures. ``spark``: a line below."""
    targets = lettered(queries, "time_series")
    defaults = figure_defaults(targets, look or Look(), graded=True)
    defaults.no_value = nothing
    return Panel(
        "stat",
        title,
        description,
        tuple(targets),
        options.Options(
            graph_mode=common.BigValueGraphMode.AREA if spark else common.BigValueGraphMode.NONE,
            color_mode=common.BigValueColorMode.BACKGROUND_SOLID if background else common.BigValueColorMode.VALUE,
            text_mode=common.BigValueTextMode.VALUE_AND_NAME if names else common.BigValueTextMode.VALUE,
            reduce_options=reduced(of, texts=texts),
        ),
        defaults,
        tuple(by_name(name, its) for name, its in (looks or {}).items()),
        **frame,
    )
