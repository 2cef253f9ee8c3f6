"""Captures that the endpoint made become traces of their runs: beside what the probe sends, by name, run and hash in the registry.

They stay in the folder of traces of this machine, also where received traces go to a bucket: a run's end waits for no network.
"""

from __future__ import annotations

import time
from pathlib import Path

from tandem.schema.trace import server_capture
from tandem_server.door import Reserve
from tandem_server.registry import Registry, TraceRow
from tandem_server.store.trace_folder import TraceFolder, make_folder

_DRAFTS = ".captures"
"""Beside the probes' folders, whose names never begin with a dot; on the same file system, so that a draft is linked, not copied."""


class Kept:
    """``traces``: the folder of traces. ``reserve_bytes`` of its disk stay free: nothing begins that would go into them."""

    def __init__(self, registry: Registry, traces: Path, reserve_bytes: int = 0) -> None:
        self.reserve = Reserve([traces], reserve_bytes)
        self._traces, self._store, self._drafts = registry.traces, TraceFolder(traces), traces / _DRAFTS
        for leftover in self._drafts.glob("*"):
            leftover.unlink()  # of an endpoint that died

    def taken_bytes(self) -> int:
        """What is kept, of all probes; sqlite3.Error."""
        return self._traces.server_bytes()

    def draft(self, session: str) -> Path:
        """Where a capture is written before it is kept; OSError."""
        make_folder(self._drafts)
        return self._drafts / session

    def keep(self, draft: Path, probe: str, run: str, session: str, size: int, sha256: str) -> str:
        """Make ``draft``, whole, a trace of the run, and say its name. TraceStoreDown, sqlite3.Error: then nothing of it is there."""
        name = server_capture(run, session)
        stored = self._store.put(draft, probe, name, sha256, "identity")
        row = TraceRow(probe, name, run, sha256, size, time.time_ns(), stored.place, "identity", stored.stored_bytes)
        try:
            self._traces.add(row)
        except BaseException:
            (self._store.folder / stored.place).unlink(missing_ok=True)
            raise
        return name
