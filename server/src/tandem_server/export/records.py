"""Records of a probe into one Parquet a measurement and UTC day, of bounded memory whatever a day holds.

Samples of runs come out of their files (``analysis/run_samples.py``) where these have as many as the database or more, all else out of the
database. It has more where samples came after the file was made, and fewer where it has dropped what is old.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tandem.schema.metrics import MEASUREMENTS
from tandem_server.analysis.record_files import (
    DAY_NS,
    TIME,
    batches_within,
    column_of,
    conformed,
    day_file,
    rows_by_day,
    rows_in,
    schema_of,
    tags_of,
)
from tandem_server.analysis.records import SourceError
from tandem_server.analysis.run_samples import FOLDER, SAMPLED, RunSamples, of_runs
from tandem_server.durable import whole_file
from tandem_server.store import Series, SeriesStore

_ROWS = 16_384
"""Of a row group: about so many are held."""
_Counts = dict[int, Counter[str]]
"""By UTC day and run, how many records; the run is '' in measurements that have no files of samples."""


class RecordExport:
    """Asks ``store``: StoreDown, QueryError; writes into ``records``: OSError. ``said`` hears of each day as it is begun. ``lost``: by name
    and run the files of samples that cannot be read and of whose records the database has none."""

    def __init__(
        self, store: SeriesStore, samples: RunSamples, probe: str, records: Path, said: Callable[[str], None]
    ) -> None:
        self._store, self._samples, self._probe, self._records, self._said = store, samples, probe, records, said
        self.lost: dict[str, str] = {}

    def fetch(self, start_utc_ns: int, end_utc_ns: int) -> tuple[int, int]:
        """What is recorded in [start, end) and not in the files yet; how many records there are now, and how many files were written."""
        there = written = 0
        for measurement in MEASUREMENTS:
            stored = self._stored(measurement, start_utc_ns, end_utc_ns)
            filed = self._filed(measurement, start_utc_ns, end_utc_ns, stored)
            for day in sorted({*stored, *filed}):
                path = day_file(self._records, measurement, day)
                held = _held(path)
                # Fewer than in the file: the database has dropped what is old. The file keeps it.
                while (stored[day] | filed[day]).total() > held:
                    self._said(f"{measurement} {path.stem}")
                    start, end = max(day, start_utc_ns), min(day + DAY_NS, end_utc_ns)
                    try:
                        held = self._day(path, measurement, start, end, stored[day], filed[day])
                    except SourceError:  # a file of samples, which is left out from now on
                        continue
                    written += 1
                    break
                there += held
        return there, written

    def _stored(self, measurement: str, start: int, end: int) -> _Counts:
        """In the database; every record has the field."""
        by = '"run", ' if measurement in SAMPLED else ""
        asked = self._store.query(
            f'SELECT count("monotonic_ns") FROM "{measurement}" WHERE "probe" = $probe'  # noqa: S608  of the schema
            f" AND time >= {start} AND time < {end} GROUP BY {by}time(1d) fill(none)",
            {"probe": self._probe},
        )
        found: _Counts = defaultdict(Counter)
        for series in asked:
            for row in series.rows:
                if row[1]:
                    found[int(row[0])][series.tags.get("run", "")] = int(row[1])
        return found

    def _filed(self, measurement: str, start: int, end: int, stored: _Counts) -> _Counts:
        """In files of samples that can be read."""
        found: _Counts = defaultdict(Counter)
        for run in sorted(self._samples.runs(self._probe)) if measurement in SAMPLED else ():
            try:
                for day, count in rows_by_day(self._file(run, measurement), start, end).items():
                    found[day][run] = count
            except SourceError:
                self._unread(run, measurement, any(of_day[run] for of_day in stored.values()))
        return found

    def _day(
        self, path: Path, measurement: str, start: int, end: int, stored: Counter[str], filed: Counter[str]
    ) -> int:
        """How many it has now. SourceError: of a run whose file cannot be read, and which is in ``filed`` no more."""
        out_of_files = {run for run, count in filed.items() if count >= stored[run]}
        wheres = [f" AND ({some})" for some in of_runs(sorted({*stored} - out_of_files))] if out_of_files else [""]
        with whole_file(path) as file, RecordWriter(file, measurement) as writer:
            for run in sorted(out_of_files):
                try:
                    for batch in batches_within(self._file(run, measurement), writer.columns, start, end - 1):
                        writer.add_batch(batch)
                except SourceError:
                    del filed[run]
                    self._unread(run, measurement, stored[run] > 0)
                    raise
            for where in wheres:
                asked = (
                    f'SELECT * FROM "{measurement}" WHERE "probe" = $probe AND time >= {start} AND time < {end}'  # noqa: S608  of the schema
                    f"{where} GROUP BY *"
                )
                for series in self._store.parts(asked, {"probe": self._probe}):
                    writer.add(series)
        return writer.rows

    def _file(self, run: str, measurement: str) -> Path:
        return self._samples.folder(self._probe, run) / f"{measurement}.parquet"

    def _unread(self, run: str, measurement: str, in_database: bool) -> None:
        if not in_database:
            self.lost[f"{FOLDER}/{run}/{measurement}.parquet"] = run


class RecordWriter:
    """Writes records of one measurement into an open Parquet file: gathered by column, written a row group at a time."""

    def __init__(self, file: Any, measurement: str) -> None:  # noqa: ANN401  an open file
        self._schema, self._tags = schema_of(measurement), tags_of(measurement)
        self._writer = pq.ParquetWriter(file, self._schema, compression="zstd")
        self._held: dict[str, list[Any]] = {name: [] for name in self.columns}
        self._batches: list[Any] = []
        self._written = self.rows = 0

    def __enter__(self) -> RecordWriter:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._write()
        self._writer.close()

    @property
    def columns(self) -> list[str]:
        """Their names."""
        return list(self._schema.names)

    def add(self, series: Series) -> None:
        """A piece of a series."""
        places = {name: n for n, name in enumerate(series.columns)} | {TIME: 0}
        for name, held in self._held.items():
            if name in self._tags:
                held.extend([series.tags.get(name) or None] * len(series.rows))
            elif (n := places.get(name)) is None:
                held.extend([None] * len(series.rows))
            else:
                held.extend(row[n] for row in series.rows)
        self._count(len(series.rows))

    def add_batch(self, batch: Any) -> None:  # noqa: ANN401  (pyarrow.RecordBatch)
        """Of another such file."""
        self._batches.append(conformed(batch, self._schema))
        self._count(len(batch))

    def _count(self, more: int) -> None:
        self.rows += more
        if self.rows - self._written >= _ROWS:
            self._write()

    def _write(self) -> None:
        arrays = [column_of(self._held[field.name], field.type) for field in self._schema]
        held = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        self._writer.write_table(pa.Table.from_batches([*self._batches, held]))
        self._written = self.rows
        self._batches.clear()
        for values in self._held.values():
            values.clear()


def _held(path: Path) -> int:
    try:
        return rows_in(path)
    except SourceError:  # no file of ours: fetched anew
        return 0
