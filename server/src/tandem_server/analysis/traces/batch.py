"""Captures in batches: which files are meant, what of them is left to do, and one batch from its paths to what is told of it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tandem_server import tandem_trace_core as core
from tandem_server.analysis.traces import manifest, tables
from tandem_server.analysis.traces.connections import connections_of
from tandem_server.analysis.traces.manifest import TOGETHER, VERSION, Capture, ManifestError, Part, named

if TYPE_CHECKING:  # the library has no types of its own when it runs
    from tandem_server.tandem_trace_core import Tables


ENDINGS = tuple(f"{kind}{packed}" for kind in (".pcap", ".pcapng") for packed in ("", ".gz", ".zst", ".xz", ".bz2"))
"""The last two cannot be read, which is told of each."""
MOST_FILES = 100
MOST_BYTES = 256 << 20
SMALL_BYTES = 16 << 20
"""MOST: of a batch, what a process is given at once. Batches do not depend on the number of processes, so that parts do not either."""


@dataclass
class Found:
    """``paths`` as named, each file once. ``unread``: folders that could not be searched, and why. ``empty``: without any capture."""

    paths: list[str] = field(default_factory=list)
    unread: list[tuple[str, str]] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)


def find(named: Iterable[Path]) -> Found:
    """Files in the order given, a folder's in order of their paths, those of one run joined by TOGETHER. A file that is named counts
    whatever it is called."""
    found = Found()
    seen: set[str] = set()
    for path in named:
        inside = _by_run(_inside(path, found)) if path.is_dir() else [str(path)]
        if not inside:
            found.empty.append(str(path))
        for each in inside:
            if (whole := manifest.absolute(each)) not in seen:
                seen.add(whole)
                found.paths.append(each)
    return found


def _by_run(paths: Iterable[str]) -> list[str]:
    groups: dict[tuple[Path, str], list[str]] = {}
    for path in paths:
        place = Path(path)
        groups.setdefault((place.parent, manifest.owner_of(str(place.absolute())) or place.name), []).append(path)
    return [TOGETHER.join(own) for own in groups.values()]


def _inside(folder: Path, found: Found) -> list[str]:
    def unread(error: OSError) -> None:
        found.unread.append((str(error.filename), error.strerror or str(error)))

    made = [
        Path(place) / name
        for place, _, names in os.walk(folder, onerror=unread)
        for name in names
        if name.lower().endswith(ENDINGS)
    ]
    return [str(path) for path in sorted(made)]


def batches(paths: Sequence[str], most_files: int = MOST_FILES, most_bytes: int = MOST_BYTES) -> list[list[str]]:
    """In order; a larger file is a batch of its own."""
    made: list[list[str]] = []
    size = 0
    for path in paths:
        own = _size(path)
        if not made or len(made[-1]) >= most_files or size + own > most_bytes:
            made.append([])
            size = 0
        made[-1].append(path)
        size += own
    return made


def small(batches: Sequence[list[str]]) -> bool:
    """Done sooner than a process is started, and without any need of one that may be killed in this one's stead."""
    return len(batches) <= 1 and sum(_size(path) for batch in batches for path in batch) <= SMALL_BYTES


def _size(path: str) -> int:
    try:
        return sum(Path(one).stat().st_size for one in path.split(TOGETHER))
    except OSError:  # its reading will say why
        return 0


def go_on(out: Path, batches: Sequence[list[str]], bin_ns: int, packets: bool) -> list[list[str]]:
    """What is left to do of these batches; ManifestError when the folder was begun with other settings. What held a capture that is read
    anew, changed or with others beside it, is taken out.

    The batches are those of all files that were named: so those of a run that was stopped are the same as those of one that was not.
    """
    parts = manifest.tidy(out)
    if other := manifest.other_settings(parts.values(), bin_ns, packets):
        raise ManifestError(f"{out} was made with {other}; hint: the same here, or another folder")
    where = {capture.file: name for name, part in parts.items() for capture in part.files}
    held = {capture.file: (capture, part.version) for part in parts.values() for capture in part.files}
    read_in: dict[str, list[str]] = {}
    for file in where:
        for one in manifest.captures_in(file):
            read_in.setdefault(one, []).append(file)
    left: list[list[str]] = []
    changed: dict[str, set[str]] = {}
    for batch in batches:
        todo = []
        for path in batch:
            now = _now(path)
            if now is not None and held.get(now.file) == (now, VERSION):
                continue
            todo.append(path)
            for one in () if now is None else manifest.captures_in(now.file):
                for file in read_in.get(one, ()):
                    changed.setdefault(where[file], set()).add(file)
        if todo:
            left.append(todo)
    for name, files in changed.items():
        _take_out(out, name, parts[name], files)
    return left


def _take_out(out: Path, name: str, part: Part, files: set[str]) -> None:
    kept = tuple(capture for capture in part.files if capture.file not in files)
    if kept:
        rest = replace(part, files=kept, replaces=name)
        tables.take_over(out, name, rest.name, [capture.file for capture in kept], part.packets)
        manifest.write(out, rest)
    manifest.remove(out, name)


def _now(path: str) -> Capture | None:
    try:
        return Capture.at(path)
    except OSError:  # analysing it will say why
        return None


NO_TCP = "no_readable_tcp"
"""Packets of other protocols, and what is in tunnels that are not read."""
NO_CAPTURE = {
    "not_a_capture": "not a capture",
    "compressed_by_xz": "compressed by xz; hint: xz -d FILE",
    "compressed_by_bzip2": "compressed by bzip2; hint: bunzip2 FILE",
}


@dataclass(frozen=True)
class Problem:
    """All of one kind in one file, or in several that are read together. ``packet``: the first one's number; None where the pass had no
    room to say it. Kinds are the pass's, and NO_TCP."""

    file: str
    kind: str
    packet: int | None
    count: int


@dataclass
class Analysed:
    """What a batch gave. ``failed``: files that could not be analysed, and why."""

    files: int = 0
    packets: int = 0
    connections: list[dict[str, Any]] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)

    def add(self, other: Analysed) -> None:
        """What another gave, behind this."""
        self.files += other.files
        self.packets += other.packets
        self.connections += other.connections
        self.problems += other.problems
        self.failed += other.failed


def process_batch(paths: Sequence[str], bin_ns: int, packets: bool, out: Path | None) -> Analysed:
    """Analyse these captures; with ``out`` also write their rows as one part of each table there, its manifest last.

    A path may be several, joined by TOGETHER: they are read as one capture. The same paths, content and settings make the same part under
    the same name, whoever runs it, also when two do at once.
    A file that cannot be analysed is told and left out. OSError: the part cannot be written.
    """
    done = Analysed()
    if out is None:
        for path in paths:
            list(_readings(path, bin_ns, False, done))
        return done
    read: list[Capture] = []
    with tables.PartWriter(out, packets) as writer:
        for path in paths:
            for capture, rows in _readings(path, bin_ns, packets, done):
                writer.add(capture, rows)
                read.append(capture)
        if read:
            part = Part(VERSION, bin_ns, packets, tuple(read))
            writer.keep(part.name)
            manifest.write(out, part)
    return done


def _readings(path: str, bin_ns: int, packets: bool, done: Analysed) -> Iterator[tuple[Capture, Tables]]:
    """What was read; of captures of which one keeps all from being read as one, each by itself."""
    tried = Analysed()
    found = _read(path, bin_ns, packets, tried)
    if found is None and TOGETHER in path:
        for one in path.split(TOGETHER):
            yield from _readings(one, bin_ns, packets, done)
        return
    done.add(tried)
    if found is not None:
        yield found


def _read(path: str, bin_ns: int, packets: bool, done: Analysed) -> tuple[Capture, Tables] | None:
    files, name = path.split(TOGETHER), named(path)
    try:
        capture = Capture.at(path)
        if len(files) == 1:
            rows = core.analyse(path, bin_ns=bin_ns, packets=packets)
        else:
            rows = core.analyse_together(files, bin_ns=bin_ns, packets=packets)
    except OSError as error:
        done.failed.append((name, error.strerror or str(error)))
        return None
    told = rows["file"]
    if any(kind in told["problems"] for kind in NO_CAPTURE):
        kinds = [NO_CAPTURE.get(kind, kind.replace("_", " ")) for kind in told["problems"]]
        done.failed.append((name, ", ".join(kinds)))
        return None
    done.files += len(files)
    done.packets += told["packets"]
    done.connections += connections_of(name, rows)
    first: dict[str, int] = {}
    for problem in tables.arrow("problems", name, rows["problems"]).to_pylist():
        first.setdefault(problem["kind"], problem["packet"])
    done.problems += [Problem(name, kind, first.get(kind), count) for kind, count in told["problems"].items()]
    if told["other_packets"] or not told["tcp_packets"]:
        done.problems.append(Problem(name, NO_TCP, None, told["other_packets"]))
    return capture, rows
