"""The ways to draw a panel: one function each. A panel of a board is one function in ``panels/`` that calls one of these."""

from __future__ import annotations

from tandem_dashboards.kinds.bars import bar_chart, bar_gauge, histogram
from tandem_dashboards.kinds.charts import time_series
from tandem_dashboards.kinds.figures import stat
from tandem_dashboards.kinds.heat import heat_map
from tandem_dashboards.kinds.maps import Layer, markers, route, world
from tandem_dashboards.kinds.states import state_timeline
from tandem_dashboards.kinds.tables import table
from tandem_dashboards.kinds.words import words

__all__ = [
    "Layer",
    "bar_chart",
    "bar_gauge",
    "heat_map",
    "histogram",
    "markers",
    "route",
    "stat",
    "state_timeline",
    "table",
    "time_series",
    "words",
    "world",
]
