"""What a story on targets is told with: commands at them, what is waited for, how long it took."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from targets import ground as grounds
from targets.container_target import booted, kit_cables, laid_out, server_cables
from targets.ground import PROBE, SERVER, Ground
from targets.modems import modems

KIT = "kit"
STEPS_S = 1800.0
"""For what a target does by itself, on an emulated processor that others use too."""


@dataclass
class Story:
    """Where it happens."""

    ground: Ground
    kit: Path
    server: Path
    """Their root file systems."""
    kit_runs: ExitStack
    """The kit in its container; once closed nothing writes to its root, which goes on to be there, as server and ground do."""
    server_runs: ExitStack
    in_vain: str | None = None
    """What was waited for and did not come: what builds on it is not waited for as long again."""

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """A part of the story; its time is told."""
        began_s = time.monotonic()
        yield
        print(f"{name}: {time.monotonic() - began_s:.1f} s", file=sys.stderr, flush=True)

    def told(self, address: str, command: str) -> str:
        """What a command says at a target; it must succeed."""
        done = self.ground.ssh(address, command, STEPS_S)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def awaited(self, what: str, address: str, command: str, met: Callable[[str], bool], every_s: float = 2.0) -> str:
        """Until ``command``'s output is as wished."""
        assert self.in_vain is None, f"not tried, since this did not come before: {self.in_vain}"
        until = time.monotonic() + STEPS_S
        said = ""
        while time.monotonic() < until:
            done = self.ground.ssh(address, command, STEPS_S)
            if done.returncode == 0 and met(done.stdout):
                return done.stdout
            said = f"{done.stdout[-1500:]}{done.stderr[-500:]}"
            time.sleep(every_s)
        self.in_vain = what
        raise AssertionError(f"not within {STEPS_S:.0f} s: {what}; last: {said}{self._failed(address)}")

    def _failed(self, address: str) -> str:
        """For a message: what the kit and the one asked say of their units that failed."""
        command = (
            "for unit in $(systemctl --failed --no-legend --plain | cut -d ' ' -f 1); do"
            ' echo "== $unit"; sudo journalctl --boot --no-pager --output=cat --unit="$unit" | tail -25; done'
        )
        return "".join(
            f"\n{at}: failed units: {done.stdout}{done.stderr[-500:]}"
            for at in dict.fromkeys((address, PROBE))
            for done in [self.ground.ssh(at, command, STEPS_S)]
        )


@contextmanager
def containers(folder: Path, sources: Path, kept: Path | None = None, *, kit_starts: bool = True) -> Iterator[Story]:
    """Ground, a server and a kit with its modems, both in containers that answer: bare, or as they were ``kept`` (``kept.py``).
    ``kit_starts``: else the kit is a root file system only."""
    with ExitStack() as stack:
        if kept is not None:
            shutil.copytree(kept / "ground", folder, dirs_exist_ok=True)
        ground = stack.enter_context(grounds.ground(folder, sources))
        roots = {
            name: stack.enter_context(
                laid_out(ground, name, ground.seed(name, address) | ground.own_sources(), kept and kept / name)
            )
            for name, address in (("server", SERVER), (KIT, PROBE))
        }
        # What is entered last is left first: a kit sends what is left before its server goes.
        runs = [stack.enter_context(ExitStack()) for _ in roots]
        story = Story(ground, roots[KIT], roots["server"], runs[1], runs[0])
        with story.part("the server's container answers"):
            story.server_runs.enter_context(booted(ground, SERVER, story.server, server_cables))
        if kit_starts:
            with story.part("the kit's container answers"):
                ports = story.kit_runs.enter_context(modems(folder / "modems"))
                story.kit_runs.enter_context(booted(ground, PROBE, story.kit, kit_cables, ports))
        yield story
