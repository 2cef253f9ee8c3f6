"""A Debian's root folder for single roles, played by real Ansible over chroot: no systemd runs in it and no network is there."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from targets.play import in_json, program


@dataclass
class RootFolder:
    """Below ``root``: an installed Debian, and what is written above it in memory."""

    folder: Path
    mounts: list[Path] = field(default_factory=list)

    @property
    def root(self) -> Path:
        return self.folder / "root"

    def mount(self, *words: str | Path) -> None:
        """Its last word is a folder of the system."""
        subprocess.run(["mount", *words], check=True)
        self.mounts.append(Path(words[-1]))

    def played(
        self, host: str, roles: list[str], variables: Mapping[str, Any], *options: str
    ) -> tuple[int, list[tuple[str, dict[str, Any]]]]:
        """Play the roles on it: the exit status, and each task's name with its result. ``host``: how the inventory calls it."""
        here = {"ansible_connection": "community.general.chroot", "ansible_host": str(self.root)}
        here |= {"ansible_python_interpreter": "/usr/bin/python3", **variables}
        (self.folder / "hosts.yml").write_text(json.dumps({"all": {"hosts": {host: here}}}))
        (self.folder / "play.yml").write_text(json.dumps([{"hosts": "all", "roles": ["tandem", *roles]}]))
        played = self.folder / "hosts.yml", self.folder / "play.yml"
        done, told = in_json(self.folder, program(), "-i", *played, *options)
        tasks = [task for play in told["plays"] for task in play["tasks"] if host in task["hosts"]]
        return done.returncode, [(task["task"]["name"], task["hosts"][host]) for task in tasks]


@contextmanager
def laid(made: RootFolder, sources: Path) -> Iterator[None]:
    """It is there, from entering to leaving, which takes away all that was mounted. ``sources``: what ``make.py`` made."""
    made.folder.mkdir()
    try:
        made.mount("-t", "tmpfs", "none", made.folder)
        for name in ("root", "upper", "work"):
            (made.folder / name).mkdir()
        layers = f"lowerdir={sources / 'root'},upperdir={made.folder / 'upper'},workdir={made.folder / 'work'}"
        made.mount("-t", "overlay", "none", "-o", layers, made.root)
        made.mount("--rbind", "/proc", made.root / "proc")
        yield
    finally:
        for place in reversed(made.mounts):
            subprocess.run(["umount", "-l", place], check=True)
