"""Multipath: what two networks give together, against each alone."""

from __future__ import annotations

from tandem_dashboards import variables
from tandem_dashboards.board import Board, Row
from tandem_dashboards.panels import pairs


def board() -> Board:
    """The board."""
    return Board(
        uid="tandem-multipath",
        title="Tandem: multipath",
        description="What Multipath TCP gives over several networks, against TCP over each alone: goodput, gain, benefit, "
        "disjointivity, how the paths are used, "
        "and what each operator does to it.",
        variables=(
            variables.probe(),
            variables.campaign(),
            variables.operator(),
            variables.resolution(),
            variables.rolled(),
        ),
        rows=(
            Row(
                "Against the single paths",
                (
                    pairs.goodputs(),
                    pairs.summary(),
                    pairs.summary("mobility"),
                    pairs.goodput_by_mobility(),
                    pairs.shares_by_mobility(),
                ),
            ),
            Row("Benefit", (pairs.benefit_over_time(), pairs.disjointivity())),
            Row("Paths", (pairs.verdicts(), pairs.verdict_counts(), pairs.shares(24))),
            Row("Captures", (pairs.recoveries(), pairs.reordering(), pairs.came_again())),
            Row(
                "Captures, second by second",
                (pairs.recoveries_by_second(), pairs.reordering_by_second(), pairs.came_again_by_second()),
            ),
            Row("Pairs", (pairs.newest(),)),
        ),
        since="now-7d",
        refresh="5m",
    )
