"""Where records come from: an InfluxDB, files of a campaign folder (``record_files``), or a list in memory; and the one time axis that they
are put on.

The analysis knows only ``Source``.
"""

from __future__ import annotations

import contextlib
import importlib
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tandem.schema.metrics import COMMON_FIELDS, MEASUREMENTS
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
class Piece:
    """Records that have the same tags (``probe`` and ``boot`` among them): their times, and by field a column as long. Numbers are float64,
    absent NaN, or int64 where none is absent; texts and flags are objects, absent None."""

    tags: Mapping[str, str]
    utc_ns: NDArray[np.int64]
    fields: Mapping[str, NDArray[Any]]

    def numbers(self, name: str) -> NDArray[np.float64]:
        """A field of numbers, NaN where it is absent."""
        found = self.fields.get(name)
        return np.full(len(self.utc_ns), np.nan) if found is None else found.astype(np.float64)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Tags and fields of each record; those that are absent are left out."""
        columns = [(name, values.tolist()) for name, values in self.fields.items()]
        for n in range(len(self.utc_ns)):
            yield {**self.tags, **{name: v for name, values in columns if (v := values[n]) is not None and v == v}}


def piece_of(measurement: str, series: Series) -> Piece:
    """Of a database's answer. What is of another type than the schema's (recorded by an older collector) is absent."""
    kinds = {f.name: f.kind for f in (*MEASUREMENTS[measurement].fields, *COMMON_FIELDS)}
    columns = {
        name: _column([row[n] for row in series.rows], kinds[name])
        for n, name in enumerate(series.columns)
        if name in kinds
    }
    tags = {name: value for name, value in series.tags.items() if value}
    return Piece(tags, np.array([row[0] for row in series.rows], dtype=np.int64), columns)


def _column(values: list[Any], kind: str) -> NDArray[Any]:
    if kind in ("str", "bool"):
        of = str if kind == "str" else bool
        return np.array([value if isinstance(value, of) else None for value in values], dtype=object)
    known = [v if isinstance(v, int | float) and not isinstance(v, bool) else None for v in values]
    return np.array(known, dtype=np.int64 if all(isinstance(v, int) for v in known) else np.float64)


Span = tuple[int | None, int | None]
"""UTC ns, both included; None is open."""
EVER: Span = (None, None)


class Source(Protocol):
    """Records of one campaign's store."""

    def pieces(self, measurement: str, probe: str, span: Span, fields: Sequence[str] | None = None) -> Iterable[Piece]:
        """Records of ``measurement`` by ``probe`` in the time span, a set of tags may come repeatedly;
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

    def times(self, piece: Piece) -> NDArray[np.float64]:
        """Seconds since the start of each record."""
        at, boot = (piece.utc_ns - self.start_utc_ns) / 1e9, piece.tags.get("boot")
        monotonic_ns, same = piece.fields.get("monotonic_ns"), None in (self.boot, boot) or self.boot == boot
        if self.start_monotonic_ns is None or monotonic_ns is None or not same:
            return at
        told = (monotonic_ns - self.start_monotonic_ns) / 1e9
        return np.where(np.isfinite(told), told, at)

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

    @property
    def store(self) -> SeriesStore:
        """What it asks."""
        return self._influx

    def pieces(self, measurement: str, probe: str, span: Span, fields: Sequence[str] | None = None) -> Iterator[Piece]:
        """See ``Source``. One query, whose answer is not held: a campaign of weeks has millions of records."""
        ends = zip((">=", "<="), span, strict=True)
        within = "".join(f" AND time {how} {int(end)}" for how, end in ends if end is not None)
        # Every record has the last one: without it those that have none of the fields would be no rows.
        what = "*" if fields is None else ", ".join(f'"{name}"' for name in dict.fromkeys((*fields, "monotonic_ns")))
        answer = self._ask(
            f'SELECT {what} FROM "{_known(measurement)}" WHERE "probe" = $probe{within} GROUP BY *',  # noqa: S608  (see _known)
            probe=probe,
        )
        return (piece_of(measurement, series) for series in answer)

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


def records_of(folder: Path, probe: str) -> Source | None:
    """The records that lie in a campaign folder; None: it has none, and names a store."""
    records = folder / "probe" / probe / "records"
    if not records.is_dir():
        return None
    found: Source = importlib.import_module("tandem_server.analysis.record_files").RecordFiles(records)
    return found


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
