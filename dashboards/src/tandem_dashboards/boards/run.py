"""Run: one run from end to end, beside what the radio did meanwhile."""

from __future__ import annotations

from tandem_dashboards import variables
from tandem_dashboards.annotations import Annotation, events
from tandem_dashboards.board import Board, Row
from tandem_dashboards.conditions import chosen
from tandem_dashboards.expressions import tag
from tandem_dashboards.influxql import select, tag_values
from tandem_dashboards.panels import findings, play, radio, run
from tandem_dashboards.vocabulary import RESOLUTION


def board() -> Board:
    """The board."""
    return Board(
        uid="tandem-run",
        title="Tandem: run",
        description="One run from end to end: how it began, its subflows ten times a second, the radio meanwhile, a play of DASH, what "
        "it came to and what it cost. Choose a time range that holds the run.",
        variables=(
            variables.probe(one=True),
            variables.campaign(),
            variables.run(),
            variables.operator(),
            variables.modem(),
            _pair(),
            variables.resolution(),
        ),
        annotations=(
            _begin(),
            _phases(),
            events("Handovers", ["handover"], text="handover_kind", path=True),
            events("Drops", ["signal_drop"], text="change_db", path=True),
            events("Service lost and back", ["service_lost", "service_back"], text=None, path=True),
            events("Paths and subflows", ["path_down", "path_up", "subflow_restored"], text="detail", path=True),
            events("Movement", ["mobility_start", "mobility_stop"], text="detector", on=False),
        ),
        rows=(
            Row("The run", (run.begun(), run.of_the_pair())),
            Row("Subflows", (run.goodput(), run.shares(), run.rtt(), run.window())),
            Row("Connection", (run.connection(), run.retransmitted(), run.alive(), run.cost())),
            Row("Captures", (run.captured(), run.waited(), run.came_again())),
            Row(
                "Radio and events meanwhile",
                (radio.rsrp(12, RESOLUTION), radio.sinr(12, RESOLUTION), radio.cells(24, RESOLUTION), run.events()),
            ),
            Row(
                "Findings and phases", (findings.aggregation(), findings.verdicts(), run.phases(), run.where_it_lies())
            ),
            Row(
                "The play, when it is one of DASH",
                (play.outcome(), play.watched(), play.buffer(), play.representation(), play.segments(), play.share()),
            ),
        ),
        since="now-1h",
    )


def _pair() -> variables.Variable:
    query = tag_values("pair", "run_begun", [chosen("run")])
    return variables.Variable("pair", "Pair", query, "the pair that the run belongs to", one=True, hidden=True)


def _begin() -> Annotation:
    asked = select(tag("experiment"), "paths", of="run_begun", where=[chosen("run")])
    return Annotation("Begin of the run", asked, "experiment", "paths")


def _phases() -> Annotation:
    return Annotation("Phases", select("name", "number", of="phase", where=[chosen("run")]), "name", "number")
