"""Bins of a campaign's captures, where ``tandem-server analyse DIR/probe --out DIR/traces`` was run before the report."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tandem_server.analysis.clock import Clock
from tandem_server.analysis.folder import Capture
from tandem_server.analysis.papers.capture_bins import TO_OPENER, bins_of_capture
from tandem_server.analysis.papers.material import Bins
from tandem_server.analysis.traces import manifest

FOLDER = "traces"
COLUMNS = (
    *("connection", "subflow", "direction", "bin_start_utc_ns", "goodput_bytes"),
    *("in_flight_mean_bytes", "reorder_queue_max_bytes"),
)

Array = NDArray[np.float64]


def bins_of_folder(folder: Path, captures: Iterable[Capture], clock: Clock) -> list[Bins]:
    """Of each capture that belongs to a run: of the connection in it that carried most towards its opener. None without tables.

    Captures are known by their files' names (those that came to a server have ``.gz`` behind them), since a folder may have moved.
    ImportError: pyarrow is lacking; ManifestError.
    """
    parts = manifest.read(folder / FOLDER)
    if not parts:
        return []
    parquet = importlib.import_module("tandem_server.analysis.traces.parquet")
    of_run = {_bare(capture.file): capture for capture in captures if capture.run is not None}
    made: list[Bins] = []
    for name in sorted(parts):
        by_file: Mapping[str, dict[str, Array]] = parquet.numbers_by_file(folder / FOLDER, "bins", name, COLUMNS)
        for file, columns in sorted(by_file.items()):
            capture = of_run.get(_bare(file))
            if capture is None or capture.run is None:
                continue
            main = _main_connection(columns)
            rows = {key: values[columns["connection"] == main] for key, values in columns.items()}
            made += bins_of_capture(capture.run, capture.path, rows, clock, whole=capture.path is None)
    return made


def _bare(file: str) -> str:
    return Path(file).name.removesuffix(".gz").removesuffix(".zst")


def _main_connection(columns: Mapping[str, Array]) -> float:
    own = np.isnan(columns["subflow"]) & (columns["direction"] == TO_OPENER)
    numbers = np.unique(columns["connection"])
    carried = [float(columns["goodput_bytes"][own & (columns["connection"] == number)].sum()) for number in numbers]
    return float(numbers[int(np.argmax(carried))])
