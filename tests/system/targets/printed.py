"""Runs the commands that a page prints, in order and as printed, in one place that goes on from command to command (``cd``, ``export``)."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

_BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.M | re.S)


def commands(page: str) -> list[str]:
    """The lines of the page's blocks of shell; a line that ends in a backslash goes on."""
    return [line for block in _BLOCK.findall(page) for line in block.replace("\\\n", " ").splitlines() if line.strip()]


@dataclass
class Terminal:
    """Where the user sits. ``substitutions``: the only words that differ from the page, each of which must occur in it."""

    folder: Path
    environment: Mapping[str, str]
    substitutions: Mapping[str, str]
    took_s: dict[str, float] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)
    """What each command printed, by the command as printed."""
    used: set[str] = field(default_factory=set)

    def run(self, command: str, typed: str = "") -> str:
        """One printed command, with what is ``typed`` at its questions; it must succeed. What it said."""
        meant = command
        for printed, here in self.substitutions.items():
            if printed in meant:
                self.used.add(printed)
                meant = meant.replace(printed, here)
        state, log = self.folder / "state", self.folder / "said.log"
        script = f'. "{state}"; {meant}; ended=$?; {{ export -p; printf "cd %q\\n" "$PWD"; }} >"{state}"; exit $ended'
        state.touch()
        words = ["bash", "-c", script]
        if typed:  # a terminal, which a question needs
            words = ["script", "--quiet", "--return", "--command", shlex.join(words), "/dev/null"]
        began_s = time.monotonic()
        environment = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", **self.environment}
        told = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "check": False}
        done = subprocess.run(words, cwd=self.folder, env=environment, input=typed, **told)
        self.took_s[command] = round(time.monotonic() - began_s, 1)
        self.said[command] = done.stdout
        with log.open("a") as file:
            file.write(f"$ {command}\n{done.stdout}")
        assert done.returncode == 0, f"{command}: exit status {done.returncode}\n{done.stdout[-6000:]}"
        return done.stdout
