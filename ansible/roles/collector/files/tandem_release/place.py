"""A release and its files in place, and as before: what a switch changes on the disk."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

from tandem_release.disk import ReleaseError, copy, link, remove, remove_tree, same, write
from tandem_release.releases import Releases

UNIT = "tandem.service"
CONFIG = "etc/tandem/config.toml"
CREDENTIALS = f"/run/credentials/{UNIT}/"


class Place:
    """``root``: the system's root, whose files are named without the leading slash."""

    def __init__(self, releases: Releases, root: Path) -> None:
        self.releases, self.root = releases, root
        home = releases.home
        self.staged, self.undo = home / "staged", home / "undo"
        self.journal, self.list = home / "switch.json", home / "placed.json"

    def files(self) -> list[str]:
        """Those that go with the next release."""
        return sorted(str(p.relative_to(self.staged)) for p in self.staged.rglob("*") if p.is_file())

    def placed(self) -> list[str]:
        """Those that went with the last."""
        listed: list[str] = json.loads(self.list.read_text()) if self.list.exists() else []
        return listed

    def is_as(self, release: str) -> bool:
        """Whether release and files are in place."""
        files = self.files()
        return (
            self.releases.linked("current") == release
            and self.placed() == files
            and all(same(self.staged / name, self.root / name) for name in files)
        )

    def check(self, release: str) -> None:
        """The release takes the staged configuration; ReleaseError with its own words, which name the line."""
        config = self.staged / CONFIG
        program = self.releases.folder(release) / "bin/tandem"
        if not config.exists():
            return
        text = config.read_text()
        # Credentials have their places only while the service runs.
        for name, source in self._credentials().items():
            text = text.replace(f'"{CREDENTIALS}{name}"', json.dumps(source))
        # Nor have files that go with the release theirs before they are put there.
        for name in self.files():
            text = text.replace(f'"/{name}"', json.dumps(str(self.staged / name)))
        looked_at = (self.root / CONFIG).with_name(".config.checked.toml")
        looked_at.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        remove(looked_at)
        looked_at.touch(mode=0o600)
        try:
            looked_at.write_text(text)
            argv = [str(program), "run", "--config", str(looked_at), "--check"]
            done = subprocess.run(argv, capture_output=True, text=True, errors="replace", check=False)
        finally:
            looked_at.unlink()
        if done.returncode != 0:
            said = (done.stderr.strip() or done.stdout.strip()).replace(str(looked_at), str(config))
            raise ReleaseError(f"release {release} does not take its configuration: {said}")

    def _credentials(self) -> dict[str, str]:
        """By name: the files that the service is given, by the staged units and by those that others put in place."""
        staged = [self.staged / name for name in self.files() if name.startswith(f"etc/systemd/system/{UNIT}")]
        return credentials([*(self.root / f"etc/systemd/system/{UNIT}.d").glob("*.conf"), *staged])

    def keep(self, release: str) -> None:
        """What is in place is on the disk a second time; from here on a boot goes back to it."""
        remove_tree(self.undo)
        self.undo.mkdir(mode=0o700)
        files = {}
        for name in sorted({*self.files(), *self.placed()}):
            files[name] = (self.root / name).is_file()
            if files[name]:
                copy(self.root / name, self.undo / name)
        os.sync()
        links = {name: self.releases.linked(name) for name in ("current", "previous")}
        write(self.journal, json.dumps({"to": release, "links": links, "files": files, "placed": self.placed()}))

    def put(self, release: str) -> None:
        """The release and its files are in place."""
        files = self.files()
        for name in self.placed():
            if name not in files:
                remove(self.root / name)
        for name in files:
            copy(self.staged / name, self.root / name)
        write(self.list, json.dumps(files))
        before = self.releases.linked("current")
        if before is not None and before != release:
            link(self.releases.home / "previous", before)
        link(self.releases.home / "current", release)

    def restore(self) -> str | None:
        """As before the switch under way: the release that stands again. May itself be interrupted, and is then done anew."""
        told = json.loads(self.journal.read_text())
        for name, was_there in told["files"].items():
            if was_there:
                copy(self.undo / name, self.root / name)
            else:
                remove(self.root / name)
        write(self.list, json.dumps(told["placed"]))
        for name, to in told["links"].items():
            if to is None:
                remove(self.releases.home / name)
            else:
                link(self.releases.home / name, to)
        self.proven()
        before: str | None = told["links"]["current"]
        return before

    def proven(self) -> None:
        """The switch is over."""
        remove(self.journal)
        remove_tree(self.undo)


def credentials(units: list[Path]) -> dict[str, str]:
    """By name: the files that units name as credentials."""
    found: dict[str, str] = {}
    for unit in units:
        found.update(re.findall(r"^LoadCredential=([^:\s]+):(\S+)$", unit.read_text(), re.MULTILINE))
    return found
