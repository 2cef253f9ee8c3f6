"""A compressed run of the whole kit full of incidents: all that boards show and alarms watch for happens in it, and leaves a real database.

Everything in the database was written by the collector, the gateway, the endpoint and the server's own series. What goes wrong is made
to go wrong where it would in the field: at the modem, the supply, the network, the disk, the clock.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from support.incident_host import Machine, small_disk
from support.incident_results import IncidentRun
from support.incident_scene import scene
from support.incident_script import Story
from support.nmea import NmeaPort
from support.running_kit import kit_on_rig
from tandem_bench.run.programs import Owner

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
        kit = held.enter_context(
            kit_on_rig(
                left.folder,
                influxd,
                more=MORE.format(spool=SPOOL_BYTES, device=port.device),
                scene=played,
                server_more=SERVER.format(traces=disk.folder),
                around=machine.around,
                edited=_edited,
            )
        )
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
