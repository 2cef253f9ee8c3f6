"""Tables of captures as Parquet (server/spec/traces-tables.md)."""

from __future__ import annotations

import os
import uuid
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

try:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
except ImportError as error:
    raise ImportError("tables need pyarrow; mend: pip install 'tandem-server[traces]'") from error

from tandem_server.analysis.traces.columns import YES_OR_NO, known_of, listed, names_of
from tandem_server.analysis.traces.manifest import TABLES, Capture, sync_folder

if TYPE_CHECKING:  # the library has no types of its own when it runs
    from tandem_server.tandem_trace_core import File, Table, Tables

ROWS_AT_ONCE = 1 << 20
"""What is held before it is written, by table; the size of a row group."""

FILES = pa.schema(
    [
        *(("file", pa.string()), ("size_bytes", pa.uint64()), ("mtime_utc_ns", pa.int64()), ("bin_ns", pa.int64())),
        *(("format", pa.string()), ("compression", pa.string()), ("bytes", pa.uint64()), ("packets", pa.uint64())),
        *(("tcp_packets", pa.uint64()), ("other_packets", pa.uint64())),
        *(("first_utc_ns", pa.int64()), ("last_utc_ns", pa.int64())),
        *(("link_types", pa.list_(pa.int32())), ("bounded", pa.list_(pa.string())), ("problems", pa.uint64())),
    ]
)


class PartWriter:
    """One part of each table, under drafts' names until ``keep``. Used as ``with PartWriter(…) as writer``: what fails leaves none.

    Drafts are each writer's own: a batch may be given to a second machine while the first one, thought lost, still writes.
    """

    def __init__(self, out: Path, packets: bool) -> None:
        draft = uuid.uuid4().hex
        self._paths = {t: out / t / f"{draft}.tmp" for t in TABLES if packets or t != "packets"}
        self._pending: dict[str, list[Any]] = {table: [] for table in self._paths}
        self._writers: dict[str, Any] = {}

    def __enter__(self) -> PartWriter:
        return self

    def __exit__(self, *_: object) -> None:
        for writer in self._writers.values():
            writer.close()
        for path in self._paths.values():
            path.unlink(missing_ok=True)

    def add(self, capture: Capture, tables: Tables) -> None:
        """One capture's rows."""
        self.add_rows("files", _file_row(capture, tables["file"]))
        by_name: dict[str, Table] = {
            "connections": tables["connections"],
            "subflows": tables["subflows"],
            "totals": tables["totals"],
            "bins": tables["bins"],
            "waits": tables["waits"],
            "rtts": tables["rtts"],
            "events": tables["events"],
            "problems": tables["problems"],
            "packets": tables["packets"],
        }
        for name, table in by_name.items():
            if name in self._paths:
                self.add_rows(name, arrow(name, capture.file, table))

    def add_rows(self, table: str, rows: Any) -> None:  # noqa: ANN401  (pyarrow.Table)
        """Rows that are Arrow's already."""
        self._pending[table].append(rows)
        if sum(piece.num_rows for piece in self._pending[table]) >= ROWS_AT_ONCE:
            self._flush(table)

    def keep(self, name: str) -> None:
        """Written, synced, renamed to the part's name."""
        for table, path in self._paths.items():
            self._flush(table)
            self._writers.pop(table).close()
            with path.open("rb") as file:
                os.fsync(file.fileno())
        for path in self._paths.values():
            path.replace(path.with_name(f"{name}.parquet"))
            sync_folder(path.parent)

    def _flush(self, table: str) -> None:
        pieces, self._pending[table] = self._pending[table], []
        if not pieces:
            return
        rows = pa.concat_tables(pieces).unify_dictionaries().combine_chunks()
        if table not in self._writers:
            path = self._paths[table]
            path.parent.mkdir(parents=True, exist_ok=True)
            self._writers[table] = pq.ParquetWriter(path, rows.schema, compression="zstd")
        self._writers[table].write_table(rows, row_group_size=ROWS_AT_ONCE)


def take_over(out: Path, old: str, new: str, files: Collection[str], packets: bool) -> None:
    """Make part ``new`` of those rows of part ``old`` that are of these files."""
    with PartWriter(out, packets) as writer:
        for table in TABLES:
            if packets or table != "packets":
                rows = pq.read_table(out / table / f"{old}.parquet", partitioning=None)
                mine = pc.is_in(rows["file"].cast(pa.string()), value_set=pa.array(list(files), pa.string()))
                writer.add_rows(table, rows.filter(mine))
        writer.keep(new)


def numbers_by_file(
    out: Path, table: str, part: str, names: Sequence[str]
) -> dict[str, dict[str, NDArray[np.float64]]]:
    """One part's columns by capture, absent NaN, named codes as the native pass numbers them."""
    rows = pq.read_table(out / table / f"{part}.parquet", columns=["file", *names], partitioning=None)
    files = rows["file"].cast(pa.string())
    made = {}
    for file in pc.unique(files).to_pylist():
        own = rows.filter(pc.equal(files, file))
        made[file] = {name: _numbers(table, name, own[name]) for name in names}
    return made


def columns(out: Path, table: str, parts: Sequence[str], names: Sequence[str]) -> dict[str, Any]:
    """Columns of all these parts: ``file`` as numbers of the files that ``files`` names, text as objects, whole numbers as int64 where
    none is absent, everything else as float64 with absent NaN; named codes as the native pass numbers them, -1 absent."""
    read = [
        pq.read_table(out / table / f"{part}.parquet", columns=["file", *names], partitioning=None)
        for part in parts
        if (out / table / f"{part}.parquet").is_file()
    ]
    if not read:
        return {"files": [], "file": np.empty(0, np.int64), **{name: np.empty(0, np.float64) for name in names}}
    rows = pa.concat_tables(read).unify_dictionaries()
    files = rows["file"].cast(pa.string()).combine_chunks().dictionary_encode()
    made: dict[str, Any] = {"files": files.dictionary.to_pylist(), "file": files.indices.to_numpy().astype(np.int64)}
    for name in names:
        column = rows[name]
        if names_of(table, name):
            made[name] = np.nan_to_num(_numbers(table, name, column), nan=-1).astype(np.int64)
        elif pa.types.is_string(column.type):
            made[name] = np.array(column.to_pylist(), dtype=object)
        elif column.null_count or pa.types.is_floating(column.type):
            made[name] = _numbers(table, name, column)
        else:
            made[name] = np.asarray(column.to_numpy()).astype(np.int64)
    return made


def write_table(path: Path, rows: dict[str, Any], kinds: dict[str, str]) -> None:
    """A table of anything, whole or not at all, None absent. ``kinds``: by column ``str``, ``int``, ``float`` or ``bool``."""
    types = {"str": pa.string(), "int": pa.int64(), "float": pa.float64(), "bool": pa.bool_()}
    draft = path.with_name(f"{path.name}.tmp")
    made = {name: pa.array(values, types[kinds[name]]) for name, values in rows.items()}
    pq.write_table(pa.table(made), draft, compression="zstd")
    draft.replace(path)


def rows_by_file(
    out: Path, table: str, part: str, names: Sequence[str], files: Sequence[str]
) -> dict[str, list[dict[str, Any]]]:
    """One part's rows of these captures, of small tables; names as text."""
    made: dict[str, list[dict[str, Any]]] = {file: [] for file in files}
    for row in pq.read_table(out / table / f"{part}.parquet", columns=["file", *names], partitioning=None).to_pylist():
        if (file := row.pop("file")) in made:
            made[file].append(row)
    return made


def texts_by_file(out: Path, table: str, parts: Sequence[str], name: str) -> dict[str, set[str]]:
    """By capture what a column of names has in these parts."""
    made: dict[str, set[str]] = {}
    for part in parts:
        if (file := out / table / f"{part}.parquet").is_file():
            for row in pq.read_table(file, columns=["file", name], partitioning=None).to_pylist():
                made.setdefault(row["file"], set()).add(row[name])
    return made


def _numbers(table: str, name: str, column: Any) -> NDArray[np.float64]:  # noqa: ANN401  (pyarrow.ChunkedArray)
    if codes := names_of(table, name):
        column = pc.index_in(column.cast(pa.string()), value_set=pa.array(codes, pa.string()))
    return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(), dtype=np.float64)


def arrow(name: str, file: str, table: Table) -> Any:  # noqa: ANN401  (pyarrow.Table)
    """One table of the native pass: the file's name before its columns, codes and yes or no by name, addresses as text."""
    rows = table["rows"]
    columns = {
        "file": pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array([file], pa.string()))
    }
    for column, (dtype, data, validity) in table["columns"].items():
        known = known_of(validity, rows)
        absent = None if known is None else ~known
        if dtype == "V16":
            columns[column] = pa.array(listed(table, column), pa.string())
        elif names := names_of(name, column):
            codes = pa.array(np.frombuffer(data, dtype).astype(np.int8), mask=absent)
            columns[column] = pa.DictionaryArray.from_arrays(codes, pa.array(names, pa.string()))
        elif column in YES_OR_NO:
            columns[column] = pa.array(np.frombuffer(data, dtype).astype(np.bool_), mask=absent)
        else:
            columns[column] = pa.array(np.frombuffer(data, dtype), mask=absent)
    return pa.table(columns)


def _file_row(capture: Capture, told: File) -> Any:  # noqa: ANN401  (pyarrow.Table)
    row = {
        **told,
        "file": capture.file,
        "size_bytes": capture.size_bytes,
        "mtime_utc_ns": capture.mtime_ns,
        "problems": sum(told["problems"].values()),
    }
    return pa.Table.from_pylist([{field.name: row[field.name] for field in FILES}], FILES)
