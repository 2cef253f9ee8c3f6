"""Where records come from: an InfluxDB, files of a campaign folder, or a list in memory; and the one time axis that they are put on.

The analysis knows only ``Source``."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tandem.schema.metrics import MEASUREMENTS
from tandem.schema.metrics.table import COMMON_FIELDS, COMMON_TAGS
from tandem.schema.record import Value
from tandem_server.analysis.folder import CampaignFolder
from tandem_server.ledger.numbers import Numbers
from tandem_server.registry import Registry, RegistryError
from tandem_server.store import (
    Influx,
    PrivateInflux,
    QueryError,
    Series,
    SeriesStore,
    StoreDown,
    StoreStartError,
    find_influxd,
)
from tandem_server.store.private import account_password


class SourceError(Exception):
    """The records cannot be read; one line, why."""


@dataclass(frozen=True, slots=True)
class Row:
    """One record as stored: its time, tags (with ``probe`` and ``boot``) and the fields that are there."""

    utc_ns: int
    tags: Mapping[str, str]
    fields: Mapping[str, Value]


class Source(Protocol):
    """Records of one campaign's store."""

    def rows(
        self,
        measurement: str,
        probe: str,
        start_utc_ns: int | None,
        end_utc_ns: int | None,
        fields: Sequence[str] | None = None,
    ) -> Iterable[Row]:
        """Records of ``measurement`` by ``probe`` in the time span (inclusive; None is open), those of each set of tags by time;
        SourceError, also while they are read. ``fields``: those that are needed, None: all."""
        ...

    def numbers(self, measurement: str, probe: str, boots: Collection[str]) -> Numbers:
        """The ``seq`` of every record of ``measurement`` in these boots that carries one, in any order; SourceError."""
        ...


@dataclass(frozen=True, slots=True)
class Clock:
    """``start_monotonic_ns`` is None in the field; ``start_utc_ns`` is second 0 on the wall clock. ``boot``: in which the monotonic time
    was read; None: there was one only."""

    start_utc_ns: int
    start_monotonic_ns: int | None = None
    boot: str | None = None

    def seconds(self, utc_ns: int | None, monotonic_ns: int | None, boot: str | None = None) -> float | None:
        """Seconds since the start, or None when neither time serves. ``boot``: of ``monotonic_ns``."""
        same = self.boot is None or boot is None or boot == self.boot
        if same and self.start_monotonic_ns is not None and monotonic_ns is not None:
            return (monotonic_ns - self.start_monotonic_ns) / 1e9
        if utc_ns is not None:
            return (utc_ns - self.start_utc_ns) / 1e9
        return None


class InfluxSource:
    """``Source`` over a store's client."""

    def __init__(self, influx: SeriesStore) -> None:
        self._influx = influx

    def rows(
        self,
        measurement: str,
        probe: str,
        start_utc_ns: int | None,
        end_utc_ns: int | None,
        fields: Sequence[str] | None = None,
    ) -> Iterator[Row]:
        """See ``Source``. One query, whose answer is not held: a campaign of weeks has millions of records."""
        span = "" if start_utc_ns is None else f" AND time >= {int(start_utc_ns)}"
        span += "" if end_utc_ns is None else f" AND time <= {int(end_utc_ns)}"
        # Every record has the last one: without it those that have none of the fields would be no rows.
        what = "*" if fields is None else ", ".join(f'"{name}"' for name in dict.fromkeys((*fields, "monotonic_ns")))
        answer = self._ask(
            f'SELECT {what} FROM "{_known(measurement)}" WHERE "probe" = $probe{span} GROUP BY *',  # noqa: S608  (see _known)
            probe=probe,
        )
        return (row for series in answer for row in rows_of(series))

    def numbers(self, measurement: str, probe: str, boots: Collection[str]) -> Numbers:
        """See ``Source``."""
        parts = [
            np.array([n for n in series.column("seq") if n is not None], dtype=np.int64)
            for boot in sorted(boots)
            for series in self._ask(
                f'SELECT "seq" FROM "{_known(measurement)}" WHERE "probe" = $probe AND "boot" = $boot',  # noqa: S608  (see _known)
                probe=probe,
                boot=boot,
            )
        ]
        return np.concatenate([np.empty(0, dtype=np.int64), *parts])

    def _ask(self, influxql: str, **params: str) -> Iterator[Series]:
        try:
            yield from self._influx.parts(influxql, params)
        except (StoreDown, QueryError) as error:
            raise SourceError(f"the database could not be asked: {error}") from error


def _known(measurement: str) -> str:
    """Names cannot be placeholders in a query: only those of the schema go into one."""
    return MEASUREMENTS[measurement].name


def rows_of(series: Series) -> Iterator[Row]:
    """The records of a series; absent fields and tags are left out."""
    tags = {name: value for name, value in series.tags.items() if value}
    names = series.columns[1:]
    for row in series.rows:
        fields = {name: value for name, value in zip(names, row[1:], strict=True) if value is not None}
        yield Row(int(row[0]), tags, fields)


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


def records_of(folder: Path, probe: str) -> RecordFiles | None:
    """The records that lie in a campaign folder; None: it has none, and names a store."""
    records = folder / "probe" / probe / "records"
    return RecordFiles(records) if records.is_dir() else None


def _batches(path: Path, columns: Sequence[str]) -> Iterator[Any]:
    try:
        with closing(pq.ParquetFile(path)) as file:
            there = [c for c in columns if c in file.schema_arrow.names]
            yield from file.iter_batches(batch_size=_ROWS, columns=there)
    except (pa.ArrowException, OSError) as error:
        raise _unread(path, error) from error


def _unread(path: Path, error: Exception) -> SourceError:
    return SourceError(f"{path} cannot be read: {str(error).splitlines()[0]}; hint: remove it and export again")


DATABASE, REGISTRY = Path("server", "influxdb"), Path("server", "registry.sqlite")
"""In a campaign folder."""


@contextlib.contextmanager
def folder_database(place: Path, name: str, url: str, binary: Path | None = None) -> Iterator[Source | str]:
    """The database ``name`` whose files lie in ``place`` and that may answer at ``url``, or why there is none. ``binary``: what starts it,
    where that is there."""
    if not (place / "tandem.password").is_file():
        yield f"{place} holds no database of this campaign: no records to read"
        return
    answering = _answering(place, name, url)
    if answering is not None:
        with contextlib.closing(answering) as client:
            yield InfluxSource(client)
        return
    if pid := _held_by(place):
        yield f"the database in {place} is held by process {pid} and does not answer here; end it, or report when it has ended"
        return
    try:
        found = binary if binary is not None and binary.is_file() else find_influxd()
        with PrivateInflux(found, place, 0, name) as private, contextlib.closing(private.client()) as client:
            yield InfluxSource(client)
    except StoreStartError as error:
        yield f"the database in {place} cannot be started: {error}"


def _answering(place: Path, database: str, url: str) -> Influx | None:
    """A client when the campaign's own database answers at ``url``: another one there does not know the account."""
    try:
        client = Influx(url, database, "tandem", account_password(place), timeout_s=30.0)
    except (ValueError, OSError):  # no address, no password
        return None
    try:
        client.query("SHOW MEASUREMENTS LIMIT 1")
    except (StoreDown, QueryError):
        client.close()
        return None
    return client


def _held_by(place: Path) -> int | None:
    """The process that runs a database on ``place`` already (in another network namespace): two would spoil the files."""
    wanted = os.fsencode(str((place / "influxd.conf").resolve()))
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                words = (entry / "cmdline").read_bytes().split(b"\0")
                if b"-config" in words and any(
                    os.path.realpath(w) == wanted for w in words if w.endswith(b"influxd.conf")
                ):
                    return int(entry.name)
    return None


def in_ledger_of(campaign: CampaignFolder, file: Path) -> set[str] | str:
    """Ids of the probe's runs that the server with the registry ``file`` has, or why that is not known. An export's all are."""
    if campaign.exported:
        return {str(manifest["id"]) for manifest in campaign.manifests}
    if not file.is_file():
        return f"{file} is not there: whether the runs' manifests arrived is not known"
    try:
        with Registry(file) as registry:
            return {run.id for run in registry.runs.each(campaign.probe)}
    except RegistryError as error:
        return f"the ledger cannot be read: {error}"
