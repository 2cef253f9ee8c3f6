"""A run's part of the tables second by second, for boards (docs/reference/ledger.md, ``run_trace_second``). Pure.

What it costs is bounded: a subflow, and the connection, of a run have at most ``MOST`` points; of a run that is longer each is of several
seconds. Rates, so that these mean the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tandem.schema.record import Value

COLUMNS = (
    *("connection", "subflow", "direction", "bin_start_utc_ns", "goodput_bytes", "duplicate_bytes", "hole_fill_bytes"),
    *("reinjected_bytes", "rtt_samples", "rtt_mean_ns", "reorder_queue_max_bytes"),
)
MOST = 600
_SECOND_NS = 10**9
_RATES = {
    "goodput_bit_per_s": ("goodput_bytes",),
    "again_bit_per_s": ("duplicate_bytes", "hole_fill_bytes"),
    "reinjected_bit_per_s": ("reinjected_bytes",),
}

Fields = dict[str, Value]


class Seconds:
    """``bins``: columns of the part's bins, of one file."""

    def __init__(self, bins: Mapping[str, Any]) -> None:
        self._of = {name: np.asarray(bins[name], dtype=np.float64) for name in COLUMNS if name != "bin_start_utc_ns"}
        self._start = np.asarray(bins["bin_start_utc_ns"], dtype=np.int64)

    def of(
        self, connection: int, subflow: int | None, direction: int, recovered: Mapping[int, float]
    ) -> Iterator[tuple[int, Fields]]:
        """Time and fields of each point, in order; ``subflow`` None: the connection's. ``recovered``: t_R in s by the event's time, UTC
        ns; those before the first bin and behind the last are left out."""
        which = self._of["subflow"]
        mine = np.isnan(which) if subflow is None else which == subflow
        rows = np.flatnonzero(mine & (self._of["connection"] == connection) & (self._of["direction"] == direction))
        if not len(rows):
            return
        start = self._start[rows]
        width = max(1, -(-int(start.max() - start.min() + _SECOND_NS) // (MOST * _SECOND_NS))) * _SECOND_NS
        place, number = np.unique(start // width, return_inverse=True)

        def added(name: str) -> NDArray[np.float64]:
            return np.bincount(number, np.nan_to_num(self._of[name][rows]), len(place)).astype(np.float64)

        rates = {name: np.sum([added(one) for one in own], axis=0) * (8e9 / width) for name, own in _RATES.items()}
        samples = np.where(
            np.isfinite(self._of["rtt_mean_ns"][rows]), np.nan_to_num(self._of["rtt_samples"][rows]), 0.0
        )
        weighed = np.bincount(number, samples * np.nan_to_num(self._of["rtt_mean_ns"][rows]), len(place))
        counts = np.bincount(number, samples, len(place))
        queue = np.full(len(place), -1.0)
        np.maximum.at(queue, number, np.nan_to_num(self._of["reorder_queue_max_bytes"][rows], nan=-1.0))
        longest: dict[int, float] = {}
        for at, t_r_s in recovered.items():
            longest[at // width] = max(t_r_s, longest.get(at // width, 0.0))
        for n, at in enumerate(place.tolist()):
            fields: Fields = {name: float(values[n]) for name, values in rates.items()}
            if counts[n] > 0:
                fields["rtt_mean_ms"] = float(weighed[n] / counts[n]) / 1e6
            if subflow is None and queue[n] >= 0:
                fields["reorder_queue_max_bytes"] = int(queue[n])
            if at in longest:
                fields["t_r_s"] = longest[at]
            yield at * width, fields
