"""A server and a kit, provisioned as a user does it: variables, the playbooks, the code that the server gives for the kit."""

from __future__ import annotations

import json
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
    # This machine's kernel may have no WireGuard.
    "wireguard_server_user_space": True
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
    "wireguard_client_userspace": True,
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


def first(story: Story) -> dict[str, dict[str, Any]]:
    """Server and kit, from bare targets to ones that measure, in the order of a user who looks before: how each play went, by playbook and
    part."""
    given = inventory(story, "")
    told: dict[str, Played] = {}

    def bare(name: str, address: str) -> None:
        with checked_bare(story, address):
            told[f"{name} bare, checked"] = play(story, name, "bare, checked", given, "--check")

    bare("server.yml", SERVER)
    with ThreadPoolExecutor(1) as beside:
        server = beside.submit(play, story, "server.yml", "first", given)
        bare("probe.yml", PROBE)
        told["server.yml first"] = server.result()
    told["probe.yml first"] = play(story, "probe.yml", "first", inventory(story, invited(story)))
    return {part: {"changed": dict(one.changed), "failed": dict(one.failed)} for part, one in told.items()}


def again(story: Story) -> dict[str, Played]:
    """Server and kit, provisioned, played and looked at again."""
    given = inventory(story, "")
    told: dict[str, Played] = {}

    def both(name: str) -> None:
        told[f"{name} second"] = play(story, name, "second", given)
        told[f"{name} checked"] = play(story, name, "checked", given, "--check")

    with ThreadPoolExecutor(1) as beside:
        server = beside.submit(both, "server.yml")
        both("probe.yml")
        server.result()
    return told
