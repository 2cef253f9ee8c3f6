"""Manifests that the gateway does not have yet, remembered on disk."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

from tandem.export.times import Stamp
from tandem.spool.durable import sync_folder, write_durably

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")


class PendingManifests:
    """One empty file a pending run in ``folder``; the manifest itself is ``runs``/ID.json. For any number of threads."""

    def __init__(self, folder: Path, runs: Path) -> None:
        self._folder, self._runs = folder, runs
        folder.mkdir(parents=True, exist_ok=True)
        self._waiting: set[str] = {p.name for p in folder.iterdir() if _ID.match(p.name)}

    def add(self, run: str) -> None:
        """The manifest of ``run`` lies in its folder: send it. ValueError when that is no id; OSError when the disk is full."""
        if not _ID.match(run):
            raise ValueError(f"{run!r} is no run's id")
        fd = os.open(self._folder / run, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o640)
        os.close(fd)
        sync_folder(self._folder)
        self._waiting.add(run)

    def waiting(self) -> list[str]:
        """Ids not yet acknowledged."""
        return sorted(self._waiting)

    def read(self, run: str) -> bytes | None:
        """The manifest, None when it is gone."""
        try:
            return (self._runs / f"{run}.json").read_bytes()
        except FileNotFoundError:
            return None

    def rewrite(self, run: str, content: bytes) -> None:
        """Keep ``content`` as the manifest of ``run``, durable on return; OSError when the disk takes nothing."""
        if content != self.read(run):
            write_durably(self._runs / f"{run}.json", content)

    def done(self, run: str) -> None:
        """The gateway has it, or will never take it."""
        (self._folder / run).unlink(missing_ok=True)
        self._waiting.discard(run)


def timed(content: bytes, stamp: Callable[[str, int], Stamp]) -> bytes:
    """The manifest with the times that its records get: UTC of its beginning and end by the map of its boot (``times.Times.stamp``).
    NotYet while there is none; as it is when nobody will ever know, or it has none to be computed from."""
    try:
        manifest = json.loads(content)
        boot, started, ended = manifest["boot"], manifest["started_monotonic_ns"], manifest["ended_monotonic_ns"]
        if not (isinstance(boot, str) and type(started) is int and type(ended) is int):
            return content
        first, last = stamp(boot, started), stamp(boot, ended)
    except (ValueError, KeyError, TypeError, RecursionError):
        return content
    if (manifest.get("started_utc_ns"), manifest.get("ended_utc_ns")) == (first.utc_ns, last.utc_ns):
        return content
    manifest |= {"started_utc_ns": first.utc_ns, "ended_utc_ns": last.utc_ns}
    return (json.dumps(manifest, indent=1, allow_nan=False) + "\n").encode()
