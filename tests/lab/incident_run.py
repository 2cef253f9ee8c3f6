"""A compressed run of the whole kit full of incidents: all that boards show and alarms watch for happens in it, and leaves a real database.

Everything in the database was written by the collector, the gateway, the endpoint and the server's own series. What goes wrong is made
to go wrong where it would in the field: at the modem, the supply, the network, the disk, the clock.
"""

from __future__ import annotations

import math
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from incident_host import Machine, small_disk
from incident_results import IncidentRun
from incident_script import Story
from nmea import NmeaPort, Place

from support.running_kit import running_kit
from tandem_bench.run.programs import Owner
from tandem_bench.scenario import Played, load
from tandem_bench.scenario import play as play_scenario
from tandem_bench.scenario.model import TICK_S
from tandem_bench.scenario.route import lay_out

FILE = Path(__file__).with_name("incidents.toml")
HOME = (51.8979, -8.4706)
DOWN_BIT_PER_S, UP_BIT_PER_S = 14e6, 5e6
"""At most: what counts here is that everything happens, and a machine with two cores has to carry it."""
BUFFER_S = 0.3
SERVICE_LOST_S = 5.0
"""In the tunnel, of the second operator: no cell at all."""

_HEARD = ("rsrp_dbm", "rsrq_db", "sinr_db", "rssi_dbm", "plmn", "tac", "eci", "pci", "earfcn", "band", "rat")

SPOOL_BYTES, PLAN_BYTES, TRACES_DISK = 32_768, 3_000_000, "48m"
SERVER = """
[states]
silent_after_s = 12
radio_after_s = 10
measuring_within_s = 6
unsent_after_s = 12

[series]
every_s = 5

[traces]
folder = "{traces}"
reserve_bytes = 0
"""
MORE = """
[recovery]
after_s = 5
steps = "at,cfun"

[traces]
night = "off"
still_for_s = 0

[campaigns]
ask_every_s = 2

[round_trip]
enabled = true
period_s = 2

[spool]
limit_bytes = {spool}

[position]
mode = "full"
source = "device"
device = "{device}"
"""
PLAN = """
[path.plan]
bytes = {bytes}
"""


def play(folder: Path, influxd: Path) -> IncidentRun:
    """About a hundred seconds."""
    left = IncidentRun(folder / "run")
    with ExitStack() as held, left.span("all"):
        played, places = scene()
        machine = Machine.planted(folder / "machine")
        disk = held.enter_context(small_disk(folder / "traces", TRACES_DISK))
        Owner.of_caller().give(disk.folder)
        port = NmeaPort(places)
        held.callback(port.close)
        more = MORE.format(spool=SPOOL_BYTES, device=port.device)
        servers = SERVER.format(traces=disk.folder)
        played_by = {"scene": played, "around": machine.around, "edited": _edited}
        kit = held.enter_context(running_kit(left.folder, influxd, more=more, server_more=servers, **played_by))
        Story(kit, left, machine, disk).tell()
    for span in left.spans.values():
        span.end_utc_ns = span.end_utc_ns or left.spans["all"].end_utc_ns
    left.write()
    return left


def _edited(config: str) -> str:
    """Runs are asked for, none begins by itself; the second SIM has a plan that is too small."""
    head, middle, tail = config.partition('interface = "wwan1"')
    path, modem, rest = tail.partition("\n[path.modem]")
    plan = PLAN.format(bytes=PLAN_BYTES)
    return (head + middle + path + plan + modem + rest).replace('= "simultaneous"', '= "off"')


def scene() -> tuple[Played, list[Place]]:
    """The commute, with what the operators do in it, and where the probe is each second."""
    scenario = load(FILE)
    played = play_scenario(scenario)
    operators = dict(played.operators)
    for name, timeline in operators.items():
        columns = {column: list(values) for column, values in timeline.columns.items()}
        _capped(columns)
        if name == list(operators)[-1]:
            (tunnel,) = (phase for phase in played.phases if phase["name"] == "tunnel")
            begin = round(tunnel["t_s"] / TICK_S)
            _without_service(columns, begin, begin + round(SERVICE_LOST_S / TICK_S))
        operators[name] = replace(timeline, columns=columns)
    route = lay_out(scenario)
    every = round(1 / TICK_S)
    points = [(float(x), float(y), float(v)) for x, y, v in zip(route.x_m, route.y_m, route.speed_m_s, strict=True)]
    return replace(played, operators=operators), _places(points[::every])


def _capped(columns: dict[str, list[Any]]) -> None:
    for way, most in (("down", DOWN_BIT_PER_S), ("up", UP_BIT_PER_S)):
        columns[f"{way}_bit_per_s"] = [min(rate, int(most)) for rate in columns[f"{way}_bit_per_s"]]
        columns[f"buffer_{way}_bytes"] = [int(most * BUFFER_S / 8)] * len(columns["outage"])


def _without_service(columns: dict[str, list[Any]], begin: int, end: int) -> None:
    for tick in range(begin, end):
        for column in _HEARD:
            columns[column][tick] = None
        columns["registered"][tick], columns["outage"][tick] = False, True
        columns["down_bit_per_s"][tick] = columns["up_bit_per_s"][tick] = 0


def _places(points: list[tuple[float, float, float]]) -> list[Place]:
    places, track = [], 90.0
    for here, there in zip(points, [*points[1:], points[-1]], strict=True):
        east, north = there[0] - here[0], there[1] - here[1]
        if math.hypot(east, north) > 0.1:
            track = math.degrees(math.atan2(east, north)) % 360
        latitude = HOME[0] + here[1] / 111_195
        longitude = HOME[1] + here[0] / 111_195 / math.cos(math.radians(HOME[0]))
        places.append(Place(latitude, longitude, here[2], track))
    return places
