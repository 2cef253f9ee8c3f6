"""Results that probes hand in with their sessions: one JSON object each, on disk."""

from __future__ import annotations

import os
from pathlib import Path

from tandem_server.http.body import Unreadable, read_json
from tandem_server.http.rates import DiskShare

RESULT_BYTES = 256 * 1024
"""The largest result."""


class BadResult(Unreadable):
    """The body is no result."""


class Results:
    """``folder``/PROBE/RUN/SESSION.json, each as it was sent, within each probe's ``share`` of the disk. Safe to use from any thread."""

    def __init__(self, folder: Path, share: DiskShare) -> None:
        self._folder, self._share = folder, share

    def put(self, probe: str, run: str, session: str, body: bytes) -> None:
        """Keep a session's result, in place of one that it had; BadResult, OSError (a full disk, a share
        used up). The names are those of an open
        session, so they are safe as names of files."""
        self._share.check(probe)
        content = read_json(body, BadResult)  # by the standard: here, not by whoever reads it later
        if not isinstance(content, dict):
            raise BadResult("the body is no JSON object")
        folder = self._folder / probe / run
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = folder / f"{session}.json.tmp"
        try:
            with unfinished.open("wb") as file:
                file.write(body)
                file.flush()
                os.fsync(file.fileno())
            unfinished.rename(folder / f"{session}.json")
        except OSError:
            unfinished.unlink(missing_ok=True)
            raise
        self._share.charge(probe, len(body))
