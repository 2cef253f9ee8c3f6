"""What a folder of tables holds already: ``manifest/PART.json``, one for each part, written last. A part without it does not count.

Written by whoever made the part, so that processes need not know each other.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import re
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

VERSION = 4
"""Of the analysis and its tables: raised when either gives other values. Parts of another version are made anew."""
TOGETHER = "\0"
"""Between the paths of captures that are read as one: in no path."""
_NAMED = re.compile(r" \+ (?=/|probe/)")
"""Between them where they are told: before an absolute path, or one within a campaign folder."""
_OWNER = re.compile(r"(?:\A|/)captures/((?:run|pair)-[0-9a-f]+)-[^/]+\Z")
FOLDER = "manifest"
LOCK = ".lock"
TABLES = ("files", "connections", "subflows", "totals", "bins", "waits", "rtts", "events", "problems", "packets")


class ManifestError(ValueError):
    """A folder that cannot be gone on with; the message is one line with the mend."""


@dataclass(frozen=True)
class Capture:
    """One analysed file, or several that were read as one, as they were then. ``file``: absolute, of all of them."""

    file: str
    size_bytes: int
    mtime_ns: int

    @classmethod
    def at(cls, path: str) -> Capture:
        """As it is now; OSError."""
        if any(_NAMED.search(one) for one in absolute(path).split(TOGETHER)):
            raise OSError(
                errno.EINVAL, "in its path is ' + /', which stands between captures that are read as one", path
            )
        stats = [os.stat(one) for one in path.split(TOGETHER)]  # noqa: PTH116
        size, changed = sum(stat.st_size for stat in stats), max(stat.st_mtime_ns for stat in stats)
        return cls(named(absolute(path)), size, changed)


def absolute(path: str) -> str:
    """Links are left as they are."""
    return TOGETHER.join(os.path.abspath(one) for one in path.split(TOGETHER))  # noqa: PTH100


def named(path: str) -> str:
    """As it is told, and as the column ``file`` has it."""
    return path.replace(TOGETHER, " + ")


def captures_in(file: str) -> list[str]:
    """The paths of the captures that were read as one and are ``named`` so."""
    return _NAMED.split(file)


def owner_of(path: str) -> str | None:
    """The run, or the pair whose runs share it, after which a collector named a capture. Those of one are read as one: one machine made
    them, one of each path."""
    found = _OWNER.search(path)
    return found[1] if found else None


@dataclass(frozen=True)
class Part:
    """One part of every table. ``replaces``: the part whose rows it took over, if any."""

    version: int
    bin_ns: int
    packets: bool
    files: tuple[Capture, ...]
    replaces: str | None = None

    @property
    def name(self) -> str:
        """The same for the same files and settings."""
        what = [self.version, self.bin_ns, self.packets, [asdict(file) for file in self.files]]
        return hashlib.sha256(json.dumps(what).encode()).hexdigest()[:16]


def read(out: Path) -> dict[str, Part]:
    """Parts by name; ManifestError where one is not readable."""
    made = {}
    for path in sorted((out / FOLDER).glob("*.json")):
        try:
            told = json.loads(path.read_bytes())
            files = tuple(Capture(f["file"], f["size_bytes"], f["mtime_ns"]) for f in told["files"])
            made[path.stem] = Part(told["version"], told["bin_ns"], told["packets"], files, told["replaces"])
        except (ValueError, KeyError, TypeError) as error:
            raise ManifestError(
                f"{path}: no manifest of a part; hint: remove it, its files are analysed anew"
            ) from error
    return made


def write(out: Path, part: Part) -> None:
    """Whole, or not at all: from then on the part counts."""
    path = out / FOLDER / f"{part.name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{uuid.uuid4().hex}.tmp")
    with draft.open("w") as file:
        json.dump(asdict(part), file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    sync_folder(path.parent)


def remove(out: Path, name: str) -> None:
    """A part: first that it counts, then its tables."""
    (out / FOLDER / f"{name}.json").unlink(missing_ok=True)
    for path in table_files(out, name):
        path.unlink(missing_ok=True)


def table_files(out: Path, name: str) -> list[Path]:
    """Where a part's tables are, or would be."""
    return [out / table / f"{name}.parquet" for table in TABLES]


def tidy(out: Path) -> dict[str, Part]:
    """What counts, after what a killed run left is removed: replaced parts, what is there twice, tables without a manifest, drafts."""
    parts = read(out)
    for part in list(parts.values()):
        if part.replaces in parts:
            remove(out, part.replaces)
            del parts[part.replaces]
    for name in _held_twice(parts):
        remove(out, name)
        del parts[name]
    remove_drafts(out)
    for table in TABLES:
        for path in (out / table).glob("*.parquet"):
            if path.stem not in parts:
                path.unlink()
    return parts


def _held_twice(parts: dict[str, Part]) -> list[str]:
    """Parts whose captures other parts hold as well. A worker that died at the end of a batch, or was only out of reach, may have written
    it; then its captures were done each by itself, too."""
    held = {name: [(part.version, capture) for capture in part.files] for name, part in parts.items()}
    holders = Counter(one for captures in held.values() for one in captures)
    names = []
    for name in sorted(held, key=lambda name: (len(held[name]), name)):
        if all(holders[one] > 1 for one in held[name]):
            holders.subtract(held[name])
            names.append(name)
    return names


def remove_drafts(out: Path) -> None:
    """What processes that were killed had begun to write."""
    for folder in (FOLDER, *TABLES):
        for path in (out / folder).glob("*.tmp"):
            path.unlink(missing_ok=True)


def other_settings(parts: Iterable[Part], bin_ns: int, packets: bool) -> str | None:
    """With what else the folder was begun; None when with the same."""
    for part in parts:
        if (part.bin_ns, part.packets) != (bin_ns, packets):
            return f"--bins {part.bin_ns / 1e6:g}{' --packets' if part.packets else ''}"
    return None


@contextmanager
def alone(out: Path) -> Iterator[None]:
    """Makes the folder; ManifestError while another run writes there."""
    out.mkdir(parents=True, exist_ok=True)
    with (out / LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ManifestError(f"{out}: another run writes there; hint: let it end, or name another folder") from error
        yield


def sync_folder(folder: Path) -> None:
    """So that a rename outlives a power cut."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
