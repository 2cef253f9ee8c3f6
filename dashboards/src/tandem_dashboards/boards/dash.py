"""DASH: what watchers of adaptive video got, by Multipath TCP and over single paths."""

from __future__ import annotations

from tandem_dashboards import variables
from tandem_dashboards.board import Board, Row
from tandem_dashboards.panels import plays


def board() -> Board:
    """The board."""
    return Board(
        uid="tandem-dash",
        title="Tandem: DASH",
        description="Plays of adaptive video: startup delay, rebuffering, switches and representations, by Multipath TCP beside each "
        "operator alone, from an hour to months.",
        variables=(variables.probe(), variables.campaign(), variables.operator(), variables.rolled()),
        rows=(
            Row("Now", (plays.now_playing(), plays.distribution())),
            Row(
                "Multipath TCP against single paths",
                (plays.arms(), plays.startup_by_arm(), plays.stalled_by_arm(), plays.bitrate_by_arm()),
            ),
            Row(
                "Over time",
                (
                    *(plays.startup(), plays.stalled(), plays.bitrate(), plays.switches()),
                    *(plays.score(), plays.how_many(), plays.lowest_buffer(), plays.segment_time()),
                ),
            ),
            Row("Rules, and the latest plays", (plays.rules(), plays.latest())),
        ),
        since="now-24h",
        refresh="1m",
    )
