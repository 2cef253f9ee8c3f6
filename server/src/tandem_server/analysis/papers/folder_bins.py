"""Bins of a campaign's captures, where ``tandem-server analyse DIR/probe --out DIR/traces`` was run before the report."""

from __future__ import annotations

import importlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tandem_server.analysis.clock import Clock
from tandem_server.analysis.folder import TRACES, Capture, capture_name, known_as, parts_of, probe_of
from tandem_server.analysis.papers.capture_bins import TO_OPENER, bins_of_capture
from tandem_server.analysis.papers.delays import Histogram, histogram
from tandem_server.analysis.papers.joined_captures import WAITS, queues
from tandem_server.analysis.papers.material import Bins
from tandem_server.analysis.papers.shared_captures import Seen, joined, token_of
from tandem_server.analysis.reading import flag, mapping, text
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
RTTS = ("connection", "direction", "rtt_ms", "samples")
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
    lines on what they do not tell. The data-level queue of a run with a capture of each path is of these read together, as a server
    reads them. Captures are known by their files' names (those that came to a server have ``.gz`` behind them), since a folder may have
    moved; of those that lie at two places one counts.
    ImportError: pyarrow is lacking; ManifestError.
    """
    parts = manifest.read(folder / FOLDER)
    if not parts:
        return []
    parquet = importlib.import_module("tandem_server.analysis.traces.parquet")
    known = {capture_name(capture.file): capture for capture in captures}
    parts = _once(parts, known)
    shared, lines = _shared(parquet, folder, parts, known, manifests)
    files = {capture_name(file.file): (file, part.bin_ns) for part in parts.values() for file in part.files}
    together = {one for name in files if len(parts_of(name)) > 1 for one in parts_of(name)}
    alone = [one for name, one in known.items() if name not in together]
    made, left_out = queues(alone, files, manifests, clock)
    multipath = {str(m["id"]) for m in manifests if _is_multipath(m)}
    if remarks is not None:
        remarks += lines + left_out
    for name in sorted(parts):
        by_file: Mapping[str, dict[str, Array]] = parquet.numbers_by_file(folder / FOLDER, "bins", name, COLUMNS)
        rtts, waits = (_delays(parquet, folder, name, *one) for one in (("rtts", RTTS), ("waits", WAITS)))
        counted = {file.file for file in parts[name].files}
        for file, columns in sorted(by_file.items()):
            capture = known_as(known, capture_name(file))
            if capture is None or file not in counted:
                continue
            own = shared.get(capture_name(file), [])
            if capture.run is not None:
                own = [(capture.run, _main_connection(columns))]
            for run, number in own:
                rows = {key: values[columns["connection"] == number] for key, values in columns.items()}
                # A run by TCP has no data level, whatever was captured beside it.
                all_of_it = capture.path is None and (len(parts_of(capture_name(file))) < 2 or run in multipath)
                for bins in bins_of_capture(run, capture.path, rows, clock, whole=all_of_it):
                    if bins.path is None:
                        made.append(replace(bins, waits=waits.get((file, number))))
                    else:
                        made.append(replace(bins, rtts=rtts.get((file, number))))
    return made


def _delays(
    parquet: Any,  # noqa: ANN401  (a module)
    folder: Path,
    part: str,
    table: str,
    names: Sequence[str],
) -> dict[tuple[str, float], Histogram]:
    """Of one part's captures, by file and connection, of data to the opener; nothing where an older analysis made no such table."""
    if not (folder / FOLDER / table / f"{part}.parquet").is_file():
        return {}
    by_file: Mapping[str, dict[str, Array]] = parquet.numbers_by_file(folder / FOLDER, table, part, names)
    found = {}
    for file, columns in by_file.items():
        connection, direction, ms, counts = (columns[name] for name in names)
        for number in np.unique(connection[direction == TO_OPENER]):
            own = (direction == TO_OPENER) & (connection == number)
            found[file, float(number)] = histogram(ms[own], counts[own])
    return found


def _once(parts: Mapping[str, manifest.Part], known: Mapping[str, Capture]) -> dict[str, manifest.Part]:
    """The parts with those of their captures that are known, each capture once: where it was read with most others."""
    found = [
        (file, name) for name, part in parts.items() for file in part.files if known_as(known, capture_name(file.file))
    ]
    found.sort(key=lambda one: (-len(parts_of(capture_name(one[0].file))), one[1], one[0].file))
    kept: dict[str, list[manifest.Capture]] = defaultdict(list)
    seen: set[str] = set()
    for file, name in found:
        if seen.isdisjoint(names := parts_of(capture_name(file.file))):
            seen |= {*names}
            kept[name].append(file)
    return {name: replace(parts[name], files=tuple(files)) for name, files in kept.items()}


def _is_multipath(m: Mapping[str, Any]) -> bool:
    return text(m, "kind") == "mptcp" and flag(mapping(m, "result"), "fallback") is not True and token_of(m) is not None


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
    """By a shared capture's name its runs and their connections' numbers; one of several paths that were read as one has them once."""
    pairs: dict[str, dict[str, tuple[str, list[Seen]]]] = defaultdict(dict)
    for name in sorted(parts):
        shared = {file.file: one for file in parts[name].files if (one := _shared_paths(known, file.file)) is not None}
        if not (files := list(shared)):
            continue
        rows = parquet.rows_by_file(folder / FOLDER, "connections", name, CONNECTION, files)
        told = parquet.rows_by_file(folder / FOLDER, "totals", name, TOTALS, files)
        for file in files:
            pair, paths = shared[file]
            seen = _seen(rows[file], told[file])
            pairs[pair] |= dict.fromkeys(paths, (capture_name(file), seen))
    found: dict[str, list[tuple[str, float]]] = defaultdict(list)
    lines: list[str] = []
    for pair, by_path in sorted(pairs.items()):
        runs = [m for m in manifests if m.get("pair") == pair]
        numbers, why = joined(runs, {path: seen for path, (_, seen) in by_path.items()})
        lines += why
        for (run, path), number in sorted(numbers.items()):
            if (claim := (run, float(number))) not in found[by_path[path][0]]:
                found[by_path[path][0]].append(claim)
    return found, lines


def _seen(rows: Sequence[Mapping[str, Any]], totals: Sequence[Mapping[str, Any]]) -> list[Seen]:
    carried = {
        row["connection"]: row["goodput_bytes"] + row["unseen_bytes"]
        for row in totals
        if row["subflow"] is None and row["direction"] == "to_opener"
    }
    return [Seen(**row, bytes=carried.get(row["connection"], 0)) for row in rows]


def _shared_paths(known: Mapping[str, Capture], file: str) -> tuple[str, list[str]] | None:
    """The pair whose runs share the capture, and the paths that it is of; None where a run has it for itself."""
    capture = known_as(known, capture_name(file))
    if capture is None or capture.run is not None or capture.pair is None:
        return None
    paths = [known[one].path for one in parts_of(capture_name(file))]
    return None if None in paths else (capture.pair, [str(path) for path in paths])


def _main_connection(columns: Mapping[str, Array]) -> float:
    own = np.isnan(columns["subflow"]) & (columns["direction"] == TO_OPENER)
    numbers = np.unique(columns["connection"])
    carried = [float(columns["goodput_bytes"][own & (columns["connection"] == number)].sum()) for number in numbers]
    return float(numbers[int(np.argmax(carried))])
