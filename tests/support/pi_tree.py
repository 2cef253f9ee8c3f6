"""A machine's files as a tree in a folder, from a list of them in ``trees/``."""

import os
from pathlib import Path

from tandem.app.health.machine import Roots

TREES = Path(__file__).parent / "trees"


def plant(name: str, root: Path) -> Roots:
    """``STATE`` in a path is the number of the device that ``root`` itself is on: there the probe's folder is."""
    number = root.stat().st_dev
    for line in (TREES / f"{name}.txt").read_text().splitlines():
        if line.startswith("#"):
            continue
        line = line.replace("STATE", f"{os.major(number)}:{os.minor(number)}")
        path, arrow, target = line.partition(" -> ")
        if not arrow:
            path, _, text = line.partition(" | ")
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if arrow:
            file.symlink_to(target)
        else:
            file.write_text(text.replace("\\n", "\n") + "\n")
    return Roots(sys=root / "sys", proc=root / "proc", etc=root / "etc", vcgencmd=root / "vcgencmd")
