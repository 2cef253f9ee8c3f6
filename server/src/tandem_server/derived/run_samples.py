"""Samples of runs out of the database into files, once all that a run's manifest promises has come: reports and exports read these
(``analysis/run_samples.py``), also when the database has forgotten them."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from tandem.schema.manifest import PLAIN_NAME
from tandem_server.analysis.reading import whole
from tandem_server.analysis.run_samples import SAMPLED, RunSamples
from tandem_server.durable import sync, whole_file
from tandem_server.export.records import RecordWriter
from tandem_server.http.rates import Reserve
from tandem_server.periodic import Periodic
from tandem_server.registry import DueRun, Registry, Run
from tandem_server.store import Influx
from tandem_server.uploads.store import make_folder

_PERIOD_S = 60.0
_SETTLE_NS = 120 * 10**9
"""After a run's end the sender's samples are in the database, too: no manifest promises these."""
_BEFORE_NS, _AFTER_NS = 2 * 10**9, 60 * 10**9
_LATEST_NS = 4 * 10**18
_AT_ONCE = 50


class RunSampling(Periodic):
    """Writes them into ``traces``, the newest first; ``reserve_bytes`` stay free there."""

    nice = 19

    def __init__(self, registry: Registry, store: Influx, traces: Path, reserve_bytes: int) -> None:
        super().__init__("run samples", _PERIOD_S)
        self._registry, self._store, self._samples = registry, store, RunSamples(traces)
        self._reserve = Reserve([traces], reserve_bytes)

    def turn(self) -> None:
        """See ``once``."""
        self.once(time.time_ns())

    def once(self, now_utc_ns: int) -> int:
        """Write what is due; how many runs. StoreDown, QueryError, OSError, sqlite3.Error: the rest is written next time."""
        runs = self._registry.ledger_runs
        written = 0
        while not self.ending and (due := runs.unsampled(now_utc_ns - _SETTLE_NS, _AT_ONCE)):
            self._reserve.check()
            for one in due:
                if self.ending:
                    break
                run = self._registry.runs.get(one.run)
                if run is not None and run.probe == one.probe:
                    written += self._write(run)
                self._mark(one)
        return written

    def _write(self, run: Run) -> bool:
        """Whether it has samples."""
        started, ended = (whole(run.manifest, f"{when}_utc_ns") for when in ("started", "ended"))
        told = started is not None and ended is not None and _BEFORE_NS <= started <= ended < _LATEST_NS
        if not told or started is None or ended is None or PLAIN_NAME.match(run.id) is None:
            return False
        folder = self._samples.folder(run.probe, run.id)
        draft = folder.with_name(f".{run.id}")
        shutil.rmtree(draft, ignore_errors=True)
        make_folder(draft)
        try:
            rows = [self._records(draft, name, run, started - _BEFORE_NS, ended + _AFTER_NS) for name in SAMPLED]
            if any(rows):
                shutil.rmtree(folder, ignore_errors=True)
                draft.rename(folder)
                sync(folder.parent)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        return any(rows)

    def _records(self, folder: Path, measurement: str, run: Run, start: int, end: int) -> int:
        asked = (
            f'SELECT * FROM "{measurement}" WHERE "probe" = $probe AND "run" = $run AND time >= {start} AND time < {end}'  # noqa: S608  of the schema
            " GROUP BY *"
        )
        with whole_file(folder / f"{measurement}.parquet") as file, RecordWriter(file, measurement) as writer:
            for series in self._store.parts(asked, {"probe": run.probe, "run": run.id}):
                writer.add(series)
        return writer.rows

    def _mark(self, one: DueRun) -> None:
        """What was made of a probe that was erased meanwhile is taken away again."""
        if not self._registry.ledger_runs.sampled(one):
            shutil.rmtree(self._samples.folder(one.probe, one.run), ignore_errors=True)
