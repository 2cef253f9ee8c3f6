"""Bins of a capture, as the native pass over it tells them, for the figures. Pure; columns by name, absent values NaN."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from tandem_server.analysis.clock import Clock
from tandem_server.analysis.papers.material import Bins

Array = NDArray[np.float64]
TO_OPENER = 1
"""Code of the direction in which a download's data come."""


def bins_of_capture(
    run: str, path: str | None, columns: Mapping[str, Array], clock: Clock, *, whole: bool, direction: int = TO_OPENER
) -> list[Bins]:
    """Of one run's capture.

    ``columns`` of its table of bins: ``subflow`` (NaN: the connection's own row), ``direction``, ``bin_start_utc_ns``,
    ``in_flight_mean_bytes``, ``reorder_queue_max_bytes``. ``path``: on which it was made; None: on all. ``whole``: it has every subflow of
    the connection; else its data-level queue would count what came over other paths as missing, and is left out.
    """
    start = np.asarray(columns["bin_start_utc_ns"], dtype=np.float64)
    own = np.isnan(np.asarray(columns["subflow"], dtype=np.float64))
    mine = np.asarray(columns["direction"]) == direction
    made = []
    for rows, key, name in (
        (mine & ~own, "in_flight_mean_bytes", path or ""),
        (mine & own, "reorder_queue_max_bytes", None),
    ):
        if not rows.any() or (name is None and not whole):
            continue
        times = np.unique(start[rows])
        values = np.array([_sum(np.asarray(columns[key], dtype=np.float64)[rows & (start == t)]) for t in times])
        seconds = np.array([clock.seconds(int(t), None) or 0.0 for t in times])
        nothing = np.full(len(times), np.nan)
        made.append(Bins(run, name, seconds, *((nothing, values) if name is None else (values, nothing))))
    return made


def _sum(values: Array) -> float:
    known = values[np.isfinite(values)]
    return float(known.sum()) if len(known) else float("nan")
