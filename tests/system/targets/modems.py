"""The kit's two modems, emulated by the bench on pseudo-terminals that a container has as its serial ports."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tandem_bench.run.programs import Programs
from tandem_bench.scenario import load, play, write_timelines

DIALOUT = 20
"""Debian's group of those who may use serial ports."""
PLAYED_S = 120.0
"""Radio that stays as it is; it stands still afterwards too."""


@dataclass(frozen=True)
class Modem:
    """One modem: whose ``family``'s dialogue it speaks, the ``port`` under which the kit finds it, its ``operator``."""

    operator: str
    family: str
    port: str


MODEMS = {"a": Modem("A", "quectel", "/dev/ttyUSB2"), "b": Modem("B", "huawei", "/dev/ttyUSB5")}
"""By path, as the operators of the scenario "still" and in the order of the kit's interfaces."""


@contextmanager
def modems(folder: Path) -> Iterator[Mapping[str, Path]]:
    """They answer. By the name that it has in the kit, each one's terminal here."""
    folder.mkdir()
    timelines = write_timelines(play(load("still", duration_s=PLAYED_S, seed=1)), folder)
    with Programs(folder) as programs:
        terminals: dict[str, Path] = {}
        for path, modem in MODEMS.items():
            link = folder / f"modem-{path}"
            argv = [
                *(sys.executable, "-m", "tandem_bench", "modem", "--family", modem.family, "--link", str(link)),
                *("--timeline", str(timelines[modem.operator]), "--operator-name", f"Operator {modem.operator}"),
            ]
            programs.start(f"modem-{path}", argv, ready_s=30)
            terminals[modem.port] = link.resolve()
            os.chown(terminals[modem.port], 0, DIALOUT)  # the modem lets its group in
        yield terminals
