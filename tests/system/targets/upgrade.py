"""The power goes in the middle of an upgrade of the collector, and the machine is switched on again."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from targets.disk import Settled
from targets.ground import PROBE, Seed
from targets.story import STEPS_S, Story
from targets.vm_target import REPOSITORY, VmTarget

HOME = Path("/opt/tandem")
NEW = "9.0.0"
"""The release that comes: this checkout's sources under another version."""
UNPACKED = f"-e {HOME}/.{NEW}.tmp/bin/tandem"
"""When the new release is unpacked and not yet on the disk, as ``test`` asks it."""
SWITCHED = f"{HOME}/current -ef {HOME}/{NEW} -a -e {HOME}/switch.json"
"""When the new release is in place and has not reported healthy."""
WHEEL = HOME / "wheels" / f"tandem_probe-{NEW}-py3-none-any.whl"
INSTALL = f"tandem-release install {WHEEL}"
SWITCH = f"{INSTALL} && sudo tandem-release switch {NEW}"
MODULES = REPOSITORY / "ansible" / "plugins" / "modules"


def seed(folder: Path) -> Seed:
    """The new release's wheel where the playbook copies it, made as the playbook makes it; ``folder`` is for that."""
    sys.path.insert(0, str(MODULES))
    try:
        made, _, _ = importlib.import_module("tandem_wheel").build(REPOSITORY / "collector", folder / "wheels", NEW)
    finally:
        sys.path.remove(str(MODULES))
    return {str(WHEEL.relative_to("/")): (Path(made).read_bytes(), 0o644)}


def state(story: Story) -> dict[str, Any]:
    """Of the kit's releases: installed, current, previous, unproven."""
    told: dict[str, Any] = json.loads(story.told(PROBE, "sudo tandem-release --json status"))
    return told


def cut(story: Story, target: VmTarget, command: str, instant: str) -> Settled:
    """``command`` is under way; at the ``instant`` the power goes."""
    looks = f"for look in $(seq 100); do [ {instant} ] && exit 0; sleep 0.2; done; exit 1"
    argv = story.ground.ssh_to(PROBE, f"sudo {command}")
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL) as working:
        try:
            while story.ground.ssh(PROBE, looks, STEPS_S).returncode != 0:
                assert working.poll() is None, f"ended with {working.returncode} before its power went"
            settled = target.cut_power()
            assert working.poll() is None, "ended before its power went"
        finally:
            working.kill()  # from a machine without power no word comes: it would wait for minutes
    return settled
