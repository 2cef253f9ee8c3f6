"""The power goes in the middle of an upgrade of the collector, and the machine is switched on again."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from targets import plugged
from targets.disk import Settled
from targets.ground import PROBE
from targets.story import Story
from targets.vm_target import VmTarget

RELEASES = "/opt/tandem"
NEW = "9.0.0"
"""The release that comes: this checkout's sources under another version."""
UNPACKED = f"-d {RELEASES}/.{NEW}.tmp/lib"
"""When the new release is being unpacked, as ``test`` asks it."""
SWITCHED = f"{RELEASES}/current -ef {RELEASES}/{NEW} -a -e {RELEASES}/switch.json"
"""When the new release is in place and has not reported healthy."""


def state(story: Story) -> dict[str, Any]:
    """Of the kit's releases: installed, current, previous, unproven."""
    told: dict[str, Any] = json.loads(story.told(PROBE, "sudo tandem-release --json status"))
    return told


def cut(story: Story, target: VmTarget, instant: str) -> Settled:
    """The playbook brings the release ``NEW``; at the ``instant`` the power goes."""
    with ThreadPoolExecutor(1) as beside:
        playing = beside.submit(plugged.set_up, story, "--tags", "collector", tandem_release=NEW)
        story.told(PROBE, f"until [ {instant} ]; do sleep 0.1; done")
        settled = target.cut_power()
        assert playing.result().exit != 0
    return settled


def on_again(story: Story, target: VmTarget) -> None:
    """Switched on, until it measures."""
    began_ns = time.time_ns()
    target.start()
    target.await_ssh()
    plugged.measuring(story, began_ns)
