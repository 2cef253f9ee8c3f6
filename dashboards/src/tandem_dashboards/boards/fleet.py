"""Fleet: the board that people look at all day."""

from __future__ import annotations

from tandem_dashboards import variables
from tandem_dashboards.board import Board, Row
from tandem_dashboards.panels import fleet


def board() -> Board:
    """The board."""
    return Board(
        uid="tandem-fleet",
        title="Tandem: fleet",
        description="Every probe: who is out, who measures, who is silent, and what is wrong. A click on a probe opens it live.",
        variables=(variables.probe(), variables.resolution(), variables.rolled()),
        rows=(
            Row("Now", (fleet.how_many(), fleet.not_at_work(), fleet.probes())),
            Row("Where and when", (fleet.where_they_are(), fleet.states())),
            Row("Over time", (fleet.shares(), fleet.backlog())),
            Row("Data plans", (fleet.plans(),)),
        ),
        since="now-24h",
    )
