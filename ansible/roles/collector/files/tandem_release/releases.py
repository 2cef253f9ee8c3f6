"""The releases of a probe: installed, linked, pruned."""

from __future__ import annotations

import compileall
import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

from tandem_release.disk import ReleaseError, remove_tree, sync
from tandem_release.wheel import read

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+_-]{0,99}\Z")
NOT_RELEASES = {"current", "previous", "staged", "undo"}
SPARE_BYTES = 20_000_000
"""Must stay free beside a release."""


class Releases:
    """Those below ``home``, /opt/tandem on a probe."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def linked(self, name: str) -> str | None:
        """The release that the link ``name`` (current, previous) points to."""
        path = self.home / name
        return str(path.readlink()) if path.is_symlink() else None

    def installed(self) -> list[str]:
        """All that are whole, the oldest first."""
        found = [p for p in self.home.glob("[!.]*/release.json") if p.parent.name not in NOT_RELEASES]
        return [p.parent.name for p in sorted(found, key=lambda p: (p.stat().st_mtime_ns, p.parent.name))]

    def folder(self, release: str) -> Path:
        """Of an installed release."""
        if release not in self.installed():
            raise ReleaseError(f"release {release!r} is not installed; mend: tandem-release install WHEEL")
        return self.home / release

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """One at a time."""
        try:
            self.home.mkdir(mode=0o755, parents=True, exist_ok=True)
            held = (self.home / ".lock").open("w")
        except OSError as error:
            raise ReleaseError(f"{self.home}: {error.strerror}; mend: run it as root", 3) from error
        with held:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise ReleaseError("another tandem-release is at work; mend: wait for its end", 1) from error
            yield

    def install(self, wheel: Path, release: str | None) -> tuple[str, bool]:
        """The wheel as a release (its version where ``release`` is None): its name, and False when it was there already."""
        given = read(wheel)
        release = release or given.version
        if not NAME.match(release) or release in NOT_RELEASES:
            raise ReleaseError(f"release {release!r}: use letters, digits, '.', '+', '_' and '-', at most 100")
        there = self.home / release
        told = {"sha256": given.sha256, "python": f"{sys.version_info.major}.{sys.version_info.minor}"}
        if (there / "release.json").exists():
            before = json.loads((there / "release.json").read_text())
            if before == told:
                return release, False
            if before["sha256"] != told["sha256"]:
                raise ReleaseError(
                    f"release {release} is installed with another content; mend: give this one another name"
                )
        needed = 3 * sum(len(content) for content in given.files.values()) + SPARE_BYTES
        if shutil.disk_usage(self.home).free < needed:
            mend = "mend: tandem-release prune --keep 2, or make room"
            raise ReleaseError(f"{self.home}: fewer than {needed} bytes are free; {mend}", 3)
        beside, aside = self.home / f".{release}.tmp", self.home / f".{release}.old"
        for left in (beside, aside):
            remove_tree(left)
        _build(beside, there, given.files)
        (beside / "release.json").write_text(json.dumps(told))
        os.sync()
        if there.exists():  # half removed, or for a Python that the system no longer has
            there.rename(aside)
        beside.rename(there)
        sync(self.home)
        remove_tree(aside)
        return release, True

    def prune(self, keep: int) -> list[str]:
        """The oldest and their wheels are gone, so that ``keep`` stay; never the one that runs or the one before."""
        needed = {self.linked("current"), self.linked("previous")}
        installed = self.installed()
        gone = [name for name in installed if name not in needed][: max(0, len(installed) - keep)]
        for name in gone:
            (self.home / name / "release.json").unlink()
            remove_tree(self.home / name)
        needed_wheels = {
            json.loads((self.home / name / "release.json").read_text())["sha256"] for name in self.installed()
        }
        for wheel in self.home.glob("wheels/*.whl"):
            if hashlib.sha256(wheel.read_bytes()).hexdigest() not in needed_wheels:
                wheel.unlink()
        return gone


def _build(beside: Path, there: Path, files: dict[str, bytes]) -> None:
    """In ``beside`` an environment that will stand in ``there``. The packages that the collector needs are the system's."""
    venv.EnvBuilder(system_site_packages=True, symlinks=True, with_pip=False).create(beside)
    packages = next(beside.glob("lib/python3*/site-packages"))
    for name, content in files.items():
        (packages / name).parent.mkdir(parents=True, exist_ok=True)
        (packages / name).write_bytes(content)
    program = beside / "bin/tandem"
    # By its own folder, not by "current": what a collector starts later is of its own release.
    program.write_text(f"#!{there}/bin/python3\nimport sys\nfrom tandem.cli.main import main\nsys.exit(main())\n")
    program.chmod(0o755)
    compileall.compile_dir(packages, quiet=1, stripdir=str(beside), prependdir=str(there))
