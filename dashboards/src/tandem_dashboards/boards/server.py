"""Server: whether what probes send is taken, and how the server's machine does."""

from __future__ import annotations

from tandem_dashboards import variables
from tandem_dashboards.board import Board, Row
from tandem_dashboards.panels import gateway, machine


def board() -> Board:
    """The board."""
    return Board(
        uid="tandem-server",
        title="Tandem: server",
        description="The gateway, how long records wait for the database, what is rejected and why; machine, disks, and traces.",
        variables=(variables.probe(), variables.resolution(), variables.rolled()),
        rows=(
            Row("Now", (gateway.lines_now(), gateway.acknowledged_now(), machine.answers(), machine.fullest())),
            Row("Rejections", (gateway.rejected(), gateway.lines(), gateway.answers())),
            Row("Acknowledgement", (gateway.acknowledged(), gateway.writes())),
            Row("Requests", (gateway.requests(), gateway.by_probe())),
            Row("Disks", (machine.disks(), machine.free(), machine.held())),
            Row("Machine", (machine.processors(), machine.memory(), gateway.processes(), gateway.at_once())),
            Row("Traces and records", (machine.traces(), machine.traces_stored(), machine.records())),
        ),
        since="now-6h",
    )
