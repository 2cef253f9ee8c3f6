"""Everything the server has of one run: manifest, the ledger's word, records, files, its pair. Nothing is written."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np

from tandem.schema.metrics import MEASUREMENTS
from tandem_server.analysis import recorded as records
from tandem_server.analysis.reading import mapping, mappings, text, whole
from tandem_server.analysis.recorded import Recorded, name_by_run
from tandem_server.analysis.records import Clock, Piece, SourceError, Span, piece_of
from tandem_server.analysis.runs import run_paths
from tandem_server.ledger.numbers import Numbers
from tandem_server.ledger.reader import row_of
from tandem_server.ledger.records import RecordCounts
from tandem_server.ledger.runs import RunRow, promise_of
from tandem_server.registry import Registry, Run, TraceRow
from tandem_server.store import QueryError, SeriesStore, StoreDown

_SAMPLES, _SERIES = 6000, 64
"""Of one subflow, and how many of these, at most; where a run has more samples, each row is a mean."""
_EVENTS, _EVENT_SERIES = 100, 200
"""Of one kind and path, and how many kinds and paths."""
_SAMPLE_NS = 100 * 10**6
_READ = {
    "subflow": ("goodput_bit_per_s", "rtt_ms"),
    "connection": ("goodput_bit_per_s",),
    "event": ("change_db", "detail"),
}


class RunSource:
    """``records.Source`` of what belongs to one run, and of the events meanwhile; other measurements are empty."""

    def __init__(self, store: SeriesStore, run: str) -> None:
        self._store, self._run = store, run

    def step_ns(self, start_utc_ns: int, end_utc_ns: int) -> int | None:
        """Over how long rows of samples are means in this time; None: they are the samples themselves."""
        step = -(-(end_utc_ns - start_utc_ns) // _SAMPLES)
        return None if step <= _SAMPLE_NS else -(-step // 10**9) * 10**9

    def pieces(
        self,
        measurement: str,
        probe: str,
        span: Span,
        fields: Sequence[str] | None = None,  # noqa: ARG002  as ``Source`` has it
    ) -> list[Piece]:
        """See ``Source``; both times must be given, and the fields are ``_READ``."""
        start, end = span
        if measurement not in _READ or start is None or end is None:
            return []
        where = f'"probe" = $probe AND time >= {int(start)} AND time <= {int(end)}'
        step, read = self.step_ns(start, end), _READ[measurement]
        if measurement == "event":
            what, by, bound = ", ".join(f'"{name}"' for name in read), "*", (_EVENTS, _EVENT_SERIES)
            what += ', "monotonic_ns"'  # so that an event without any of these is a row, too
        else:
            where += ' AND "run" = $run'
            how = "{}" if step is None else "mean({0}) AS {0}"
            what = ", ".join(how.format(f'"{name}"') for name in read)
            by = "*" if step is None else f"*, time({step}ns) fill(none)"
            bound = (2 * _SAMPLES, _SERIES)
        name = MEASUREMENTS[measurement].name
        asked = f'SELECT {what} FROM "{name}" WHERE {where} GROUP BY {by} LIMIT {bound[0]} SLIMIT {bound[1]}'  # noqa: S608  of the schema
        try:
            answer = self._store.query(asked, {"probe": probe, "run": self._run})
        except (StoreDown, QueryError) as error:
            raise SourceError(f"the database could not be asked: {error}") from error
        return [piece_of(measurement, series) for series in answer]

    def numbers(self, measurement: str, probe: str, boots: Collection[str]) -> Numbers:  # noqa: ARG002  as ``Source`` has it
        """See ``Source``: none, the ledger has counted them."""
        return np.empty(0, dtype=np.int64)


_BEFORE_NS, _AFTER_NS = 2 * 10**9, 5 * 10**9
_LONGEST_NS = 86_400 * 10**9
_LATEST_NS = 4 * 10**18
_MOST_FILES = 1000


@dataclass(frozen=True, slots=True)
class FileOfRun:
    """A file that the manifest promises, or that came without: ``trace`` is what the server has of it, None: nothing yet. ``why``:
    the ledger's word for a file that is not here."""

    name: str
    bytes: int | None
    sha256: str | None
    promised: bool
    trace: TraceRow | None
    why: str


@dataclass(slots=True)
class RunAccount:
    """``row`` None, ``recorded`` None: ``trouble`` says why. ``end_s`` of the records that were asked for, from the run's start;
    ``step_s``: over how long each sample is a mean, None: it is as it was recorded. ``cut``: the run was longer than what was read."""

    run: Run
    made_utc_ns: int
    row: RunRow | None = None
    recorded: Recorded | None = None
    trouble: list[str] = field(default_factory=list)
    files: list[FileOfRun] = field(default_factory=list)
    pair: list[Run] = field(default_factory=list)
    end_s: float = 1.0
    step_s: float | None = None
    cut: bool = False


def files_of(registry: Registry, run: Run) -> list[FileOfRun]:
    """Those of the manifest in its order, then those that came of this run without. sqlite3.Error."""
    found: dict[str, FileOfRun] = {}
    for told in promise_of(run).files[:_MOST_FILES]:
        trace = registry.traces.named(run.probe, told.name)
        if trace is not None and told.sha256 not in (None, trace.sha256):
            trace = None  # another content under its name: not this run's
        if trace is None and told.sha256 is not None:
            trace = registry.traces.of_content(run.probe, told.sha256)
        found[told.name] = FileOfRun(told.name, told.bytes, told.sha256, True, trace, "not here")
    for trace in registry.traces.of_run(run.probe, run.id):
        if len(found) < _MOST_FILES:
            found.setdefault(trace.name, FileOfRun(trace.name, trace.bytes, trace.sha256, False, trace, ""))
    return list(found.values())


def file_of(registry: Registry, run: Run, name: str) -> TraceRow | None:
    """What the server has of the run's file ``name``; None: nothing, or it is no file of this run. sqlite3.Error."""
    return next((file.trace for file in files_of(registry, run) if file.name == name), None)


def account_of(
    registry: Registry,
    store: SeriesStore | str,
    run_id: str,
    retention_days: int | None = None,
    *,
    with_records: bool = True,
) -> RunAccount | None:
    """None: no manifest of such a run is here. ``store`` may be a text: why there is none. What the database does not tell becomes a
    line in ``trouble``; sqlite3.Error."""
    run = registry.runs.get(run_id)
    if run is None:
        return None
    made = RunAccount(run, time.time_ns(), files=files_of(registry, run))
    if (pair := text(run.manifest, "pair")) is not None:
        made.pair = [one for one in registry.runs.of_pair(run.probe, pair, run.received_utc_ns) if one.id != run.id]
    if isinstance(store, str):
        made.trouble.append(store)
        return made
    try:
        made.row = row_of(registry, RecordCounts(store), run, retention_days, made.made_utc_ns)
    except (StoreDown, QueryError) as error:
        made.trouble.append(f"the database could not be asked what arrived: {error}")
        return made
    if with_records:
        _read(made, store)
    return made


def _read(made: RunAccount, store: SeriesStore) -> None:
    run = made.run
    started, ended = (whole(run.manifest, f"{when}_utc_ns") for when in ("started", "ended"))
    if started is None or ended is None or not _BEFORE_NS <= started <= ended < _LATEST_NS:
        made.trouble.append("the manifest tells no times that there are: the run’s records cannot be asked for")
        return
    made.cut = ended - started > _LONGEST_NS
    ended = min(ended, started + _LONGEST_NS)
    made.end_s = max(1.0, (ended - started) / 1e9)
    source, paths = RunSource(store, run.id), operators_of(run)
    since, until = started - _BEFORE_NS, ended + _AFTER_NS
    step = source.step_ns(since, until)
    made.step_s = None if step is None else step / 1e9
    try:
        found = records.load(source, run.probe, Clock(started), paths, (since, until))
    except SourceError as error:
        made.trouble.append(str(error))
        return
    name_by_run(found, {run.id: run_paths(run.manifest)}, paths)
    made.recorded = found


def operators_of(run: Run) -> dict[str, str]:
    """By path, as the manifest names them."""
    out: dict[str, str] = {}
    places = [
        *mappings(mapping(run.manifest, "parameters"), "paths"),
        *mappings(mapping(run.manifest, "result"), "subflows"),
    ]
    for place in places:
        path, operator = text(place, "name") or text(place, "path"), text(place, "operator")
        if path is not None and operator is not None:
            out.setdefault(path, operator)
    return out
