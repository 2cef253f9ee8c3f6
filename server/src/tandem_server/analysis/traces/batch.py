"""One batch of captures, from their paths to what is told of them: what a process is given to do."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tandem_server import tandem_trace_core as core
from tandem_server.analysis.traces import manifest
from tandem_server.analysis.traces.columns import listed
from tandem_server.analysis.traces.connections import connections_of
from tandem_server.analysis.traces.manifest import TOGETHER, VERSION, Capture, Part, named

if TYPE_CHECKING:  # the library has no types of its own when it runs
    from tandem_server.tandem_trace_core import Tables


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
    captures = []
    for path in paths:
        try:
            captures.append((path, Capture.at(path)))
        except OSError as error:
            done.failed.append((error.filename or path, error.strerror or str(error)))
    if out is None:
        for path, _ in captures:
            _read(path, bin_ns, False, done)
        return done
    parquet = importlib.import_module("tandem_server.analysis.traces.parquet")
    read: list[Capture] = []
    with parquet.PartWriter(out, packets) as writer:
        for path, capture in captures:
            if (tables := _read(path, bin_ns, packets, done)) is not None:
                writer.add(capture, tables)
                read.append(capture)
        if read:
            part = Part(VERSION, bin_ns, packets, tuple(read))
            writer.keep(part.name)
            manifest.write(out, part)
    return done


def _read(path: str, bin_ns: int, packets: bool, done: Analysed) -> Tables | None:
    files, name = path.split(TOGETHER), named(path)
    try:
        if len(files) == 1:
            tables = core.analyse(path, bin_ns=bin_ns, packets=packets)
        else:
            tables = core.analyse_together(files, bin_ns=bin_ns, packets=packets)
    except OSError as error:
        done.failed.append((name, error.strerror or str(error)))
        return None
    told = tables["file"]
    if any(kind in told["problems"] for kind in NO_CAPTURE):
        for file in files:
            alone = told if len(files) == 1 else core.analyse(file)["file"]
            if alone["format"] is None:
                kinds = [NO_CAPTURE.get(kind, kind.replace("_", " ")) for kind in alone["problems"]]
                done.failed.append((file, ", ".join(kinds)))
        return None
    done.files += len(files)
    done.packets += told["packets"]
    done.connections += connections_of(name, tables)
    first: dict[str, int] = {}
    for kind, packet in zip(listed(tables["problems"], "kind"), listed(tables["problems"], "packet"), strict=True):
        first.setdefault(core.PROBLEM_KINDS[kind], packet)
    done.problems += [Problem(name, kind, first.get(kind), count) for kind, count in told["problems"].items()]
    if told["other_packets"] or not told["tcp_packets"]:
        done.problems.append(Problem(name, NO_TCP, None, told["other_packets"]))
    return tables
