"""Campaign: how far each is, whether all of it arrived, and what it cost."""

from __future__ import annotations

from tandem_dashboards import variables
from tandem_dashboards.board import Board, Row
from tandem_dashboards.panels import campaign, completeness


def board() -> Board:
    """The board."""
    return Board(
        uid="tandem-campaign",
        title="Tandem: campaign",
        description="Progress of campaigns by probe and step, completeness from the ledger, and data spent against the budget.",
        variables=(variables.probe(), variables.campaign(), variables.resolution(), variables.rolled()),
        rows=(
            Row("Progress", (campaign.progress(), campaign.steps(), campaign.states())),
            Row("Runs", (campaign.over_time(), campaign.ended())),
            Row("Completeness", (completeness.completeness(), completeness.arrived(), completeness.lacking())),
            Row("Data", (campaign.budgets(), campaign.spent())),
        ),
        since="now-24h",
    )
