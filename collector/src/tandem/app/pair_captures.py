"""Captures of the paths that a run or a pair uses. One that cannot begin is noted; the run goes on without it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tandem.app.parts import CaptureEnd, CaptureLike, CapturesLike, EnvironmentLackError
from tandem.schema.manifest import RunFile

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Captured:
    """A capture that ended, with its path."""

    path: str
    end: CaptureEnd

    def run_file(self, folder: Path) -> RunFile:
        """Its entry in a manifest."""
        name = str(self.end.file.relative_to(folder))
        return RunFile(name=name, bytes=self.end.bytes, sha256=self.end.sha256, packets=self.end.packets)


class PairCaptures:
    """``paths``: interface by path. ``stem``: what the files' names begin with, the run's id or, for captures that runs share, the
    pair's."""

    def __init__(self, captures: CapturesLike, paths: Mapping[str, str], folder: Path, stem: str) -> None:
        self._running: list[tuple[str, CaptureLike]] = []
        self.problems: dict[str, str] = {}
        wanted = [(path, captures.of(name, folder / f"{stem}-{path}.pcap")) for path, name in paths.items()]
        with ThreadPoolExecutor(max_workers=max(1, len(wanted))) as pool:  # each waits until tcpdump listens
            begun = list(pool.map(self._begin, wanted))
        self._running = [one for one in begun if one is not None]

    def _begin(self, wanted: tuple[str, CaptureLike]) -> tuple[str, CaptureLike] | None:
        path, capture = wanted
        try:
            capture.start()
        except EnvironmentLackError as error:
            self.problems[path] = str(error)
            log.warning("no capture of path %s: %s", path, error)
            return None
        return path, capture

    def stop(self) -> list[Captured]:
        """End all of them."""
        running, self._running = self._running, []
        if not running:
            return []
        with ThreadPoolExecutor(max_workers=len(running)) as pool:
            ends = list(pool.map(lambda one: one[1].stop(), running))
        done = [Captured(path, end) for (path, _), end in zip(running, ends, strict=True)]
        for captured in done:
            if captured.end.cut:
                self.problems[captured.path] = captured.end.reason or "cut"
        return done


def captures_on_disk(folder: Path) -> int:
    """Bytes that captures take in ``folder`` already."""
    return sum(p.stat().st_size for p in folder.glob("*.pcap*")) if folder.is_dir() else 0
