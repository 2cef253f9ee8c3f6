"""Records as files of a campaign folder, ``probe/NAME/records/MEASUREMENT/DAY.parquet`` (docs/reference/campaign-folder.md, "records/").

Apart from ``records``, so that a server that reads none holds no pyarrow.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tandem.schema.metrics import COMMON_FIELDS, COMMON_TAGS, MEASUREMENTS
from tandem_server.analysis.records import Row, SourceError
from tandem_server.ledger.numbers import Numbers

TIME = "utc_ns"
DAY_NS = 86_400 * 10**9
_KINDS = {"int": pa.int64(), "float": pa.float64(), "str": pa.string(), "bool": pa.bool_()}
_ROWS = 8192


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
    try:
        return int(pq.read_metadata(path).num_rows)
    except FileNotFoundError:
        return 0
    except (pa.ArrowException, OSError) as error:
        raise _unread(path, error) from error


class RecordFiles:
    """``Source`` over ``records``, the folder of one probe; a few thousand records are held at a time."""

    def __init__(self, records: Path) -> None:
        self._records = records

    def rows(
        self,
        measurement: str,
        probe: str,
        start_utc_ns: int | None,
        end_utc_ns: int | None,
        fields: Sequence[str] | None = None,
    ) -> Iterator[Row]:
        """See ``Source``."""
        tags, columns = tags_of(measurement), schema_of(measurement).names
        low, high = start_utc_ns or 0, 2**63 - 1 if end_utc_ns is None else end_utc_ns
        wanted = [c for c in columns if fields is None or c in (TIME, "monotonic_ns", *tags, *fields)]
        kept = [c for c in wanted if c != TIME and c not in tags]
        for path in self._files(measurement, low, high):
            for batch in _batches(path, wanted):
                for row in batch.to_pylist():
                    if low <= row[TIME] <= high and row["probe"] == probe:
                        yield Row(
                            row[TIME],
                            {name: row[name] for name in tags if row.get(name)},
                            {name: row[name] for name in kept if row.get(name) is not None},
                        )

    def numbers(self, measurement: str, probe: str, boots: Collection[str]) -> Numbers:
        """See ``Source``."""
        parts = [np.empty(0, dtype=np.int64)]
        for path in self._files(measurement, 0, 2**63 - 1):
            for batch in _batches(path, ["probe", "boot", "seq"]):
                told = batch.to_pydict()
                rows = zip(told["probe"], told["boot"], told["seq"], strict=True)
                parts.append(
                    np.array([n for p, b, n in rows if p == probe and b in boots and n is not None], dtype=np.int64)
                )
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
    try:
        told = pq.read_metadata(path)
    except FileNotFoundError:
        return False
    except (pa.ArrowException, OSError) as error:
        raise _unread(path, error) from error
    groups = (told.row_group(n).column(0).statistics for n in range(told.num_row_groups))  # TIME is the first
    return any(one is None or (one.min <= high and low <= one.max) for one in groups)


def _batches(path: Path, columns: Sequence[str]) -> Iterator[Any]:
    try:
        with closing(pq.ParquetFile(path)) as file:
            there = [c for c in columns if c in file.schema_arrow.names]
            yield from file.iter_batches(batch_size=_ROWS, columns=there)
    except (pa.ArrowException, OSError) as error:
        raise _unread(path, error) from error


def _unread(path: Path, error: Exception) -> SourceError:
    return SourceError(f"{path} cannot be read: {str(error).splitlines()[0]}; hint: remove it and export again")
