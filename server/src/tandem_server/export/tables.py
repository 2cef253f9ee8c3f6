"""Tables of a probe's captures, as the server made them when they came, into the folder's own (docs/reference/captures.md).

A capture is named as it lies, or would lie, in the folder: ``probe/NAME/captures/FILE``. A part is a run's or a pair's, or one capture of
the server's own; it is held at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tandem_server.analysis.folder import TRACES, capture_name, parts_of
from tandem_server.analysis.traces import manifest
from tandem_server.analysis.traces.manifest import TABLES, TOGETHER, Part, named
from tandem_server.analysis.traces.tables import PartWriter
from tandem_server.registry import Registry

PACKETS = "packets"


class TableExport:
    """``made``: the probe's tables at the server; ``out``: the campaign folder. ManifestError, OSError as they come."""

    def __init__(self, made: Path, probe: str, out: Path) -> None:
        self._made, self._probe, self._out = made, probe, out / TRACES
        self._parts = manifest.read(made)
        self._part_of = {
            one: name for name, part in self._parts.items() for file in part.files for one in _names(file.file)
        }
        there = manifest.tidy(self._out) if self._out.is_dir() else {}
        self._there = {name: part for name, part in there.items() if self._is_ours(part)}

    def fetch(self, captures: Iterable[str]) -> int:
        """Parts that hold any of these captures, by their names among the probe's files; those that are there left out. How many were
        written."""
        wanted = {self._part_of[one] for one in map(capture_name, captures) if one in self._part_of}
        written = 0
        for name in sorted(wanted):
            part = self._parts[name]
            files = tuple(replace(file, file=self._here(file.file)) for file in part.files)
            here = Part(part.version, part.bin_ns, part.packets, files)
            if here.name not in self._there:
                written += self._copy(name, part, here)
        return written

    def _copy(self, name: str, part: Part, here: Part) -> bool:
        """False: it was taken away meanwhile, since its captures are read anew with others; the next export has these."""
        of = {old.file: new.file for old, new in zip(part.files, here.files, strict=True)}
        try:
            with PartWriter(self._out, part.packets) as writer:
                for table in TABLES:
                    if part.packets or table != PACKETS:
                        rows = pq.read_table(self._made / table / f"{name}.parquet", partitioning=None)
                        files = pa.array([of[file] for file in rows["file"].cast(pa.string()).to_pylist()], pa.string())
                        at = rows.schema.get_field_index("file")
                        # As the native pass's tables have it: text by its number.
                        column = files if table == "files" else files.dictionary_encode()
                        writer.add_rows(table, rows.set_column(at, "file", column))
                writer.keep(here.name)
        except FileNotFoundError:
            return False
        mine = {one for file in here.files for one in _names(file.file)}
        manifest.write(self._out, here)
        # A capture has one part: what is older was made without those that came later.
        for old, its in list(self._there.items()):
            if any(one in mine for file in its.files for one in _names(file.file)):
                manifest.remove(self._out, old)
                del self._there[old]
        self._there[here.name] = here
        return True

    def _here(self, file: str) -> str:
        """Wherever they were read: the server may have fetched them out of a bucket."""
        own = "captures/server/" if "/captures/server/" in file else "captures/"
        return named(TOGETHER.join(f"probe/{self._probe}/{own}{one}" for one in _names(file)))

    def _is_ours(self, part: Part) -> bool:
        return all(file.file.startswith(f"probe/{self._probe}/") for file in part.files)


def states(registry: Registry, probe: str, captures: Iterable[str]) -> dict[str, int]:
    """How many of these captures have been analysed, wait for it, or could not be."""
    known = registry.trace_tables.of(probe)
    told = {"analysed": 0, "waiting": 0, "failed": 0}
    for name in captures:
        if (one := known.get((probe, name))) is not None:
            told[one.state] += 1
    return told


def _names(file: str) -> list[str]:
    return parts_of(capture_name(file))
