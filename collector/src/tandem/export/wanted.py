"""Which files a run's manifest promises to the server. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tandem.schema.trace import is_name, is_sha256

DAMAGED = "damaged/"
"""Goes before the name of a file that is no longer what its manifest says: so the promised name stays free, and both can be seen."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A file of the probe's folder that is to go up. ``run``: None for one that several runs share; ``bytes`` and ``sha256`` as its
    manifest promises, None where there is no manifest (the collector was killed): then it goes as it is; ``made_utc_ns``: when its run
    ended, 0 when that is not known."""

    name: str
    run: str | None
    bytes: int
    sha256: str | None
    made_utc_ns: int

    @property
    def turn(self) -> tuple[bool, int, str]:
        """Small results before captures, since figures are made of them; then the oldest first, which has been at risk longest."""
        return (self.name.startswith("captures/"), self.made_utc_ns, self.name)


_RUN_OF = re.compile(r"captures/(run-[0-9a-f]{12})-[^/]+\Z")


def left_behind(name: str, size: int, made_utc_ns: int) -> Wanted | None:
    """A file without a manifest; None when its name is none of a trace. Captures bear the id of their run, or of a pair's."""
    found = _RUN_OF.match(name)
    return Wanted(name, found[1] if found else None, size, None, made_utc_ns) if is_name(name) else None


def wanted_of(manifest: object) -> list[Wanted]:
    """The files of a manifest (tandem.schema.manifest), also of one that is not as it was written: what cannot be sent is left out."""
    if not isinstance(manifest, dict):
        return []
    run, files, ended = manifest.get("id"), manifest.get("files"), manifest.get("ended_utc_ns")
    if not isinstance(run, str) or not isinstance(files, list):
        return []
    made = ended if type(ended) is int else 0
    found = []
    for file in files:
        if not isinstance(file, dict):
            continue
        name, size, digest = file.get("name"), file.get("bytes"), file.get("sha256")
        placed = is_name(name) and "/" in str(name) and not str(name).startswith(DAMAGED)
        if placed and type(size) is int and size >= 0 and is_sha256(digest):
            found.append(Wanted(str(name), run, size, str(digest), made))
    return found
