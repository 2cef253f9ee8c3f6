"""Samples of a run, ten a second, in files of its own: ``PROBE/.samples/RUN/MEASUREMENT.parquet`` in the server's folder of traces, with
the columns of an export's records. Who reads a run asks the database only for those that have none yet."""

from __future__ import annotations

import importlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from tandem_server.analysis.records import InfluxSource, Row, Source
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
        self._samples = samples

    def rows(
        self,
        measurement: str,
        probe: str,
        start_utc_ns: int | None,
        end_utc_ns: int | None,
        fields: Sequence[str] | None = None,
    ) -> Iterator[Row]:
        """See ``Source``."""
        for source in self._sources(measurement, probe):
            yield from source.rows(measurement, probe, start_utc_ns, end_utc_ns, fields)

    def numbers(self, measurement: str, probe: str, boots: Collection[str]) -> Numbers:
        """See ``Source``."""
        parts = [source.numbers(measurement, probe, boots) for source in self._sources(measurement, probe)]
        return np.concatenate([np.empty(0, dtype=np.int64), *parts])

    def _sources(self, measurement: str, probe: str) -> Iterator[Source]:
        there = self._samples.runs(probe) if measurement in SAMPLED else set()
        asked = f'SHOW TAG VALUES FROM "{measurement}" WITH KEY = "run" WHERE "probe" = {literal(probe)}'
        known = {str(row[1]) for series in self.ask(asked) for row in series.rows} if there else set()
        left = sorted(known - there)
        if not there or len(left) > _MOST_ALONE:  # nearly all are to be asked for
            yield InfluxSource(self.store)
            return
        yield self._samples.source(probe, sorted(there))
        for at in range(0, len(left), _RUNS_AT_ONCE):
            runs = left[at : at + _RUNS_AT_ONCE]
            yield InfluxSource(self.store, " OR ".join(f'"run" = {literal(run)}' for run in runs))


def means(rows: Iterable[Row], step_ns: int) -> Iterator[Row]:
    """Of each series the means of windows of ``step_ns``, as InfluxQL's ``mean(…) GROUP BY *, time(…)`` has them: in order, at their
    beginnings. Numbers only."""
    found: dict[tuple[tuple[str, str], ...], dict[int, dict[str, tuple[float, int]]]] = {}
    for row in rows:
        window = found.setdefault(tuple(sorted(row.tags.items())), {}).setdefault(row.utc_ns // step_ns * step_ns, {})
        for name, value in row.fields.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                total, count = window.get(name, (0.0, 0))
                window[name] = total + value, count + 1
    for tags, windows in found.items():
        for utc_ns, window in sorted(windows.items()):
            if window:
                yield Row(utc_ns, dict(tags), {name: total / count for name, (total, count) in window.items()})


def bounded(rows: Iterable[Row], most_rows: int, most_series: int) -> list[Row]:
    """Of so many series, so many rows each at most."""
    counts: dict[tuple[tuple[str, str], ...], int] = {}
    kept = []
    for row in rows:
        key = tuple(sorted(row.tags.items()))
        count = counts.get(key, 0)
        if count < most_rows and (count or len(counts) < most_series):
            counts[key] = count + 1
            kept.append(row)
    return kept
