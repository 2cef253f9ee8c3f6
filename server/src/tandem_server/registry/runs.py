"""The ledger: every run whose manifest arrived, and what came of it."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any

from tandem_server.registry.probes import Opening


class LedgerConflict(ValueError):  # noqa: N818  (it reads as what it is)
    """The run's id is taken by another probe's run."""


@dataclass(frozen=True, slots=True)
class Run:
    """One row: the manifest as it arrived, ``status`` ``measured`` or ``failed: why`` as the probe told it."""

    id: str
    probe: str
    manifest: dict[str, Any]
    received_utc_ns: int
    status: str


class Runs:
    """The table of runs."""

    def __init__(self, read: Opening, write: Opening) -> None:
        self._read, self._write = read, write

    def put(self, run: str, probe: str, manifest: dict[str, Any]) -> None:
        """Enter a run, or replace it: the last manifest holds, the first arrival's time stays. LedgerConflict."""
        text = json.dumps(manifest, separators=(",", ":"), sort_keys=True)
        with self._write() as connection:
            owner = connection.execute("SELECT probe FROM runs WHERE id = ?", (run,)).fetchone()
            if owner is not None and owner[0] != probe:
                raise LedgerConflict(f"run {run} belongs to another probe")
            connection.execute(
                "INSERT INTO runs (id, probe, manifest, received_utc_ns, status) VALUES (?, ?, ?, ?, ?)"
                " ON CONFLICT (id) DO UPDATE SET manifest = excluded.manifest, status = excluded.status",
                (run, probe, text, time.time_ns(), _status(manifest)),
            )

    def get(self, run: str) -> Run | None:
        """The run with this id, if it arrived."""
        with self._read() as connection:
            row = connection.execute(
                "SELECT id, probe, manifest, received_utc_ns, status FROM runs WHERE id = ?", (run,)
            ).fetchone()
        return None if row is None else _run(row)

    def all(self, probe: str | None = None) -> list[Run]:
        """Every run in the order of arrival, of one probe when named."""
        with self._read() as connection:
            rows = connection.execute(
                "SELECT id, probe, manifest, received_utc_ns, status FROM runs"
                " WHERE ?1 IS NULL OR probe = ?1 ORDER BY received_utc_ns, id",
                (probe,),
            ).fetchall()
        return [_run(row) for row in rows]


def _run(row: tuple[str, str, str, int, str]) -> Run:
    return Run(row[0], row[1], json.loads(row[2]), row[3], row[4])


def _status(manifest: dict[str, Any]) -> str:
    failure = manifest.get("failure")
    if failure:
        return f"failed: {failure.get('reason', 'no reason told')}"
    return "measured" if manifest.get("result") else "failed: no result"
