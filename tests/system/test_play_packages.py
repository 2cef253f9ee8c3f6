"""The role packages on a bare Debian's own apt, in its root folder: lists where there are none, from the mirror, and nothing twice.

The archive is the targets', read from a folder of that system; no systemd runs and no network is there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from targets.available import NEEDED, made
from targets.root_folder import RootFolder, laid

ROLE = "packages : "
NONE = ROLE + "Fetch lists where there are none, and from a changed archive"
OLD = ROLE + "Fetch old lists anew"
pytestmark = [
    pytest.mark.system,
    pytest.mark.timeout(1200),
    NEEDED,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
]


@dataclass
class Bare(RootFolder):
    """A bare system, with the ``archive`` at /srv/archive where ``served``."""

    archive: Path = Path()

    def served(self, *, yes: bool) -> None:
        place = self.root / "srv/archive"
        if yes:
            place.mkdir(parents=True, exist_ok=True)
            self.mount("--bind", self.archive, place)
        else:
            subprocess.run(["umount", place], check=True)
            self.mounts.remove(place)

    def play(self, *options: str, mirror: str = "file:/srv/archive") -> dict[str, Any]:
        """What the role's tasks did, by name: ``changed``, or skipped."""
        status, done = self.played("bare", ["packages"], {"tandem_debian_mirror": mirror}, *options)
        tasks = dict(done)
        assert status == 0, [(name, one.get("msg")) for name, one in tasks.items() if one.get("failed")]
        return tasks

    def knows(self, package: str) -> bool:
        done = subprocess.run(["chroot", self.root, "apt-cache", "madison", package], check=True, capture_output=True)
        return bool(done.stdout)


def changes(tasks: dict[str, Any]) -> set[str]:
    return {name for name, one in tasks.items() if one.get("changed")}


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bare]:
    """With freshly cleaned lists and an archive of its own that nobody answers for; after the first test with lists of the mirror's."""
    sources = made()
    one = Bare(tmp_path_factory.mktemp("bare") / "bare", archive=sources / "archive")
    with laid(one, sources):
        one.mount("--rbind", "/dev", one.root / "dev")
        shutil.rmtree(one.root / "var/lib/apt/lists")
        (one.root / "var/lib/apt/lists").mkdir()
        own = "Types: deb\nURIs: file:/nowhere\nSuites: bookworm\nComponents: main\n"
        (one.root / "etc/apt/sources.list.d/debian.sources").write_text(own)
        one.served(yes=True)
        yield one


def test_lists_are_fetched_where_there_are_none_and_not_again(bare: Bare) -> None:
    assert not bare.knows("python3-venv")
    told = bare.play("--check")
    assert "has no package lists" in told[ROLE + "Say why nothing more is checked"]["msg"]
    assert NONE in changes(bare.play())
    assert bare.knows("python3-venv")
    assert (bare.root / "etc/apt/sources.list.d/debian.sources.tandem-aside").exists()
    assert changes(bare.play()) == set()


def test_a_run_that_was_broken_off_before_it_fetched_is_made_good(bare: Bare) -> None:
    stamp = bare.root / "var/lib/apt/periodic/tandem-update-stamp"
    fetched = stamp.stat().st_mtime
    os.utime(bare.root / "etc/apt/sources.list.d", (fetched + 1, fetched + 1))
    assert changes(bare.play()) == {NONE}


def test_old_lists_are_fetched_and_stay_where_the_archive_is_out_of_reach(bare: Bare) -> None:
    stamp, named = bare.root / "var/lib/apt/periodic/tandem-update-stamp", bare.root / "etc/apt/sources.list.d"
    for file in (stamp, named):
        before = file.stat().st_mtime - 90_000
        os.utime(file, (before, before))
    bare.served(yes=False)
    told = bare.play()
    assert "the package lists stay old" in told[ROLE + "Say where that failed"]["msg"]
    assert bare.knows("python3-venv")
    bare.served(yes=True)
    assert changes(bare.play()) == {OLD}
    assert changes(bare.play()) == set()


def test_without_a_mirror_the_systems_own_archives_are_back(bare: Bare) -> None:
    sources = bare.root / "etc/apt/sources.list.d"
    (sources / "debian.sources.tandem-aside").write_text(
        "Types: deb\nURIs: file:/srv/archive\nSuites: bookworm\nComponents: main\n"
    )
    assert NONE in changes(bare.play(mirror=""))
    assert [file.name for file in sources.iterdir()] == ["debian.sources"]
    assert changes(bare.play(mirror="")) == set()
