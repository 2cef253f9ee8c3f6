"""What befalls a provisioned kit, and when it measures again without hands: both paths up, and newer records of both at the server."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager

from targets.at_server import LEVELS, by_path
from targets.ground import OPERATORS, PROBE, SERVER
from targets.modems import MODEMS
from targets.story import Story

PATHS = set(MODEMS)
HUB = "10.87.0.1"
_PROCESS = "systemctl show --property=MainPID --value tandem.service"
_STATUS = "sudo tandem status --json"


def process(story: Story) -> int:
    return int(story.told(PROBE, _PROCESS))


def signalled(story: Story, signal: str) -> None:
    """The collector's process gets a signal that it cannot refuse."""
    story.told(PROBE, f"sudo systemctl kill --kill-whom=main --signal={signal} tandem.service")


def server_moved(story: Story, there: str) -> None:
    """``there`` is the server's public address from now on, and its name says so."""
    here = story.ground.names.read_text().split()[0]
    story.told(
        SERVER,
        f"sudo ip address del {here}/24 dev eth0 && sudo ip address add {there}/24 dev eth0"
        f" && sudo ip route replace default via {OPERATORS} dev eth0",
    )
    story.ground.name_server(there)


def records(story: Story, since_ns: int) -> None:
    """Radio of both paths that was polled after ``since_ns`` (UTC) is in the server's database."""

    def newer(said: str) -> bool:
        return {path for path, rows in by_path(said).items() if rows[0][0] > since_ns} == PATHS

    story.awaited("newer records of both modems", SERVER, LEVELS, newer, 1.0)


def paths_up(story: Story) -> None:
    def up(said: str) -> bool:
        paths = json.loads(said)["paths"]
        return {name for name, path in paths.items() if path["state"] == "up"} == PATHS

    story.awaited("both paths are up", PROBE, _STATUS, up, 1.0)


def through_tunnel(story: Story) -> None:
    """The hub answers the kit through the tunnel."""
    story.awaited("the hub answers through the tunnel", PROBE, f"ping -c 1 -W 2 {HUB}", bool, 1.0)


@contextmanager
def another_process(story: Story) -> Iterator[None]:
    """What is done inside ends the collector; afterwards another one measures."""
    before = process(story)
    yield
    ended_ns = time.time_ns()
    story.awaited("another process", PROBE, _PROCESS, lambda said: int(said) not in (0, before), 1.0)
    paths_up(story)
    records(story, ended_ns)


def broken(story: Story, address: str) -> list[str]:
    """Units that failed, and what ours told of an error that nobody thought of, since the target started.

    NetworkManager's client gives its daemon 25 s to answer at boot: an emulated processor that others use too takes longer.
    """
    failed = story.told(address, "systemctl --failed --no-legend --plain").splitlines()
    journal = story.told(address, "sudo journalctl --boot --no-pager --output=cat --unit='tandem*'")
    assert journal.strip() != ""
    traceback = journal.find("Traceback")
    return [unit for unit in failed if not unit.startswith("NetworkManager-wait-online")] + (
        [journal[max(0, traceback - 500) :][:3000]] if traceback >= 0 else []
    )
