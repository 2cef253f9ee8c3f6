"""Operators by place: maps and a table of areas (geohashes of six letters, about 1.2 by 0.6 km; larger where positions are coarse)."""

from __future__ import annotations

from tandem.schema import grades
from tandem_dashboards import transform
from tandem_dashboards.conditions import chosen, every, present, some
from tandem_dashboards.influxql import Select, select
from tandem_dashboards.kinds import markers, table, world
from tandem_dashboards.look import Look
from tandem_dashboards.panel import Panel
from tandem_dashboards.panels.coverage import FIGURES, figures_look, rsrp_steps
from tandem_dashboards.vocabulary import ROLLED

WHERE = (chosen("operator"), present("area"))
_WHERE_FROM = (
    " A dot is the middle of an area of about 1.2 by 0.6 km; of about 5 by 5 km, where positions are told coarse. Empty: no "
    "positions in this "
    "time (privacy mode off, home zones, no receiver)."
)


def _areas(*numbers: int, by: tuple[str, ...] = ("area",)) -> tuple[Select, Select]:
    """Of all probes together, or of those chosen: one of the two has rows."""
    figures = [FIGURES[n] for n in numbers]
    together = select(*figures, of="area_day", policy=ROLLED, where=[*WHERE, every("probe")], by=by)
    of_some = [*WHERE, some("probe"), chosen("probe")]
    return together, select(*figures, of="probe_area_day", policy=ROLLED, where=of_some, by=by)


def rsrp_map(width: int = 12) -> Panel:
    """Where how much RSRP arrives, one map an operator."""
    return world(
        "RSRP along the routes, $operator",
        "Mean RSRP of all polls in each area that was passed; red is poor, yellow fair, green good." + _WHERE_FROM,
        *_areas(1, 0),
        layers=[markers("RSRP", geohash="area", colour_by="rsrp", size=8)],
        looks={
            "rsrp": rsrp_steps(),
            "observed": Look("Time observed"),
        },
        repeat="operator",
        transformations=(transform.merged(),),
        width=width,
        height=14,
    )


def goodput_map(width: int = 12) -> Panel:
    """Where how much goodput was reached."""
    scale = grades.scale("run", "goodput_bit_per_s")
    return world(
        "Goodput along the routes",
        "Mean goodput of the TCP downloads in each area, of the chosen operators; red is poor, yellow fair, green good. Areas "
        "without a download are dark." + _WHERE_FROM,
        *_areas(4, 0),
        layers=[markers("Goodput", geohash="area", colour_by="goodput", size=8)],
        looks={
            "goodput": Look("Goodput of TCP, mean", steps=scale.steps if scale else ()),
            "observed": Look("Time observed"),
        },
        transformations=(transform.merged(),),
        width=width,
        height=14,
    )


def table_of_areas(width: int = 12) -> Panel:
    """Every area and operator, the weakest first."""
    return table(
        "Areas",
        "Each operator in each area, the weakest first; what is on the maps, in figures." + _WHERE_FROM,
        *_areas(0, 1, 2, 4, by=("area", "operator")),
        show={"area": Look("Area"), "operator": Look("Operator")}
        | {name: look for name, look in figures_look().items() if name in ("observed", "rsrp", "weak", "goodput")},
        one_of=True,
        sort_by=("rsrp", False),
        width=width,
        height=14,
    )
