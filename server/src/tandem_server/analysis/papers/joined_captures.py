"""The data-level queue of runs whose captures are of one path each: these are read once more, together, in the order of time.

A capture of one path would count what came over the others as missing. Both were made by one machine, so their clocks are one.
"""

from __future__ import annotations

import importlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tandem_server.analysis.clock import Clock
from tandem_server.analysis.folder import Capture, capture_name
from tandem_server.analysis.papers.capture_bins import TO_OPENER, bins_of_capture
from tandem_server.analysis.papers.delays import histogram
from tandem_server.analysis.papers.material import Bins
from tandem_server.analysis.papers.shared_captures import token_of
from tandem_server.analysis.reading import flag, mapping, text
from tandem_server.analysis.traces import manifest

Array = NDArray[np.float64]
COLUMNS = ("connection", "subflow", "direction", "bin_start_utc_ns", "in_flight_mean_bytes", "reorder_queue_max_bytes")
WAITS = ("connection", "direction", "wait_ms", "packets")


def queues(
    captures: Iterable[Capture],
    files: Mapping[str, tuple[manifest.Capture, int]],
    manifests: Iterable[Mapping[str, Any]],
    clock: Clock,
) -> tuple[list[Bins], list[str]]:
    """Of each Multipath TCP run with a capture of each of several paths; and lines on those that are left out.

    ``files``: by a capture's name what was analysed and how wide its bins are (ns). The run's connection is known by the kernel's token,
    which its manifest has. ImportError: the native pass is not built.
    """
    own: dict[tuple[str, str], dict[str, Capture]] = defaultdict(dict)
    for one in captures:
        if one.path is not None and (one.run is not None or one.pair is not None):
            key = ("pair", str(one.pair)) if one.run is None else ("run", one.run)
            own[key][one.path] = one
    made: list[Bins] = []
    lines: list[str] = []
    read: dict[tuple[str, ...], Any] = {}
    for m in manifests:
        run, token = str(m["id"]), token_of(m)
        of_run = own.get(("run", run)) or own.get(("pair", str(m.get("pair")))) or {}
        names = sorted(one.file for one in of_run.values())
        if (
            text(m, "kind") != "mptcp"
            or flag(mapping(m, "result"), "fallback") is True
            or token is None
            or len(names) < 2
        ):
            continue
        places = [files[name] for name in map(capture_name, names) if name in files]
        if len(places) < len(names) or len({width for _, width in places}) > 1:
            lines.append(f"{run}: no data-level queue: not all of its captures were analysed with bins of one width")
            continue
        if other := [one.file for one, _ in places if not _is_as_it_was(one)]:
            lines.append(f"{run}: no data-level queue: {other[0]} is gone or was changed since it was analysed")
            continue
        paths = tuple(one.file for one, _ in places)
        if paths not in read:
            # Runs of a pair come one after the other and share captures; those of others are not kept.
            read = {paths: _tables(paths, places[0][1])}
        numbers, columns, waits, bounded = read[paths]
        if bounded:
            lines.append(
                f"{run}: no data-level queue: its captures are too much for one reading ({', '.join(bounded)})"
            )
            continue
        mine = [number for number, its in numbers if its == token]
        if len(mine) != 1:
            lines.append(f"{run}: no data-level queue: {len(mine)} connections in its captures have its token")
            continue
        rows = {name: values[columns["connection"] == mine[0]] for name, values in columns.items()}
        came = (waits["connection"] == mine[0]) & (waits["direction"] == TO_OPENER)
        waited = histogram(waits["wait_ms"][came], waits["packets"][came]) if came.any() else None
        whole = (bins for bins in bins_of_capture(run, None, rows, clock, whole=True) if bins.path is None)
        made += [replace(bins, waits=waited) for bins in whole]
    return made, lines


def _tables(
    paths: Sequence[str], bin_ns: int
) -> tuple[list[tuple[int, int | None]], dict[str, Array], dict[str, Array], list[str]]:
    """Of all connections their numbers and openers' tokens; their bins; how long their packets waited; and the limits of the native pass
    that were reached."""
    core = importlib.import_module("tandem_server.tandem_trace_core")
    listed = importlib.import_module("tandem_server.analysis.traces.columns").listed
    tables = core.analyse_together(list(paths), bin_ns=bin_ns)
    known = tables["connections"]
    columns, waits = (
        {
            name: np.array([np.nan if v is None else v for v in listed(tables[table], name)], np.float64)
            for name in names
        }
        for table, names in (("bins", COLUMNS), ("waits", WAITS))
    )
    numbers = list(zip(listed(known, "connection"), listed(known, "opener_token"), strict=True))
    return numbers, columns, waits, tables["file"]["bounded"]


def _is_as_it_was(analysed: manifest.Capture) -> bool:
    try:
        return manifest.Capture.at(analysed.file) == analysed
    except OSError:  # gone: the line says so
        return False
