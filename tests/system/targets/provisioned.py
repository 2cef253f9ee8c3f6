"""A server and a kit, provisioned as a user does it: variables, the playbooks, the code that the server gives for the kit."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from targets import play as plays
from targets.ground import CONTROL, PROBE, SERVER
from targets.modems import MODEMS
from targets.play import Played
from targets.story import KIT, Story

SERVER_VARIABLES: Mapping[str, Any] = {
    "certificate_authority_passphrase": "only for this run",
    # This machine's kernel may have no WireGuard.
    "hub_user_space": True,
}
KIT_VARIABLES: Mapping[str, Any] = {
    "tandem_paths": [
        {
            "name": path,
            "operator": modem.operator,
            "interface": f"wwan{number}",
            "port": modem.port,
            "driver": modem.family,
        }
        for number, (path, modem) in enumerate(MODEMS.items())
    ],
    # A container's clock is its host's.
    "collector_settings": {"clock": {"source": "system"}},
    # Nobody gives a container's cards a name server.
    "modems_fallback_dns": [CONTROL],
    "wireguard_userspace": True,
}


def inventory(story: Story, code: str) -> Path:
    """As the user's, with the kit's ``code`` where there is one."""
    enrol = {"collector_enrol_code": code} if code else {}
    page = {"preflight_page_folder": str(story.ground.folder / "preflight")}
    name = "with-code" if code else "inventory"
    return plays.inventory(story.ground, SERVER_VARIABLES, dict(KIT_VARIABLES) | enrol | page, name)


def play(story: Story, name: str, part: str, given: Path, *options: str) -> Played:
    """One play to its end, which must be a good one. ``given``: the inventory."""
    part = f"{name} {part}"
    with story.part(part):
        played = plays.play(story.ground, name, given, *options, log=part.replace(" ", "-"))
    tail = "\n".join(played.output.splitlines()[-60:])
    assert played.exit == 0, f"{part}: exit {played.exit}\n{tail}"
    return played


@contextmanager
def checked_bare(story: Story, address: str) -> Iterator[None]:
    """What is played inside finds a machine that knows packages, as a stock system does; afterwards it knows none again."""
    story.told(address, "sudo apt-get -q update")
    yield
    story.told(address, "sudo find /var/lib/apt/lists -name '*_Packages*' -delete")


def invited(story: Story) -> str:
    """The code for the kit, from the server."""
    told = story.told(SERVER, f"sudo -u tandem-server tandem-server probe invite {KIT} --json")
    return str(json.loads(told)["code"])


def provisioned(story: Story) -> dict[str, Played]:
    """Server and kit by every play that they get, in the order of a user who looks before and after: by playbook and part. Two at a time
    where one does not need the other."""
    given = inventory(story, "")
    told: dict[str, Played] = {}

    def played(name: str, part: str, *options: str, given: Path = given) -> None:
        told[f"{name} {part}"] = play(story, name, part, given, *options)

    with checked_bare(story, SERVER):
        played("server.yml", "bare, checked", "--check")
    played("server.yml", "first")
    with ThreadPoolExecutor(2) as several:
        second = several.submit(played, "server.yml", "second")
        with checked_bare(story, PROBE):
            played("probe.yml", "bare, checked", "--check")
        second.result()
    played("probe.yml", "first", given=inventory(story, invited(story)))
    with ThreadPoolExecutor(2) as several:
        checked = several.submit(played, "server.yml", "checked", "--check")
        played("probe.yml", "second")
        checked.result()
    played("probe.yml", "checked", "--check")
    return told


def tell(story: Story) -> None:
    """All times so far."""
    for part, took_s in story.took_s.items():
        print(f"{took_s:8.1f} s  {part}", file=sys.stderr)
