"""Bins of a capture, as the native pass over it tells them, for the figures. Pure; columns by name, absent values NaN.

A bin without a row had no packet: of a subflow between its first and its last row then as much is in flight as was before.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from tandem_server.analysis.clock import Clock
from tandem_server.analysis.papers.material import Bins
from tandem_server.analysis.papers.series import summed

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
    subflow = np.asarray(columns["subflow"], dtype=np.float64)
    mine = np.asarray(columns["direction"]) == direction
    flight, queue = (
        np.asarray(columns[key], dtype=np.float64) for key in ("in_flight_mean_bytes", "reorder_queue_max_bytes")
    )
    parts = [
        (start[rows], flight[rows])
        for rows in (mine & (subflow == n) for n in np.unique(subflow[mine & ~np.isnan(subflow)]))
    ]
    made = []
    if parts:
        times, total = summed(parts)
        if not len(times):  # where it was captured, nobody knows what is in flight
            times = np.unique(np.concatenate([at for at, _ in parts]))
            total = np.full(len(times), np.nan)
        made.append(Bins(run, path or "", (times - clock.start_utc_ns) / 1e9, total, np.full(len(times), np.nan)))
    if whole and (own := mine & np.isnan(subflow)).any():
        order = np.argsort(start[own], kind="stable")
        times = start[own][order]
        made.append(Bins(run, None, (times - clock.start_utc_ns) / 1e9, np.full(len(times), np.nan), queue[own][order]))
    return made
