"""Operators: each network as the probes found it, by place and mobility."""

from __future__ import annotations

from tandem_dashboards import variables
from tandem_dashboards.board import Board, Row
from tandem_dashboards.panels import areas, coverage, round_trips


def board() -> Board:
    """The board."""
    return Board(
        uid="tandem-operators",
        title="Tandem: operators",
        description="Each operator as the chosen probes found it: RSRP and goodput as distributions, by mobility state and by area, "
        "and handovers. What the "
        "probes measured outside campaigns counts, too.",
        variables=(variables.probe(), variables.operator(), variables.modem(), variables.rolled()),
        rows=(
            Row("Operators", (coverage.summary(), coverage.rsrp_distribution(), coverage.goodput_distribution())),
            Row(
                "Mobility",
                (
                    coverage.summary("mobility"),
                    coverage.rsrp_distribution("mobility"),
                    coverage.goodput_distribution("mobility"),
                ),
            ),
            Row("Handovers", (coverage.handover_rate(), coverage.handovers_on_the_move())),
            Row("Places", (areas.goodput_map(), areas.table_of_areas(), areas.rsrp_map())),
            Row("Time", (coverage.rsrp_over_time(), round_trips.over_time(), round_trips.unanswered())),
        ),
        since="now-7d",
        refresh="5m",
    )
