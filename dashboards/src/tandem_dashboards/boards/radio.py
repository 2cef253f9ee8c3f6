"""Radio: what the modems see, for any probes and time. Also the example of a board."""

from __future__ import annotations

from tandem_dashboards import variables
from tandem_dashboards.annotations import events
from tandem_dashboards.board import Board, Row
from tandem_dashboards.panels import radio
from tandem_dashboards.vocabulary import RESOLUTION


def board() -> Board:
    """The board."""
    return Board(
        uid="tandem-radio",
        title="Tandem: radio",
        description="What the modems of the chosen probes see: strength and state over time, with handovers and drops as marks.",
        variables=(variables.probe(), variables.operator(), variables.modem(), variables.resolution()),
        annotations=(
            events("Handovers", ["handover"], text="handover_kind", path=True),
            events("Drops", ["signal_drop"], text="change_db", path=True),
        ),
        rows=(Row("Radio", (radio.rsrp(width=24, policy=RESOLUTION), radio.states(policy=RESOLUTION))),),
        since="now-1h",
    )
