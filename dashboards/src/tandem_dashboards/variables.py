"""What a person chooses at the top of a board. The lists depend on each other: modems of the probes chosen, runs of the time range."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from grafana_foundation_sdk.models import dashboard as sdk

from tandem_dashboards.expressions import Condition, chosen, unequal
from tandem_dashboards.influxql import INTERVAL, QueryError, select, tag_values
from tandem_dashboards.panel import datasource
from tandem_server.schema.rollups import resolution_query

ALL_VALUE = ".*"
"""What All becomes in a query: every value and, in InfluxQL, also points without the tag."""


@dataclass(frozen=True)
class Variable:
    """``query``: InfluxQL. Grafana lists what ``SHOW TAG VALUES`` answers, or every value of every column of a SELECT beside the time; it
    fills in ``$timeFilter`` once only, and no ``$__interval``. ``one``: exactly one value is chosen, and there is no All.
    ``hidden``: not to be chosen by a person."""

    name: str
    label: str
    query: str
    description: str
    one: bool = False
    time_bound: bool = False
    hidden: bool = False
    newest_first: bool = False

    def __post_init__(self) -> None:
        if INTERVAL in self.query or self.query.count("$timeFilter") > 1:
            raise QueryError(f"variable {self.name!r}: $timeFilter at most once, and no windows of {INTERVAL}")

    def to_sdk(self) -> sdk.VariableModel:
        """The SDK's variable."""
        all_of_them = None if self.one else sdk.VariableOption(True, ["All"], ["$__all"])
        return sdk.VariableModel(
            type_val=sdk.VariableType.QUERY,
            name=self.name,
            label=self.label,
            description=self.description,
            datasource=datasource(),
            query=self.query,
            current=all_of_them,
            multi=not self.one,
            include_all=not self.one,
            all_value=None if self.one else ALL_VALUE,
            refresh=sdk.VariableRefresh.ON_TIME_RANGE_CHANGED
            if self.time_bound
            else sdk.VariableRefresh.ON_DASHBOARD_LOAD,
            sort=sdk.VariableSort.DISABLED if self.newest_first else sdk.VariableSort.NATURAL_ASC,
            hide=sdk.VariableHide.HIDE_VARIABLE if self.hidden else sdk.VariableHide.DONT_HIDE,
            regex="",
            options=[],
            # Of interval variables only; the SDK would write them for all.
            auto=None,
            auto_min=None,
            auto_count=None,
        )


def probe(*, one: bool = False) -> Variable:
    """Every probe registered with the server, silent ones too."""
    return Variable("probe", "Probe", tag_values("probe", "expected"), "probes registered with the server", one)


def campaign() -> Variable:
    """Campaigns of the chosen probes. All: also what belongs to none."""
    query = tag_values("campaign", "campaign", [chosen("probe")])
    return Variable("campaign", "Campaign", query, "campaigns of these probes; All: also what belongs to none")


def operator() -> Variable:
    """Operators of the chosen probes' modems. Needs ``probe``."""
    query = tag_values("operator", "modem_health", [chosen("probe")])
    return Variable("operator", "Operator", query, "networks of these probes' modems")


def modem() -> Variable:
    """The variable ``path``: the chosen probes' modems at the chosen operators. Needs ``probe`` and ``operator``."""
    query = tag_values("path", "modem_health", [chosen("probe"), chosen("operator")])
    return Variable("path", "Modem", query, "modems of these probes at these operators")


def run() -> Variable:
    """Runs that began in the time range, of the chosen probes and campaigns, the newest first. Needs ``probe`` and ``campaign``."""
    return _runs("Run", "runs that began in the time range", chosen("campaign"), 500)


def newest_run() -> Variable:
    """The variable ``run``: the chosen probe's newest run in the time range that may use several paths; a board that refreshes itself goes
    on to the next one when it begins. Needs ``probe``."""
    text = "the newest run over several paths, under way or ended; it changes when another begins"
    return _runs("Newest run", text, unequal("kind", "tcp"), 1)


def _runs(label: str, text: str, which: Condition, limit: int) -> Variable:
    began = select("run", "number", of="run_begun", where=[chosen("probe"), which])
    query = select("run", of=began, newest_first=True, limit=limit)
    return Variable("run", label, query.text, text, one=True, time_bound=True, newest_first=True)


def by_range(name: Literal["resolution", "rolled"]) -> Variable:
    """Not to be chosen: the retention policy for the board's time range, for ``policy=RESOLUTION``; for ``ROLLED`` never raw."""
    text = "which roll-up serves the time range"
    return Variable(name, name.capitalize(), resolution_query(name), text, one=True, time_bound=True, hidden=True)
