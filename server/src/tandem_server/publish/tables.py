"""Records of a probe as Parquet, without what is cut: a batch of rows at a time, whatever a day holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tandem_server.analysis.record_files import DAY_NS, TIME, batches, column_of, conformed, day_file, schema_of
from tandem_server.analysis.records import Piece, Source, records_of
from tandem_server.durable import whole_file
from tandem_server.publish.homes import Fixes, Spans
from tandem_server.publish.identities import CELLS, Check, Finding, Rewriter

_ROWS = 16_384
_PLACE = ("latitude_deg", "longitude_deg", "horizontal_error_m")
_NEVER = {("clock", "reference")}
"""An address in other clothes: chrony's reference id is the time server's."""


class Records:
    """Of one probe of a campaign folder: its files, else what ``store`` has of ``span`` (UTC ns)."""

    def __init__(self, folder: Path, probe: str, store: Source | None, span: tuple[int, int]) -> None:
        self._probe, self._span = probe, span
        self._files = None if records_of(folder, probe) is None else folder / "probe" / probe / "records"
        self._store = store

    def days(self, measurement: str) -> Iterator[tuple[str, Iterator[Any]]]:
        """The name of each day that may have records, with its batches as the schema has them; SourceError."""
        schema = schema_of(measurement)
        if self._files is not None:
            for path in sorted((self._files / measurement).glob("*.parquet")):
                yield path.stem, (conformed(batch, schema) for batch in batches(path, schema.names))
        elif self._store is not None:
            first, last = self._span
            for day in range(first // DAY_NS * DAY_NS, last + 1, DAY_NS):
                span = max(day, first), min(day + DAY_NS - 1, last)
                pieces = self._store.pieces(measurement, self._probe, span)
                yield day_file(Path(), measurement, day).stem, _of_pieces(pieces, schema)

    def fixes(self) -> Fixes:
        """Where the probe was, in order of time."""
        parts: list[list[Any]] = [[np.empty(0, dtype=np.int64)], *([np.empty(0)] for _ in _PLACE)]
        for _, of_day in self.days("position"):
            for batch in of_day:
                found = batch.filter(pc.and_(pc.is_valid(batch["latitude_deg"]), pc.is_valid(batch["longitude_deg"])))
                for part, name in zip(parts, (TIME, *_PLACE), strict=True):
                    part.append(found[name].to_numpy(zero_copy_only=False).astype(part[0].dtype))
        columns = [np.concatenate(part) for part in parts]
        order = np.argsort(columns[0], kind="stable")
        return Fixes(*(column[order] for column in columns))


def write_days(
    records: Records, measurement: str, out: Path, cut: Spans, rewriter: Rewriter, cells: set[int] | None, check: Check
) -> list[tuple[str, str, Finding]]:
    """The days of a measurement into ``out``, those that are there left alone; the identities that were found: file, place in it, what.
    ``cells``: of changes of cell only these are named; None: all. SourceError, OSError."""
    found: list[tuple[str, str, Finding]] = []

    def kept(name: str, of_day: Iterator[Any]) -> Iterator[Any]:
        at = 0
        for batch in of_day:
            found.extend((name, where, one) for where, one in _found(batch, check, at))
            at += len(batch)
            left = batch.filter(pa.array(~cut.hold(batch[TIME].to_numpy())))
            if len(left):
                yield _rewritten(left, measurement, rewriter, cells)

    for day, of_day in records.days(measurement):
        path = out / measurement / f"{day}.parquet"
        if path.is_file():
            continue
        left = kept(f"{measurement}/{day}.parquet", of_day)
        first = next(left, None)
        if first is None:
            continue
        with whole_file(path) as file, pq.ParquetWriter(file, first.schema, compression="zstd") as writer:
            for batch in chain([first], left):
                writer.write_batch(batch)
    return found


def cells_in(out: Path) -> set[int]:
    """Cells that the package's records of the radio tell."""
    found: set[int] = set()
    for name in ("radio", "registration"):
        for path in sorted((out / name).glob("*.parquet")):
            for batch in batches(path, ["eci"]):
                found.update(pc.unique(batch["eci"].drop_null()).to_pylist())
    return found


def faults(path: Path, check: Check) -> Iterator[tuple[str, Finding]]:
    """Identities in a Parquet of a package: where in it, and what. SourceError."""
    at = 0
    for batch in batches(path):
        yield from _found(batch, check, at)
        at += len(batch)


def _found(batch: Any, check: Check, at: int) -> Iterator[tuple[str, Finding]]:  # noqa: ANN401  pyarrow has no types
    """Each different text once, where it stands first in the batch, which begins at row ``at``."""
    for name in batch.schema.names:
        column = batch[name]
        if not pa.types.is_string(column.type):
            continue
        for text in pc.unique(column).to_pylist():
            for one in check.text(text or "", name):
                yield f"row {at + pc.index(column, text).as_py() + 1}, {name}", one


def _rewritten(batch: Any, measurement: str, rewriter: Rewriter, cells: set[int] | None) -> Any:  # noqa: ANN401  as above
    made = []
    for field in batch.schema:
        column, name = batch[field.name], field.name
        if rewriter.absent(name) or (measurement, name) in _NEVER:
            made.append(pa.nulls(len(batch), field.type))
        elif pa.types.is_string(field.type):
            coded = column.dictionary_encode()
            texts = [None if t is None else rewriter.text(t, name) for t in coded.dictionary.to_pylist()]
            made.append(pa.array(texts, type=field.type).take(coded.indices))
        elif name in CELLS:
            if cells is not None and name in ("from_eci", "to_eci"):
                known = pc.is_in(column, value_set=pa.array(sorted(cells), type=field.type))
                column = pc.if_else(known, column, pa.scalar(None, field.type))
            coded = column.dictionary_encode()
            others = [rewriter.cell(name, value) for value in coded.dictionary.to_pylist()]
            made.append(pa.array(others, type=field.type).take(coded.indices))
        else:
            made.append(column)
    return pa.RecordBatch.from_arrays(made, schema=batch.schema)


def _of_pieces(pieces: Iterable[Piece], schema: Any) -> Iterator[Any]:  # noqa: ANN401  as above
    every = ((at, row) for one in pieces for at, row in zip(one.utc_ns.tolist(), one.rows(), strict=True))
    while held := [{TIME: at, **row} for at, row in islice(every, _ROWS)]:
        columns = [column_of([row.get(f.name) for row in held], f.type) for f in schema]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)
