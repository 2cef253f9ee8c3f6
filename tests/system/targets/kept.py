"""What the playbooks made of bare targets, kept in build/provisioned/KEY under a digest of all that it is made from: made once, by the
unchanged playbooks themselves, in a user's order; what asks for it then starts from there.

`ground/` has the keys, the authority and what the plays printed, `server/` and `kit/` what was written above the installed Debian,
`played.json` how each play went, `disk.img` the kit as a machine (``machine``).
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from targets import faults, plugged, provisioned, upgrade
from targets import story as stories
from targets.ground import PROBE, SERVER, SERVER_PUBLIC
from targets.machine_of import lan_profile, machine_of, usb_modems_seed
from targets.story import Story
from targets.vm_target import REPOSITORY

FOLDER = REPOSITORY / "build" / "provisioned"
SOURCES = (
    *("ansible", "collector", "server", "firmware", "dashboards/generated", "dashboards/provisioning"),
    "tests/system/targets",
)
UNREAD = (".md", ".pyc")


def key(sources: Path) -> str:
    """Of ``sources`` (what make.py made) and of every file that playbooks, their targets and these tests' ways with them are made of."""
    digest = hashlib.sha256(sources.name.encode())
    for folder in SOURCES:
        for file in sorted((REPOSITORY / folder).rglob("*")):
            if file.suffix not in UNREAD and file.is_file() and not {"target", "node_modules"} & set(file.parts):
                digest.update(
                    f"{file.relative_to(REPOSITORY)} {hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode()
                )
    return digest.hexdigest()[:16]


@contextmanager
def _alone() -> Iterator[None]:
    """One makes it, others wait for it."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def kept(sources: Path, work: Path) -> Path:
    """Server and kit, provisioned; made now where they are not there yet, by every play but the second ones. ``work``: for that."""
    made = FOLDER / key(sources)
    with _alone():
        if not (made / "played.json").exists():
            for old in FOLDER.iterdir():
                if old.is_dir():
                    shutil.rmtree(old)
            made.mkdir()
            with stories.containers(work, sources) as story:
                played = provisioned.first(story)
                assert faults.broken(story, SERVER) == []
                assert faults.broken(story, PROBE) == []
                _keep(story, made)
            (made / "played.json").write_text(json.dumps(played, indent=1))
    return made


def _keep(story: Story, made: Path) -> None:
    story.kit_runs.close()
    story.server_runs.close()
    for name, root in (("server", story.server), (stories.KIT, story.kit)):
        subprocess.run(["cp", "-a", root.parent / "upper", made / name], check=True)
    (made / "ground").mkdir()
    for file in story.ground.folder.iterdir():
        if file.is_file() and file != story.ground.resolver:
            shutil.copy2(file, made / "ground")
    shutil.copytree(story.ground.folder / "preflight", made / "ground/preflight")


def machine(sources: Path, made: Path, work: Path) -> Path:
    """The disk of the kit that was ``made``, as a machine with modems on USB; not to be written to."""
    image = made / "disk.img"
    with _alone():
        if not image.exists():
            with stories.containers(work, sources, made) as story:
                with story.part("machine: probe.yml --tags modems,collector"):
                    played = plugged.set_up(story)
                assert played.exit == 0, played.output[-4000:]
                story.kit_runs.close()
                seed = lan_profile(PROBE, SERVER_PUBLIC) | usb_modems_seed(SERVER_PUBLIC) | upgrade.seed(work)
                machine_of(story.kit, seed, image.with_suffix(".new"), work)
            image.with_suffix(".new").rename(image)
    return image
