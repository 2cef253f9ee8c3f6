"""The provisioned kit as a machine of its own with two modems on USB: what differs from a container, and modems unplugged and replugged."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from targets import at_server, faults, play, provisioned
from targets.ground import PROBE, SERVER
from targets.machine_of import BENCH
from targets.play import Played
from targets.story import Story
from targets.usb_modems import PLACES
from targets.vm_target import VmTarget

from tandem_bench.scenario import load
from tandem_bench.scenario import play as played

VARIABLES: Mapping[str, Any] = {
    "tandem_paths": [
        {"name": path, "operator": path.upper(), "usb": place, "apn": f"web.{path}"} for path, place in PLACES.items()
    ]
}
"""What a user's inventory says of this machine in place of the container's: the collector polls each modem at a port of its own, and
ModemManager, which has another, connects it."""


@dataclass(frozen=True)
class Numbers:
    """What a modem at one place is called now; each of it changes."""

    terminals: tuple[str, ...]
    interface: str
    managed: str
    """ModemManager's object."""


def set_up(story: Story) -> Played:
    """The unchanged playbook's parts that a machine with modems on USB differs in, before it is one: on an emulated processor each of its
    tasks takes seconds. The collector is stopped: one that measures is not replaced by one whose paths are not there yet."""
    story.told(PROBE, "sudo systemctl stop tandem.service")
    inventory = play.inventory(
        story.ground, provisioned.SERVER_VARIABLES, dict(provisioned.KIT_VARIABLES) | dict(VARIABLES)
    )
    return play.play(story.ground, "probe.yml", inventory, "--tags", "modems,collector", log="machine")


_CELLS = at_server.query('SELECT "eci" FROM "radio" GROUP BY "path" ORDER BY time DESC LIMIT 1')
_NUMBERS = """
import glob, json, os, subprocess
def names(place, kind): return sorted(map(os.path.basename, glob.glob(f"/sys/bus/usb/devices/{place}:*/{kind}/*")))
def shown(*argv): return subprocess.run(["mmcli", "-J", *argv], capture_output=True, text=True).stdout or "{}"
managed = {}
for path in json.loads(shown("-L")).get("modem-list", []):
    modem = json.loads(shown("-m", path.rpartition("/")[2])).get("modem")
    if modem: managed[os.path.basename(modem["generic"]["device"])] = path
print(json.dumps({place: [names(place, "tty"), names(place, "net"), managed.get(place)] for place in PLACES}))
"""


def numbers(story: Story) -> dict[str, Numbers]:
    """By path; waits until both are there, for ModemManager too."""
    script = _NUMBERS.replace("PLACES", repr(list(PLACES.values())))
    command = f"sudo python3 - <<'END'\n{script}\nEND"

    def there(said: str) -> bool:
        return all(len(ports) == 2 and net and managed for ports, net, managed in json.loads(said).values())

    told = json.loads(story.awaited("both modems are there, for ModemManager too", PROBE, command, there, 2.0))
    return {path: Numbers(tuple(told[p][0]), told[p][1][0], told[p][2]) for path, p in PLACES.items()}


_BEARERS = """
import json, subprocess
def shown(*argv): return json.loads(subprocess.run(["mmcli", "-J", *argv], capture_output=True, text=True).stdout or "{}")
found = {}
for path in shown("-L").get("modem-list", []):
    modem = shown("-m", path.rpartition("/")[2]).get("modem")
    for bearer in modem["generic"]["bearers"] if modem else []:
        told = shown("-b", bearer.rpartition("/")[2]).get("bearer")
        if told and told["status"]["connected"] == "yes":
            found[modem["generic"]["device"].rpartition("/")[2]] = told["properties"]["apn"]
print(json.dumps(found))
"""


def connected(story: Story) -> None:
    """ModemManager has connected each with its own access point, while the collector polls it by AT."""
    apns = {path["usb"]: path["apn"] for path in VARIABLES["tandem_paths"]}
    command = f"sudo python3 - <<'END'\n{_BEARERS}\nEND"
    story.awaited("both are connected as configured", PROBE, command, lambda said: json.loads(said) == apns, 2.0)
    modems = json.loads(story.told(PROBE, "sudo tandem status --json"))["modems"]
    assert {path: modem["driver"] for path, modem in modems.items()} == dict.fromkeys(PLACES, "ublox"), modems


def plug(story: Story, path: str, wish: str) -> None:
    """``unplug`` or ``plug`` a path's modem, and wait until its ports are gone or there."""
    there = "" if wish == "plug" else "!"
    place = f"/sys/bus/usb/devices/{PLACES[path]}:1.0"
    story.told(
        PROBE,
        f"sudo python3 /{BENCH}/usb_modems.py tell {path} {wish} && until [ {there} -e {place} ]; do sleep 0.2; done",
    )


_MANAGED = "for modem in $(mmcli -L | grep -o '/org[^ ]*'); do mmcli -J -m $modem; done"


def exchanged(story: Story, before: Mapping[str, Numbers]) -> int:
    """Both are pulled out, and the one whose interface has the higher number comes back first; when the last was in again (ns, UTC)."""
    for path in PLACES:
        plug(story, path, "unplug")
    for path in sorted(PLACES, key=lambda path: before[path].interface, reverse=True):
        plug(story, path, "plug")
        # One after the other: on an emulated processor that others use too ModemManager gives up one of two that it looks at together.
        story.awaited(
            f"ModemManager has {path}", PROBE, _MANAGED, lambda said, path=path: f'/{PLACES[path]}"' in said, 2.0
        )
    return time.time_ns()


def measuring(story: Story, since_ns: int) -> None:
    """The server has from each path what its own modem heard after ``since_ns``, and both are up."""
    # The server is asked first: asking the kit's emulated processor takes from what is waited for.
    faults.records(story, since_ns)
    faults.paths_up(story)
    heard = {path: rows[0][1] for path, rows in at_server.by_path(story.told(SERVER, _CELLS)).items()}
    assert {path: eci in cells()[path] for path, eci in heard.items()} == dict.fromkeys(PLACES, True), heard


def on_again(story: Story, target: VmTarget) -> None:
    """Switched on, until it measures."""
    began_ns = time.time_ns()
    target.start()
    target.await_ssh()
    measuring(story, began_ns)


def cells() -> dict[str, set[int]]:
    """By path: the cells of its operator. No two have one in common."""
    operators = played(load("still", duration_s=10.0, seed=1)).operators
    return {path: set(operators[path.upper()].columns["eci"]) for path in PLACES}
