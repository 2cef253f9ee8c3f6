"""Files of a run, out of the store of received traces."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from tandem.schema.trace import is_name
from tandem_server.analysis.one_run import files_of
from tandem_server.export.whole import whole_file
from tandem_server.registry import Registry, Run, TraceRow
from tandem_server.uploads.store import NotTheFile, TraceStore, file_parts

CAPTURES = "captures/"
At = Callable[[str], TraceStore]
"""The store that has a place."""


def fetch_files(
    registry: Registry, at: At, run: Run, folder: Path, *, captures: bool
) -> tuple[int, list[str], list[str]]:
    """The run's files that the server has into the probe's ``folder``, those that are there left out, and captures unless asked for: how
    many were written, what could not be, a line each, and the names under which the server has them all. OSError, TraceStoreDown."""
    written, damaged, known = 0, list[str](), list[str]()
    for told in files_of(registry, run):
        if told.trace is None or not is_name(told.name):
            continue
        known.append(told.trace.name)
        if told.name.startswith(CAPTURES) and not captures:
            continue
        path = folder / told.name
        if path.is_file() and path.stat().st_size == told.trace.bytes:
            continue
        try:
            _copy(at(told.trace.place), told.trace, path)
            written += 1
        except NotTheFile as error:
            damaged.append(f"{run.probe}/{told.name}: {error}")
    return written, damaged, known


def _copy(store: TraceStore, row: TraceRow, path: Path) -> None:
    found = hashlib.sha256()
    try:
        stored = store.open(row.place)
    except FileNotFoundError as error:
        raise NotTheFile(f"{row.place} is gone from the store") from error
    with stored, whole_file(path) as file:
        for part in file_parts(stored, row.encoding):
            found.update(part)
            file.write(part)
        if found.hexdigest() != row.sha256:
            raise NotTheFile(f"{row.place} has another SHA-256 than was promised")
