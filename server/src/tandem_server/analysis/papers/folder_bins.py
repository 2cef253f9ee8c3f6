"""Bins of a campaign's captures, where ``tandem-server analyse DIR/probe --out DIR/traces`` was run before the report."""

from __future__ import annotations

import importlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tandem_server.analysis.clock import Clock
from tandem_server.analysis.folder import TRACES, Capture, capture_name, probe_of
from tandem_server.analysis.papers.capture_bins import TO_OPENER, bins_of_capture
from tandem_server.analysis.papers.joined_captures import queues
from tandem_server.analysis.papers.material import Bins
from tandem_server.analysis.papers.shared_captures import Seen, joined
from tandem_server.analysis.traces import manifest

FOLDER = TRACES
COLUMNS = (
    *("connection", "subflow", "direction", "bin_start_utc_ns", "goodput_bytes"),
    *("in_flight_mean_bytes", "reorder_queue_max_bytes"),
)
CONNECTION = (
    *("connection", "multipath", "opener_port", "responder_address", "responder_port", "start_utc_ns", "end_utc_ns"),
    *("opener_token", "responder_token"),
)
CUT = {"cut_file", "bad_record", "bad_compression"}
"""Problems of a capture that leave a part of it out."""
TOTALS = ("connection", "subflow", "direction", "goodput_bytes", "unseen_bytes")

Array = NDArray[np.float64]


def bins_of_folder(
    folder: Path,
    captures: Iterable[Capture],
    clock: Clock,
    manifests: Sequence[Mapping[str, Any]] = (),
    remarks: list[str] | None = None,
) -> list[Bins]:
    """Of each capture that belongs to a run: of the connection in it that carried most towards its opener. None without tables.

    Of a capture that a pair's runs shared: of each run's connection, as far as ``manifests`` tell which it was; ``remarks`` gets
    lines on what they do not tell. The data-level queue of a run with a capture of each path is of these read together.
    Captures are known by their files' names (those that came to a server have ``.gz`` behind them), since a folder may have moved.
    ImportError: pyarrow is lacking; ManifestError.
    """
    parts = manifest.read(folder / FOLDER)
    if not parts:
        return []
    parquet = importlib.import_module("tandem_server.analysis.traces.parquet")
    known = {capture_name(capture.file): capture for capture in captures}
    shared, lines = _shared(parquet, folder, parts, known, manifests)
    files = {capture_name(file.file): (file, part.bin_ns) for part in parts.values() for file in part.files}
    made, left_out = queues(known.values(), files, manifests, clock)
    if remarks is not None:
        remarks += lines + left_out
    for name in sorted(parts):
        by_file: Mapping[str, dict[str, Array]] = parquet.numbers_by_file(folder / FOLDER, "bins", name, COLUMNS)
        for file, columns in sorted(by_file.items()):
            capture = known.get(capture_name(file))
            if capture is None:
                continue
            own = shared.get(capture_name(file), [])
            if capture.run is not None:
                own = [(capture.run, _main_connection(columns))]
            for run, number in own:
                rows = {key: values[columns["connection"] == number] for key, values in columns.items()}
                made += bins_of_capture(run, capture.path, rows, clock, whole=capture.path is None)
    return made


def cut_captures(folder: Path, captures: Iterable[Capture], probe: str) -> list[str]:
    """Those of the probe's analysed captures of which a part could not be read, by name: cut in the middle of a packet, or damaged. Tables
    have what was read. ImportError, ManifestError."""
    parts = manifest.read(folder / FOLDER)
    if not parts:
        return []
    parquet = importlib.import_module("tandem_server.analysis.traces.parquet")
    known = {capture_name(capture.file) for capture in captures}
    found = parquet.texts_by_file(folder / FOLDER, "problems", sorted(parts), "kind")
    return sorted(
        capture_name(file)
        for file, kinds in found.items()
        if kinds & CUT and capture_name(file) in known and probe_of(file) in (None, probe)
    )


def _shared(
    parquet: Any,  # noqa: ANN401  (a module)
    folder: Path,
    parts: Mapping[str, manifest.Part],
    known: Mapping[str, Capture],
    manifests: Sequence[Mapping[str, Any]],
) -> tuple[dict[str, list[tuple[str, float]]], list[str]]:
    """By a shared capture's name its runs and their connections' numbers."""
    pairs: dict[str, dict[str, tuple[str, list[Seen]]]] = defaultdict(dict)
    for name in sorted(parts):
        files = [file.file for file in parts[name].files if _is_shared(known.get(capture_name(file.file)))]
        if not files:
            continue
        rows = parquet.rows_by_file(folder / FOLDER, "connections", name, CONNECTION, files)
        told = parquet.rows_by_file(folder / FOLDER, "totals", name, TOTALS, files)
        for file in files:
            capture = known[capture_name(file)]
            seen = _seen(rows[file], told[file])
            pairs[str(capture.pair)][str(capture.path)] = capture_name(file), seen
    found: dict[str, list[tuple[str, float]]] = defaultdict(list)
    lines: list[str] = []
    for pair, by_path in sorted(pairs.items()):
        runs = [m for m in manifests if m.get("pair") == pair]
        numbers, why = joined(runs, {path: seen for path, (_, seen) in by_path.items()})
        lines += why
        for (run, path), number in sorted(numbers.items()):
            found[by_path[path][0]].append((run, float(number)))
    return found, lines


def _seen(rows: Sequence[Mapping[str, Any]], totals: Sequence[Mapping[str, Any]]) -> list[Seen]:
    carried = {
        row["connection"]: row["goodput_bytes"] + row["unseen_bytes"]
        for row in totals
        if row["subflow"] is None and row["direction"] == "to_opener"
    }
    return [Seen(**row, bytes=carried.get(row["connection"], 0)) for row in rows]


def _is_shared(capture: Capture | None) -> bool:
    return capture is not None and capture.run is None and capture.pair is not None and capture.path is not None


def _main_connection(columns: Mapping[str, Array]) -> float:
    own = np.isnan(columns["subflow"]) & (columns["direction"] == TO_OPENER)
    numbers = np.unique(columns["connection"])
    carried = [float(columns["goodput_bytes"][own & (columns["connection"] == number)].sum()) for number in numbers]
    return float(numbers[int(np.argmax(carried))])
