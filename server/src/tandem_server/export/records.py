"""Records of a probe, out of the database into one Parquet a measurement and UTC day, of bounded memory whatever a day holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tandem.schema.metrics import MEASUREMENTS
from tandem_server.analysis.record_files import DAY_NS, TIME, day_file, rows_in, schema_of, tags_of
from tandem_server.analysis.records import SourceError
from tandem_server.durable import whole_file
from tandem_server.store import Series, SeriesStore

_ROWS = 16_384
"""Of a row group: so many are held."""


class RecordExport:
    """Asks ``store``: StoreDown, QueryError; writes into ``records``: OSError. ``said`` hears of each day as it is begun."""

    def __init__(self, store: SeriesStore, probe: str, records: Path, said: Callable[[str], None]) -> None:
        self._store, self._probe, self._records, self._said = store, probe, records, said

    def fetch(self, start_utc_ns: int, end_utc_ns: int) -> tuple[int, int]:
        """What is recorded in [start, end) and not in the files yet; how many records there are now, and how many files were written."""
        there = written = 0
        for measurement in MEASUREMENTS:
            for day, count in self._counts(measurement, start_utc_ns, end_utc_ns).items():
                path = day_file(self._records, measurement, day)
                held = _held(path)
                # Fewer than in the file: the database has dropped what is old. The file keeps it.
                if count > held:
                    self._said(f"{measurement} {path.stem}")
                    held = self._day(path, measurement, max(day, start_utc_ns), min(day + DAY_NS, end_utc_ns))
                    written += 1
                there += held
        return there, written

    def _counts(self, measurement: str, start: int, end: int) -> Mapping[int, int]:
        """By UTC day that has any; every record has the field."""
        asked = self._store.query(
            f'SELECT count("monotonic_ns") FROM "{measurement}" WHERE "probe" = $probe'  # noqa: S608  of the schema
            f" AND time >= {start} AND time < {end} GROUP BY time(1d) fill(none)",
            {"probe": self._probe},
        )
        return {int(row[0]): int(row[1]) for series in asked for row in series.rows if row[1]}

    def _day(self, path: Path, measurement: str, start: int, end: int) -> int:
        asked = f'SELECT * FROM "{measurement}" WHERE "probe" = $probe AND time >= {start} AND time < {end} GROUP BY *'  # noqa: S608
        with whole_file(path) as file, RecordWriter(file, measurement) as columns:
            for series in self._store.parts(asked, {"probe": self._probe}):
                columns.add(series)
        return columns.rows


class RecordWriter:
    """Writes records of one measurement into an open Parquet file: gathered by column, written a row group at a time."""

    def __init__(self, file: Any, measurement: str) -> None:  # noqa: ANN401  an open file
        self._schema, self._tags = schema_of(measurement), tags_of(measurement)
        self._writer = pq.ParquetWriter(file, self._schema, compression="zstd")
        self._held: dict[str, list[Any]] = {name: [] for name in self._schema.names}
        self.rows = 0

    def __enter__(self) -> RecordWriter:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._write()
        self._writer.close()

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
        self.rows += len(series.rows)
        if len(self._held[TIME]) >= _ROWS:
            self._write()

    def _write(self) -> None:
        arrays = [_array(self._held[field.name], field.type) for field in self._schema]
        self._writer.write_table(pa.Table.from_arrays(arrays, schema=self._schema))
        for held in self._held.values():
            held.clear()


def _array(values: list[Any], kind: Any) -> Any:  # noqa: ANN401  pyarrow has no types
    try:
        return pa.array(values, type=kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        # One of another type than the schema's (recorded by an older collector) is absent, as everywhere.
        return pa.array([_typed(value, kind) for value in values], type=kind)


def _typed(value: Any, kind: Any) -> Any:  # noqa: ANN401  of a database's JSON
    try:
        return pa.scalar(value, type=kind).as_py()
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return None


def _held(path: Path) -> int:
    try:
        return rows_in(path)
    except SourceError:  # no file of ours: fetched anew
        return 0
