"""The boards: one function each, which puts panels of ``panels/`` together, and nothing else; its line in ``BOARDS`` names its file."""

from __future__ import annotations

from collections.abc import Callable

from tandem_dashboards import variables
from tandem_dashboards.board import Annotation, Board, BoardError, Row, events
from tandem_dashboards.expressions import chosen
from tandem_dashboards.influxql import select, tag_values
from tandem_dashboards.panels import campaign, coverage, dash, fleet, pairs, probe, radio, round_trips, run, server

_RESOLUTION, _ROLLED = variables.by_range("resolution"), variables.by_range("rolled")


def campaign_board() -> Board:
    """Campaign: how far each is, whether all of it arrived, and what it cost."""
    return Board(
        uid="tandem-campaign",
        title="Tandem: campaign",
        description="Progress of campaigns by probe and step, completeness from the ledger, and data spent against the budget.",
        variables=(variables.probe(), variables.campaign(), _RESOLUTION, _ROLLED),
        rows=(
            Row("Progress", (campaign.progress(), campaign.steps(), campaign.states())),
            Row("Runs", (campaign.over_time(), campaign.ended())),
            Row("Completeness", (campaign.completeness(), campaign.arrived(), campaign.lacking())),
            Row("Data", (campaign.budgets(), campaign.spent())),
        ),
        since="now-24h",
    )


def dash_board() -> Board:
    """DASH: what watchers of adaptive video got, by Multipath TCP and over single paths."""
    return Board(
        uid="tandem-dash",
        title="Tandem: DASH",
        description="Plays of adaptive video: startup delay, rebuffering, switches and representations, by Multipath TCP beside each "
        "operator alone, from an hour to months.",
        variables=(variables.probe(), variables.campaign(), variables.operator(), _ROLLED),
        rows=(
            Row("Now", (dash.now_playing(), dash.distribution())),
            Row(
                "Multipath TCP against single paths",
                (dash.arms(), dash.startup_by_arm(), dash.stalled_by_arm(), dash.bitrate_by_arm()),
            ),
            Row(
                "Over time",
                (
                    *(dash.startup(), dash.stalled(), dash.bitrate(), dash.switches()),
                    *(dash.score(), dash.how_many(), dash.lowest_buffer(), dash.segment_time()),
                ),
            ),
            Row("Rules, and the latest plays", (dash.rules(), dash.latest())),
        ),
        since="now-24h",
        refresh="1m",
    )


def fleet_board() -> Board:
    """Fleet: the board that people look at all day."""
    return Board(
        uid="tandem-fleet",
        title="Tandem: fleet",
        description="Every probe: who is out, who measures, who is silent, and what is wrong. A click on a probe opens it live.",
        variables=(variables.probe(), _RESOLUTION, _ROLLED),
        rows=(
            Row("Now", (fleet.how_many(), fleet.not_at_work(), fleet.probes())),
            Row("Where and when", (fleet.where_they_are(), fleet.states())),
            Row("Over time", (fleet.shares(), fleet.backlog())),
            Row("Data plans", (fleet.plans(),)),
        ),
        since="now-24h",
    )


def multipath_board() -> Board:
    """Multipath: what two networks give together, against each alone."""
    return Board(
        uid="tandem-multipath",
        title="Tandem: multipath",
        description="What Multipath TCP gives over several networks, against TCP over each alone: goodput, gain, benefit, "
        "disjointivity, how the paths are used, and what each operator does to it.",
        variables=(variables.probe(), variables.campaign(), variables.operator(), _RESOLUTION, _ROLLED),
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
            Row("Paths", (pairs.verdicts(), pairs.verdict_counts(), pairs.shares())),
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


def operators_board() -> Board:
    """Operators: each network as the probes found it, by place and mobility."""
    return Board(
        uid="tandem-operators",
        title="Tandem: operators",
        description="Each operator as the chosen probes found it: RSRP and goodput as distributions, by mobility state and by area, "
        "and handovers. What the probes measured outside campaigns counts, too.",
        variables=(variables.probe(), variables.operator(), variables.modem(), _ROLLED),
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
            Row("Places", (coverage.goodput_map(), coverage.table_of_areas(), coverage.rsrp_map())),
            Row("Time", (coverage.rsrp_over_time(), round_trips.over_time(), round_trips.unanswered())),
        ),
        since="now-7d",
        refresh="5m",
    )


def probe_board() -> Board:
    """Probe live: what one probe sees, does and suffers, now and over any time."""
    return Board(
        uid="tandem-probe",
        title="Tandem: probe live",
        description="One probe: both modems' radio and cells, movement, the run under way with its subflows ten times a second, and "
        "its health.",
        variables=(
            variables.probe(one=True),
            variables.operator(),
            variables.modem(),
            variables.newest_run(),
            _RESOLUTION,
        ),
        annotations=(
            events("Handovers", ["handover"], text="handover_kind", path=True),
            events("Drops", ["signal_drop"], text="change_db", path=True, on=False),
            events(
                "Service and modems", ["service_lost", "service_back", "modem_lost", "modem_back"], text=None, path=True
            ),
            events("Recovery and paths", ["recovery_step", "recovered", "path_down", "path_up"], text=None, path=True),
            events(
                "Health", ["undervoltage", "throttled", "disk_low", "plan_over", "card_worn", "clock_step"], text=None
            ),
            events("Collector", ["collector_start", "collector_stop"], text=None),
            events("Movement", ["mobility_start", "mobility_stop"], text="detector"),
        ),
        rows=(
            Row("Now", (probe.state(), probe.experiment(), probe.movement_now(), probe.level_now())),
            Row("Radio", (radio.rsrp(24), radio.rsrq(), radio.sinr(), radio.cells(), radio.states(), probe.movement())),
            Row(
                "Round trips",
                (round_trips.times(), round_trips.outcomes(), round_trips.quantiles(), round_trips.best()),
            ),
            Row("The newest run", (run.goodput(), run.shares(), probe.rtt(), run.connection())),
            Row("Runs", (probe.activity(), probe.begun(), probe.ended())),
            Row(
                "Health",
                (
                    probe.modems(),
                    probe.supply_and_clock(),
                    probe.spool(),
                    probe.temperature(),
                    probe.disk(),
                    probe.plans(),
                    probe.carried(),
                ),
            ),
        ),
        since="now-15m",
        refresh="5s",
    )


def radio_board() -> Board:
    """Radio: what the modems see, for any probes and time. Also the example of a board."""
    return Board(
        uid="tandem-radio",
        title="Tandem: radio",
        description="What the modems of the chosen probes see: strength and state over time, with handovers and drops as marks.",
        variables=(variables.probe(), variables.operator(), variables.modem(), _RESOLUTION),
        annotations=(
            events("Handovers", ["handover"], text="handover_kind", path=True),
            events("Drops", ["signal_drop"], text="change_db", path=True),
        ),
        rows=(Row("Radio", (radio.rsrp(24), radio.states())),),
        since="now-1h",
    )


def run_board() -> Board:
    """Run: one run from end to end, beside what the radio did meanwhile."""
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
            _RESOLUTION,
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
            Row("Radio and events meanwhile", (radio.rsrp(), radio.sinr(), radio.cells(), run.events())),
            Row("Findings and phases", (run.aggregation(), run.verdicts(), run.phases(), run.where_it_lies())),
            Row(
                "The play, when it is one of DASH",
                (dash.outcome(), dash.watched(), dash.buffer(), dash.representation(), dash.segments(), dash.share()),
            ),
        ),
        since="now-1h",
    )


def _pair() -> variables.Variable:
    query = tag_values("pair", "run_begun", [chosen("run")])
    return variables.Variable("pair", "Pair", query, "the pair that the run belongs to", one=True, hidden=True)


def _begin() -> Annotation:
    query = select("experiment", "paths", of="run_begun", where=[chosen("run")])
    return Annotation("Begin of the run", query, "experiment", "paths")


def _phases() -> Annotation:
    return Annotation("Phases", select("name", "number", of="phase", where=[chosen("run")]), "name", "number")


def server_board() -> Board:
    """Server: whether what probes send is taken, and how the server's machine does."""
    return Board(
        uid="tandem-server",
        title="Tandem: server",
        description="The gateway, how long records wait for the database, what is rejected and why; machine, disks, and traces.",
        variables=(variables.probe(), _RESOLUTION, _ROLLED),
        rows=(
            Row("Now", (server.lines_now(), server.acknowledged_now(), server.database_answer(), server.fullest())),
            Row("Rejections", (server.rejected(), server.lines(), server.answers())),
            Row("Acknowledgement", (server.acknowledged(), server.writes())),
            Row("Requests", (server.requests(), server.by_probe())),
            Row("Disks", (server.disks(), server.free(), server.held())),
            Row("Machine", (server.processors(), server.memory(), server.processes(), server.at_once())),
            Row("Traces and records", (server.traces(), server.traces_stored(), server.records())),
        ),
        since="now-6h",
    )


BOARDS: dict[str, Callable[[], Board]] = {
    "campaign": campaign_board,
    "dash": dash_board,
    "fleet": fleet_board,
    "multipath": multipath_board,
    "operators": operators_board,
    "probe": probe_board,
    "radio": radio_board,
    "run": run_board,
    "server": server_board,
}
"""By name, sorted: a board's file is ``generated/NAME.json``, its uid ``tandem-NAME``."""


def load(name: str) -> Board:
    """The board ``name``; BoardError when there is none, or its uid is not its name's."""
    if name not in BOARDS:
        raise BoardError(f"there is no board {name!r}; there are {', '.join(BOARDS)}")
    board = BOARDS[name]()
    if board.uid != f"tandem-{name}":
        raise BoardError(f"board {name!r}: its uid is {board.uid!r} and must be 'tandem-{name}'")
    return board
