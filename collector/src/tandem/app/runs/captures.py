"""Captures of the paths that runs use, under one disk budget; and what an earlier life of the collector left of its captures."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tandem.app.config_schema import CaptureConfig
from tandem.capture import Budget, Capture, CaptureError, CaptureResult
from tandem.capture.pcap import Salvaged, salvage_all
from tandem.schema.manifest import RunFile

log = logging.getLogger(__name__)

FOLDER = "captures"
"""Of the probe's folder."""

_NAME = re.compile(r"((?:run|pair)-[0-9a-f]{12})-(.+)\.pcap\.tmp")
"""The run's or group's id (``schema.manifest.new_id``) and the path."""


class Captures(Budget):
    """Makes captures that share the budget. ``used_bytes``: what captures take on the disk already."""

    def __init__(self, config: CaptureConfig, used_bytes: int) -> None:
        super().__init__(config.budget_bytes, used_bytes)
        self._snaplen_bytes = config.snaplen_bytes

    def of(self, interface: str, file: Path) -> Capture:
        return Capture(interface, file, self._snaplen_bytes, self)


@dataclass(frozen=True, slots=True)
class Captured:
    """A capture that ended, with its path."""

    path: str
    end: CaptureResult

    def run_file(self, folder: Path) -> RunFile:
        name = str(self.end.file.relative_to(folder))
        return RunFile(name=name, bytes=self.end.bytes, sha256=self.end.sha256, packets=self.end.packets)


class RunCaptures:
    """Of the paths of a run or of a group. One that cannot begin is noted; the run goes on without it. ``paths``: interface by path.
    ``stem``: what the files' names begin with, the run's id or, for captures that runs share, the group's."""

    def __init__(self, captures: Captures, paths: Mapping[str, str], folder: Path, stem: str) -> None:
        self.problems: dict[str, str] = {}
        wanted = [(path, captures.of(name, folder / f"{stem}-{path}.pcap")) for path, name in paths.items()]
        with ThreadPoolExecutor(max_workers=max(1, len(wanted))) as pool:  # each waits until tcpdump listens
            begun = list(pool.map(self._begin, wanted))
        self._running = [one for one in begun if one is not None]

    def _begin(self, wanted: tuple[str, Capture]) -> tuple[str, Capture] | None:
        path, capture = wanted
        try:
            capture.start()
        except CaptureError as error:
            self.problems[path] = str(error)
            log.warning("no capture of path %s: %s", path, error)
            return None
        return path, capture

    def stop(self) -> list[Captured]:
        running, self._running = self._running, []
        if not running:
            return []
        with ThreadPoolExecutor(max_workers=len(running)) as pool:
            ends = list(pool.map(lambda one: one[1].stop(), running))
        done = [Captured(path, end) for (path, _), end in zip(running, ends, strict=True)]
        self.problems |= {c.path: c.end.reason or "cut" for c in done if c.end.cut}
        return done


def captures_on_disk(folder: Path) -> int:
    return sum(p.stat().st_size for p in folder.glob("*.pcap*")) if folder.is_dir() else 0


@dataclass(frozen=True, slots=True)
class SalvagedCapture:
    """``row``: of collector.json's ``captures``, None when nothing of it was whole; ``path``: whose it was, None when its
    name does not say; ``detail``: for people."""

    row: dict[str, Any] | None
    path: str | None
    detail: str


def salvaged_captures(folder: Path) -> list[SalvagedCapture]:
    found = [_salvaged(one) for one in salvage_all(folder / FOLDER)]
    for one in found:
        log.warning("%s", one.detail)
    return found


def _salvaged(one: Salvaged) -> SalvagedCapture:
    name = _NAME.fullmatch(one.left.name)
    owner, path = (name[1], name[2]) if name is not None else ("", None)
    if one.file is None:
        return SalvagedCapture(
            None, path, f"{FOLDER}/{one.left.name} had no whole packet: {one.lost_bytes} bytes lost, it is gone"
        )
    row = {
        "file": f"{FOLDER}/{one.file.name}",
        "bytes": one.bytes,
        "packets": one.packets,
        "path": path,
        "cut": True,
        "run": owner if owner.startswith("run-") else None,
        "pair": owner if owner.startswith("pair-") else None,
        "sha256": one.sha256,
    }
    lost = f", {one.lost_bytes} bytes of its end lost" if one.lost_bytes else ""
    detail = f"{FOLDER}/{one.file.name} was never closed: {one.packets} whole packets ({one.bytes} bytes) kept{lost}"
    return SalvagedCapture(row, path, detail)


def earlier_captures(file: Path, now: list[dict[str, Any]], folder: Path) -> list[dict[str, Any]]:
    """What an earlier life of this collector reported of captures that still lie in the probe's ``folder``, but for those in ``now``;
    ``file``: its account. Nothing when that cannot be read."""
    try:
        rows = json.loads(file.read_bytes())["captures"]
        names = {row["file"] for row in now}
        return [row for row in rows if row["file"] not in names and (folder / row["file"]).exists()]
    except (OSError, ValueError, KeyError, TypeError):
        return []
