"""Bins of a capture become the figures' bins."""

from __future__ import annotations

import numpy as np

from tandem_server.analysis.clock import Clock
from tandem_server.analysis.papers.capture_bins import bins_of_capture

NAN = float("nan")
COLUMNS = {
    "subflow": np.array([NAN, NAN, 0, 0, 1, 0]),
    "direction": np.array([1, 1, 1, 1, 1, 0]),
    "bin_start_utc_ns": np.array([10e9, 11e9, 10e9, 11e9, 11e9, 10e9]),
    "in_flight_mean_bytes": np.array([90.0, 95.0, 100.0, NAN, 7.0, 999.0]),
    "reorder_queue_max_bytes": np.array([5.0, NAN, 1.0, 2.0, 3.0, 4.0]),
}


def test_subflows_add_up_and_the_queue_is_the_connections():
    flows, whole = bins_of_capture("r", None, COLUMNS, Clock(10 * 10**9), whole=True)
    assert (flows.run, flows.path, list(flows.t_s), list(flows.in_flight_bytes)) == ("r", "", [0.0, 1.0], [100.0, 7.0])
    assert whole.path is None
    assert whole.reorder_queue_bytes[0] == 5.0
    assert np.isnan(whole.reorder_queue_bytes[1])


def test_a_capture_of_one_path_has_no_queue_of_the_connection():
    (only,) = bins_of_capture("r", "a", COLUMNS, Clock(0), whole=False)
    assert only.path == "a"
    assert np.isnan(only.reorder_queue_bytes).all()


def test_a_capture_without_data_in_the_direction_has_none():
    assert bins_of_capture("r", "a", {k: v[:0] for k, v in COLUMNS.items()}, Clock(0), whole=True) == []
