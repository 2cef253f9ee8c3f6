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
from tandem_server.analysis.traces.manifest import VERSION, Capture, Part

if TYPE_CHECKING:  # the library has no types of its own when it runs
    from tandem_server.tandem_trace_core import Tables


@dataclass(frozen=True)
class Problem:
    """All of one kind in one file. ``packet``: the first one's number; None where the pass had no room to say it."""

    file: str
    kind: str
    packet: int | None
    count: int


@dataclass
class Analysed:
    """What a batch gave. ``multipath``: of each connection, whether any MPTCP option was seen. ``failed``: files that could
    not be analysed, and why."""

    files: int = 0
    packets: int = 0
    connections: list[dict[str, Any]] = field(default_factory=list)
    multipath: list[bool] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)

    def add(self, other: Analysed) -> None:
        """What another gave, behind this."""
        self.files += other.files
        self.packets += other.packets
        self.connections += other.connections
        self.multipath += other.multipath
        self.problems += other.problems
        self.failed += other.failed


def process_batch(paths: Sequence[str], bin_ns: int, packets: bool, out: Path | None) -> Analysed:
    """Analyse these captures; with ``out`` also write their rows as one part of each table there, its manifest last.

    The same paths, content and settings make the same part under the same name, whoever runs it, also when two do at once.
    A file that cannot be analysed is told and left out. OSError: the part cannot be written.
    """
    done = Analysed()
    captures = []
    for path in paths:
        try:
            captures.append((path, Capture.at(path)))
        except OSError as error:
            done.failed.append((path, error.strerror or str(error)))
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
    try:
        tables = core.analyse(path, bin_ns=bin_ns, packets=packets)
    except OSError as error:
        done.failed.append((path, error.strerror or str(error)))
        return None
    told = tables["file"]
    if told["format"] is None:
        kinds = ", ".join(kind.replace("_", " ") for kind in told["problems"])
        done.failed.append((path, kinds or "not a capture"))
        return None
    done.files += 1
    done.packets += told["packets"]
    done.connections += connections_of(path, tables)
    done.multipath += map(bool, listed(tables["connections"], "multipath"))
    first: dict[str, int] = {}
    for kind, packet in zip(listed(tables["problems"], "kind"), listed(tables["problems"], "packet"), strict=True):
        first.setdefault(core.PROBLEM_KINDS[kind], packet)
    done.problems += [Problem(path, kind, first.get(kind), count) for kind, count in told["problems"].items()]
    return tables
