"""The native pass's tables as Arrow, and as Parquet (docs/reference/captures.md): the one form from the
pass to the figures, whether they come of a part or of a reading just now."""

from __future__ import annotations

import ipaddress
import os
import uuid
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from tandem_server import tandem_trace_core as core
from tandem_server.analysis.traces.manifest import TABLES, Capture
from tandem_server.durable import sync

if TYPE_CHECKING:  # the library has no types of its own when it runs
    from tandem_server.tandem_trace_core import File, Table, Tables

Rows = Any
"""pyarrow.Table, which has no types."""
ROWS_AT_ONCE = 1 << 20
"""What is held before it is written, by table; the size of a row group."""
NAMES: dict[str, tuple[str, ...]] = {
    "direction": core.DIRECTIONS,
    "joined_by": core.JOINED_BY,
    "rtt_method": core.RTT_METHODS,
    "vantage": core.VANTAGES,
    "closed_by": core.CLOSED_BY,
}
"""Columns of codes, the same in every table; ``kind`` differs."""
YES_OR_NO = frozenset(
    (
        *("multipath", "opener_known", "handshake_seen", "uncertain", "disordered", "fallback"),
        *("opened_by_responder", "backup", "timestamps"),
    )
)
_HELD = (
    ("goodput_bytes", "goodput_bytes", 1.0),
    ("in_flight_bytes", "in_flight_mean_bytes", 1.0),
    ("rtt_mean_ms", "rtt_mean_ns", 1e6),
    ("rtt_max_ms", "rtt_max_ns", 1e6),
)
BIN = (
    *("connection", "subflow", "direction", "bin_start_utc_ns", "reorder_queue_max_bytes"),
    *(source for _, source, _ in _HELD),
)
"""Of the table ``bins``, what ``bins_of`` and ``queue_of`` take."""
FILES = pa.schema(
    [
        *(("file", pa.string()), ("size_bytes", pa.uint64()), ("mtime_utc_ns", pa.int64()), ("bin_ns", pa.int64())),
        *(("format", pa.string()), ("compression", pa.string()), ("bytes", pa.uint64()), ("packets", pa.uint64())),
        *(("tcp_packets", pa.uint64()), ("other_packets", pa.uint64())),
        *(("first_utc_ns", pa.int64()), ("last_utc_ns", pa.int64())),
        *(("link_types", pa.list_(pa.int32())), ("bounded", pa.list_(pa.string())), ("problems", pa.uint64())),
    ]
)


def names_of(table: str, column: str) -> tuple[str, ...] | None:
    """What the codes of a column mean; None when it has none."""
    if column == "kind":
        return core.PROBLEM_KINDS if table == "problems" else core.EVENT_KINDS
    return NAMES.get(column)


def arrow(name: str, file: str, table: Table) -> Rows:
    """One table of the native pass: the file's name before its columns, codes and yes or no by name, addresses as text."""
    rows = table["rows"]
    files = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array([file], pa.string()))
    columns = {"file": files}
    for column, (dtype, data, validity) in table["columns"].items():
        absent = None
        if validity is not None:
            bits = np.unpackbits(np.frombuffer(validity, np.uint8), bitorder="little")[:rows]
            absent = ~bits.astype(np.bool_)
        values = np.frombuffer(data, dtype)
        if dtype == "V16":
            there = np.ones(rows, np.bool_) if absent is None else ~absent
            told = [_address(bytes(value)) if known else None for value, known in zip(values, there, strict=True)]
            columns[column] = pa.array(told, pa.string())
        elif names := names_of(name, column):
            codes = pa.array(values.astype(np.int8), mask=absent)
            columns[column] = pa.DictionaryArray.from_arrays(codes, pa.array(names, pa.string()))
        elif column in YES_OR_NO:
            columns[column] = pa.array(values.astype(np.bool_), mask=absent)
        else:
            columns[column] = pa.array(values, mask=absent)
    return pa.table(columns)


def _address(raw: bytes) -> str:
    """As people write it: IPv4 where it is a mapped one."""
    whole = ipaddress.IPv6Address(raw)
    return str(whole.ipv4_mapped or whole)


def read(out: Path, table: str, parts: Sequence[str], names: Sequence[str]) -> Rows:
    """Columns of all these parts, and ``file``; codes by their names, as ``arrow`` has them."""
    found = [
        pq.read_table(path, columns=["file", *names], partitioning=None)
        for part in parts
        if (path := out / table / f"{part}.parquet").is_file()
    ]
    return pa.concat_tables(found).unify_dictionaries() if found else pa.table({name: [] for name in ("file", *names)})


def files_in(rows: Rows) -> list[str]:
    """Each once."""
    found: list[str] = rows["file"].unique().to_pylist()
    return found


def bins_of(rows: Rows, flows: Sequence[tuple[str, int, str, int]], start_utc_ns: int, width: int) -> Rows:
    """The bins of ``flows``, each by its file, subflow, direction and the ``flow`` that it is: that, the bin's ``place``, counted from the
    first one that begins at ``start_utc_ns`` or after it, and what it holds, absent NaN."""
    kinds = {"file": pa.string(), "subflow": pa.int64(), "direction": pa.string()}
    schema = pa.schema([*kinds.items(), ("flow", pa.int64())])
    wanted = pa.Table.from_pylist([dict(zip(schema.names, flow, strict=True)) for flow in flows], schema)
    own = rows.filter(pc.is_valid(rows["subflow"]))
    for name, kind in kinds.items():
        own = own.set_column(own.schema.get_field_index(name), name, own[name].cast(kind))
    own = own.join(wanted, keys=list(kinds), join_type="inner")
    since = pc.subtract(own["bin_start_utc_ns"].cast(pa.int64()), start_utc_ns + (-start_utc_ns % width))
    made = {"flow": own["flow"], "place": pc.divide(since, width)}
    for name, source, unit in _HELD:
        made[name] = pc.fill_null(pc.divide(own[source].cast(pa.float64(), safe=False), unit), np.nan)
    return pa.table(made)


def in_order(pieces: Sequence[Rows]) -> dict[str, NDArray[Any]]:
    """Of ``bins_of``, the columns of all, in order of subflow and time."""
    rows = pa.concat_tables(pieces).sort_by([("flow", "ascending"), ("place", "ascending")])
    return {name: np.asarray(rows[name].to_numpy()) for name in rows.column_names}


def queue_of(rows: Rows, file: str, connection: int, way: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """A connection's data-level queue: when its bins begin (UTC ns), and the most bytes in it, absent NaN."""
    mine = pc.and_(pc.equal(rows["connection"], connection), pc.equal(rows["direction"].cast(pa.string()), way))
    mine = pc.and_(pc.and_(mine, pc.is_null(rows["subflow"])), pc.equal(rows["file"].cast(pa.string()), file))
    own = rows.filter(mine).sort_by("bin_start_utc_ns")
    queue = own["reorder_queue_max_bytes"].cast(pa.float64(), safe=False)
    return own["bin_start_utc_ns"].cast(pa.int64()).to_numpy(), np.asarray(queue.to_numpy(), dtype=np.float64)


def counted(
    rows: Rows, of: str, value: str, count: str
) -> dict[tuple[str, int, str], tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """By file, ``of`` (connection or subflow) and direction a column of values, absent NaN, and how often each was seen; a value may be
    there repeatedly."""
    if not rows.num_rows:
        return {}
    columns = {name: rows[name].cast(pa.string()) for name in ("file", "direction")}
    columns |= {name: rows[name].cast(pa.float64()) for name in (value, count)}
    keys = ("file", of, "direction")
    table = pa.table({of: rows[of], **columns})
    grouped = table.group_by(list(keys)).aggregate([(value, "list"), (count, "list")])
    lists = [grouped[f"{name}_list"] for name in (value, count)]
    return {
        key: (np.array(values, dtype=np.float64), np.array(counts, dtype=np.float64))
        for key, values, counts in zip(
            zip(*(grouped[name].to_pylist() for name in keys), strict=True),
            *(column.to_pylist() for column in lists),
            strict=True,
        )
    }


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
        for name in self._paths:
            if name != "files":
                self.add_rows(name, arrow(name, capture.file, tables[name]))  # type: ignore[literal-required]

    def add_rows(self, table: str, rows: Rows) -> None:
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
            sync(path.parent)

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


def write_table(path: Path, rows: Sequence[Mapping[str, Any]], kinds: Mapping[str, str]) -> None:
    """A table of anything, whole or not at all, None absent. ``kinds``: by column ``str``, ``int``, ``float`` or ``bool``."""
    types = {"str": pa.string(), "int": pa.int64(), "float": pa.float64(), "bool": pa.bool_()}
    draft = path.with_name(f"{path.name}.tmp")
    schema = pa.schema([(name, types[kind]) for name, kind in kinds.items()])
    pq.write_table(pa.Table.from_pylist(list(rows), schema), draft, compression="zstd")
    draft.replace(path)


def _file_row(capture: Capture, told: File) -> Rows:
    row = {
        **told,
        "file": capture.file,
        "size_bytes": capture.size_bytes,
        "mtime_utc_ns": capture.mtime_ns,
        "problems": sum(told["problems"].values()),
    }
    return pa.Table.from_pylist([{field.name: row[field.name] for field in FILES}], FILES)
