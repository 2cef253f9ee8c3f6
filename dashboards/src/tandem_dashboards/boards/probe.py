"""Probe live: what one probe sees, does and suffers, now and over any time."""

from __future__ import annotations

from tandem_dashboards import variables
from tandem_dashboards.annotations import events
from tandem_dashboards.board import Board, Row
from tandem_dashboards.panels import live, probe_health, radio, round_trips, run
from tandem_dashboards.vocabulary import RESOLUTION


def board() -> Board:
    """The board."""
    return Board(
        uid="tandem-probe",
        title="Tandem: probe live",
        description="One probe: both modems' radio and cells, movement, the run under way with its subflows ten times "
        "a second, and its health.",
        variables=(
            variables.probe(one=True),
            variables.operator(),
            variables.modem(),
            variables.newest_run(),
            variables.resolution(),
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
            Row(
                "Now",
                (live.state(), live.experiment(), live.movement_now(), live.level_now()),
            ),
            Row(
                "Radio",
                (
                    radio.rsrp(24, RESOLUTION),
                    radio.rsrq(12, RESOLUTION),
                    radio.sinr(12, RESOLUTION),
                    radio.cells(24, RESOLUTION),
                    radio.states(24, RESOLUTION),
                    live.movement(),
                ),
            ),
            Row(
                "Round trips",
                (round_trips.times(), round_trips.outcomes(), round_trips.quantiles(), round_trips.best()),
            ),
            Row("The newest run", (run.goodput(12), run.shares(12), live.rtt(12), run.connection(12))),
            Row("Runs", (live.activity(), live.begun(10), live.ended(14))),
            Row(
                "Health",
                (
                    probe_health.modems(),
                    probe_health.supply_and_clock(),
                    probe_health.spool(),
                    probe_health.temperature(),
                    probe_health.disk(),
                    probe_health.plans(),
                    probe_health.carried(),
                ),
            ),
        ),
        since="now-15m",
        refresh="5s",
    )
