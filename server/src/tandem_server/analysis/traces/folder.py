"""Go on in a folder of tables: what is analysed already is left out, what changed since is taken out of its part."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tandem_server.analysis.traces import manifest
from tandem_server.analysis.traces.manifest import VERSION, Capture, ManifestError, Part


def go_on(out: Path, batches: Sequence[list[str]], bin_ns: int, packets: bool) -> list[list[str]]:
    """What is left to do of these batches; ManifestError when the folder was begun with other settings.

    The batches are those of all files that were named: so those of a run that was stopped are the same as those of one that was not.
    """
    parts = manifest.tidy(out)
    if other := manifest.other_settings(parts.values(), bin_ns, packets):
        raise ManifestError(f"{out} was made with {other}; mend: the same here, or another folder")
    where = {capture.file: name for name, part in parts.items() for capture in part.files}
    held = {capture.file: (capture, part.version) for part in parts.values() for capture in part.files}
    left: list[list[str]] = []
    changed: dict[str, set[str]] = {}
    for batch in batches:
        todo = []
        for path in batch:
            now = _now(path)
            if now is not None and held.get(now.file) == (now, VERSION):
                continue
            todo.append(path)
            if now is not None and now.file in where:
                changed.setdefault(where[now.file], set()).add(now.file)
        if todo:
            left.append(todo)
    for name, files in changed.items():
        _take_out(out, name, parts[name], files)
    return left


def _take_out(out: Path, name: str, part: Part, files: set[str]) -> None:
    kept = tuple(capture for capture in part.files if capture.file not in files)
    if kept:
        rest = replace(part, files=kept, replaces=name)
        parquet = importlib.import_module("tandem_server.analysis.traces.parquet")
        parquet.take_over(out, name, rest.name, [capture.file for capture in kept], part.packets)
        manifest.write(out, rest)
    manifest.remove(out, name)


def _now(path: str) -> Capture | None:
    try:
        return Capture.at(path)
    except OSError:  # analysing it will say why
        return None
