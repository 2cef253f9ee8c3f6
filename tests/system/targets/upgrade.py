"""The power goes in the middle of an upgrade of the collector, and the machine is switched on again."""

from __future__ import annotations

import importlib
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from targets import plugged
from targets.disk import Settled
from targets.ground import PROBE
from targets.story import STEPS_S, Story
from targets.vm_target import REPOSITORY, VmTarget

HOME = Path("/opt/tandem")
NEW = "9.0.0"
"""The release that comes: this checkout's sources under another version."""
UNPACKED = f"-d {HOME}/.{NEW}.tmp/lib"
"""When the new release is being unpacked, as ``test`` asks it."""
SWITCHED = f"{HOME}/current -ef {HOME}/{NEW} -a -e {HOME}/switch.json"
"""When the new release is in place and has not reported healthy."""
MODULES = REPOSITORY / "ansible" / "plugins" / "modules"


def wheel(into: Path) -> Path:
    """Of the new release, made as the playbook makes it."""
    sys.path.insert(0, str(MODULES))
    try:
        made, _, _ = importlib.import_module("tandem_wheel").build(REPOSITORY / "collector", into, NEW)
    finally:
        sys.path.remove(str(MODULES))
    return Path(made)


def bring(story: Story, file: Path) -> str:
    """A wheel to where the playbook copies it; its place there."""
    there = f"/opt/tandem/wheels/{file.name}"
    story.put(PROBE, file, there)
    return there


def state(story: Story) -> dict[str, Any]:
    """Of the kit's releases: installed, current, previous, unproven."""
    told: dict[str, Any] = json.loads(story.told(PROBE, "sudo tandem-release --json status"))
    return told


def cut(story: Story, target: VmTarget, step: str, instant: str) -> Settled:
    """``tandem-release STEP`` is under way; at the ``instant`` the power goes."""
    looks = f"for look in $(seq 100); do [ {instant} ] && exit 0; sleep 0.2; done; exit 1"
    with ThreadPoolExecutor(1) as beside:
        working = beside.submit(story.ground.ssh, PROBE, f"sudo tandem-release {step}", STEPS_S)
        try:
            while story.ground.ssh(PROBE, looks, STEPS_S).returncode != 0:
                assert not working.done(), working.result()
        finally:
            settled = target.cut_power()
        assert working.result().returncode != 0
    return settled


def on_again(story: Story, target: VmTarget) -> None:
    """Switched on, until it measures."""
    began_ns = time.time_ns()
    target.start()
    target.await_ssh()
    plugged.measuring(story, began_ns)
