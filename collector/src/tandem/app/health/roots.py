"""Where the kernel's files are: the machine's own, or a tree of a test's."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

LONGEST = 65_536
"""No file of interest is longer; sysfs gives a page at most."""


@dataclass(frozen=True, slots=True)
class Roots:
    """``sys``, ``proc``, ``etc``: folders; ``vcio``: the device of a Raspberry Pi's firmware, absent elsewhere."""

    sys: Path = Path("/sys")
    proc: Path = Path("/proc")
    etc: Path = Path("/etc")
    vcio: Path = Path("/dev/vcio")


def text_of(file: Path) -> str | None:
    """Its text without the ends' whitespace and NULs (device trees end texts with one); None when there is no such file, or none
    now: a driver without an answer says so by an error. What is no text is shown so that a parser refuses it."""
    try:
        with file.open("rb") as opened:
            return opened.read(LONGEST).decode("utf-8", "replace").strip("\0 \t\r\n")
    except OSError:
        return None
