"""Records as files of a campaign folder, ``probe/NAME/records/MEASUREMENT/DAY.parquet`` (docs/reference/campaign-folder.md, "records/").

Apart from ``records``, so that a server that reads none holds no pyarrow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from tandem.schema.metrics import COMMON_FIELDS, COMMON_TAGS, MEASUREMENTS
from tandem_server.analysis.records import Piece, SourceError, Span
from tandem_server.ledger.numbers import Numbers

TIME = "utc_ns"
DAY_NS = 86_400 * 10**9
_KINDS = {"int": pa.int64(), "float": pa.float64(), "str": pa.string(), "bool": pa.bool_()}
_ROWS = 1 << 16


def tags_of(measurement: str) -> tuple[str, ...]:
    """Its tags, those of every record too."""
    return tuple(dict.fromkeys((*MEASUREMENTS[measurement].tags, *COMMON_TAGS)))


def schema_of(measurement: str) -> pa.Schema:
    """``utc_ns``, the tags, the fields; absent is null."""
    fields = {f.name: f for f in (*MEASUREMENTS[measurement].fields, *COMMON_FIELDS)}
    columns = [(TIME, pa.int64()), *((tag, pa.string()) for tag in tags_of(measurement))]
    columns += [(name, _KINDS[f.kind]) for name, f in fields.items() if name not in tags_of(measurement)]
    return pa.schema(columns)


def day_file(records: Path, measurement: str, utc_ns: int) -> Path:
    """Where the records of the UTC day with this time are."""
    day = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=utc_ns // DAY_NS)
    return records / measurement / f"{day:%Y-%m-%d}.parquet"


def rows_in(path: Path) -> int:
    """How many records a file has; 0 without one. SourceError where it is no such file."""
    footer = _footer(path)
    return 0 if footer is None else int(footer.num_rows)


def rows_by_day(path: Path, start: int, end: int) -> Counter[int]:
    """By UTC day, how many records of [start, end) a file has; none without one. SourceError."""
    found: Counter[int] = Counter()
    for batch in batches_within(path, [TIME], start, end - 1) if overlaps(path, start, end - 1) else ():
        found.update((batch[TIME].to_numpy() // DAY_NS * DAY_NS).tolist())
    return found


class RecordFiles:
    """``Source`` over ``records``, the folder of one probe; ``_ROWS`` records at most are held at a time."""

    def __init__(self, records: Path) -> None:
        self._records = records

    def pieces(self, measurement: str, probe: str, span: Span, fields: Sequence[str] | None = None) -> Iterator[Piece]:
        """See ``Source``."""
        tags, columns = tags_of(measurement), schema_of(measurement).names
        low, high = span[0] or 0, 2**63 - 1 if span[1] is None else span[1]
        wanted = [c for c in columns if fields is None or c in (TIME, "monotonic_ns", *tags, *fields)]
        for path in self._files(measurement, low, high):
            for batch in batches(path, wanted):
                mine = pc.and_(_within(batch, low, high), pc.equal(batch["probe"], probe))
                yield from _pieces(batch.filter(mine), tags)

    def numbers(self, measurement: str, probe: str, boots: Collection[str]) -> Numbers:
        """See ``Source``."""
        parts, own = [np.empty(0, dtype=np.int64)], pa.array(list(boots), pa.string())
        for path in self._files(measurement, 0, 2**63 - 1):
            for batch in batches(path, ["probe", "boot", "seq"]):
                mine = pc.and_(pc.equal(batch["probe"], probe), pc.is_in(batch["boot"], value_set=own))
                parts.append(batch.filter(mine)["seq"].drop_null().to_numpy().astype(np.int64))
        return np.concatenate(parts)

    def _files(self, measurement: str, low: int, high: int) -> list[Path]:
        found = sorted((self._records / MEASUREMENTS[measurement].name).glob("*.parquet"))
        first = day_file(self._records, measurement, low).name
        last = day_file(self._records, measurement, min(high, 4 * 10**18)).name
        return [path for path in found if first <= path.name <= last]


class SampleFiles(RecordFiles):
    """``Source`` over folders that have a file a measurement."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = folders

    def _files(self, measurement: str, low: int, high: int) -> list[Path]:
        found = [folder / f"{MEASUREMENTS[measurement].name}.parquet" for folder in self._folders]
        return [path for path in found if overlaps(path, low, high)]


def overlaps(path: Path, low: int, high: int) -> bool:
    """Whether a file has records of this time, both ends included, as its footer tells. SourceError."""
    told = _footer(path)
    if told is None:
        return False
    groups = (told.row_group(n).column(0).statistics for n in range(told.num_row_groups))  # TIME is the first
    return any(one is None or (one.min <= high and low <= one.max) for one in groups)


def batches_within(path: Path, columns: Sequence[str], low: int, high: int) -> Iterator[Any]:
    """As ``batches``, of the records of this time, both ends included. ``columns``: with TIME."""
    for batch in batches(path, columns):
        yield batch.filter(_within(batch, low, high))


def _within(batch: Any, low: int, high: int) -> Any:  # noqa: ANN401  (pyarrow.RecordBatch)
    return pc.and_(pc.greater_equal(batch[TIME], low), pc.less_equal(batch[TIME], high))


def _footer(path: Path) -> Any:  # noqa: ANN401  (pyarrow.parquet.FileMetaData)
    """None without a file. SourceError."""
    try:
        return pq.read_metadata(path)
    except FileNotFoundError:
        return None
    except (pa.ArrowException, OSError) as error:
        raise _unread(path, error) from error


def batches(path: Path, columns: Sequence[str] | None = None) -> Iterator[Any]:
    """``pyarrow.RecordBatch`` with those of ``columns`` (None: all) that the file has. SourceError."""
    try:
        with closing(pq.ParquetFile(path)) as file:
            there = file.schema_arrow.names
            wanted = there if columns is None else [c for c in columns if c in there]
            yield from file.iter_batches(batch_size=_ROWS, columns=wanted)
    except (pa.ArrowException, OSError) as error:
        raise _unread(path, error) from error


def conformed(batch: Any, schema: pa.Schema) -> Any:  # noqa: ANN401  (pyarrow.RecordBatch)
    """With the schema's columns: an older file may have fewer, or of other types."""
    columns = [
        column_of(batch[field.name], field.type)
        if field.name in batch.schema.names
        else pa.nulls(len(batch), field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def column_of(values: Any, kind: pa.DataType) -> Any:  # noqa: ANN401  (pyarrow.Array)
    """An array, or a list, as an array of this type. A value of another type (recorded by an older collector) is absent, as everywhere."""
    if isinstance(values, pa.Array):
        if values.type == kind:
            return values
        values = values.to_pylist()
    try:
        return pa.array(values, type=kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([_typed(value, kind) for value in values], type=kind)


def _typed(value: Any, kind: pa.DataType) -> Any:  # noqa: ANN401  of a database's JSON
    try:
        return pa.scalar(value, type=kind).as_py()
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return None


def _pieces(batch: Any, tags: Sequence[str]) -> Iterator[Piece]:  # noqa: ANN401  (pyarrow.RecordBatch)
    """A batch by its tags."""
    names = batch.schema.names
    there = [tag for tag in tags if tag in names]
    key, most = np.zeros(len(batch), dtype=np.int64), 1
    for tag in there:
        coded = batch[tag].dictionary_encode()
        if most > 2**62 // (len(coded.dictionary) + 1):
            key, most = np.unique(key, return_inverse=True)[1], len(batch)
        key = key * (len(coded.dictionary) + 1) + pc.fill_null(coded.indices, -1).to_numpy(zero_copy_only=False) + 1
        most *= len(coded.dictionary) + 1
    _, firsts, which = np.unique(key, return_index=True, return_inverse=True)
    order, ends = np.argsort(which, kind="stable"), np.cumsum(np.bincount(which))
    for first, rows in zip(firsts.tolist(), np.split(order, ends[:-1]), strict=True) if len(batch) else ():
        told = {tag: word for tag in there if (word := batch[tag][first].as_py())}
        piece = batch.take(pa.array(rows)) if len(firsts) > 1 else batch
        yield Piece(
            told, piece[TIME].to_numpy(), {name: _values(piece[name]) for name in names if name not in (TIME, *there)}
        )


def _values(column: Any) -> NDArray[Any]:  # noqa: ANN401  (pyarrow.Array)
    if pa.types.is_string(column.type) or pa.types.is_boolean(column.type):
        return np.array(column.to_pylist(), dtype=object)
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _unread(path: Path, error: Exception) -> SourceError:
    return SourceError(f"{path} cannot be read: {str(error).splitlines()[0]}; hint: remove it and export again")
