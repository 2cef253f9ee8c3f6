"""Samples of a run, ten a second, in files of its own: ``PROBE/.samples/RUN/MEASUREMENT.parquet`` in the server's folder of traces, with
the columns of an export's records. Who reads a run, or exports it, asks the database only for those that have none yet."""

from __future__ import annotations

import importlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from tandem_server.analysis.records import InfluxSource, Piece, Source, Span
from tandem_server.ledger.numbers import Numbers
from tandem_server.store import SeriesStore
from tandem_server.store.influx import literal

SAMPLED = ("subflow", "connection")
FOLDER = ".samples"
"""Below a probe's traces, whose names never begin with a dot."""
_RUNS_AT_ONCE, _MOST_ALONE = 100, 2000


class RunSamples:
    """``traces``: the server's folder of traces."""

    def __init__(self, traces: Path) -> None:
        self._traces = traces

    def folder(self, probe: str, run: str) -> Path:
        """Where a run's are; all of them when it is there."""
        return self._traces / probe / FOLDER / run

    def runs(self, probe: str) -> set[str]:
        """Those that are there, for this user: to another one the database has them."""
        try:
            return {one.name for one in (self._traces / probe / FOLDER).iterdir() if not one.name.startswith(".")}
        except (FileNotFoundError, PermissionError):
            return set()

    def source(self, probe: str, runs: Iterable[str]) -> Source:
        """Their samples."""
        files = importlib.import_module("tandem_server.analysis.record_files")  # pyarrow: who reads none does without
        found: Source = files.SampleFiles([self.folder(probe, run) for run in runs])
        return found


class SampledSource(InfluxSource):
    """The database's records; samples of runs that have files are the files'."""

    def __init__(self, influx: SeriesStore, samples: RunSamples) -> None:
        super().__init__(influx)
        self.samples = samples

    def pieces(self, measurement: str, probe: str, span: Span, fields: Sequence[str] | None = None) -> Iterator[Piece]:
        """See ``Source``."""
        for source in self._sources(measurement, probe):
            yield from source.pieces(measurement, probe, span, fields)

    def numbers(self, measurement: str, probe: str, boots: Collection[str]) -> Numbers:
        """See ``Source``."""
        parts = [source.numbers(measurement, probe, boots) for source in self._sources(measurement, probe)]
        return np.concatenate([np.empty(0, dtype=np.int64), *parts])

    def _sources(self, measurement: str, probe: str) -> Iterator[Source]:
        there = self.samples.runs(probe) if measurement in SAMPLED else set()
        asked = f'SHOW TAG VALUES FROM "{measurement}" WITH KEY = "run" WHERE "probe" = {literal(probe)}'
        known = {str(row[1]) for series in self.ask(asked) for row in series.rows} if there else set()
        left = sorted(known - there)
        if not there or len(left) > _MOST_ALONE:  # nearly all are to be asked for
            yield InfluxSource(self.store)
            return
        yield self.samples.source(probe, sorted(there))
        for some in of_runs(left):
            yield InfluxSource(self.store, some)


def of_runs(runs: Sequence[str]) -> Iterator[str]:
    """InfluxQL that records of these runs meet; each is of some of them."""
    for at in range(0, len(runs), _RUNS_AT_ONCE):
        yield " OR ".join(f'"run" = {literal(run)}' for run in runs[at : at + _RUNS_AT_ONCE])


def means(pieces: Iterable[Piece], step_ns: int) -> Iterator[Piece]:
    """Of each series the means of windows of ``step_ns``, as InfluxQL's ``mean(…) GROUP BY *, time(…)`` has them: in order, at their
    beginnings. Numbers only; a window without any is left out."""
    series: dict[frozenset[tuple[str, str]], list[Piece]] = {}
    for piece in pieces:
        series.setdefault(frozenset(piece.tags.items()), []).append(piece)
    for parts in series.values():
        windows, at = np.unique(np.concatenate([one.utc_ns for one in parts]) // step_ns * step_ns, return_inverse=True)
        columns, some = {}, np.zeros(len(windows), dtype=np.bool_)
        for name in sorted({name for one in parts for name, values in one.fields.items() if values.dtype != object}):
            values = np.concatenate([one.numbers(name) for one in parts])
            told = np.isfinite(values)
            counts = np.bincount(at[told], minlength=len(windows))
            totals = np.bincount(at[told], values[told], minlength=len(windows))
            columns[name] = np.divide(totals, counts, where=counts > 0, out=np.full(len(windows), np.nan))
            some |= counts > 0
        yield Piece(parts[0].tags, windows[some], {name: values[some] for name, values in columns.items()})


def bounded(pieces: Iterable[Piece], most_records: int, most_series: int) -> list[Piece]:
    """Of so many series, so many records each at most."""
    counts: dict[frozenset[tuple[str, str]], int] = {}
    kept = []
    for piece in pieces:
        key = frozenset(piece.tags.items())
        count = counts.get(key, 0)
        if count >= most_records or (key not in counts and len(counts) >= most_series):
            continue
        first = slice(most_records - count)
        kept.append(Piece(piece.tags, piece.utc_ns[first], {name: v[first] for name, v in piece.fields.items()}))
        counts[key] = count + len(kept[-1].utc_ns)
    return kept
