"""The bands of serving cells along the report's time axis."""

import numpy as np

from tandem_server.analysis.recorded import RadioSeries
from tandem_server.report.strips import _cells

FIRST, SECOND = 21000 << 8 | 2, 23118 << 8 | 3


def bands(times, cells):
    none = np.full(len(times), np.nan)
    series = RadioSeries("a", "A", np.array(times), none, none, list(cells), [None] * len(times), none, none, "quectel")
    return [(band.start_s, band.end_s, band.text) for band in _cells(series, "op0")]


def test_what_was_polled_before_the_axis_begins_is_not_drawn_there():
    polled = bands([-2.5, -1.5, -0.5, 0.5, 1.5], [SECOND, FIRST, FIRST, FIRST, FIRST])
    assert polled == [(0.0, 2.5, "21000/2")]


def test_one_cell_after_the_other():
    polled = bands([0.5, 1.5, 2.5, 3.5], [FIRST, FIRST, SECOND, None])
    assert polled == [(0.5, 2.5, "21000/2"), (2.5, 3.5, "23118/3")]
