import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tandem_server.analysis.recorded import RadioSeries
from tandem_server.report.decimate import envelope, means
from tandem_server.report.plot import Axis, Plot
from tandem_server.report.strips import _cells

values = st.lists(st.one_of(st.floats(-1e3, 1e3), st.just(float("nan"))), min_size=1, max_size=400)


@given(values, st.integers(1, 40))
def test_envelope_keeps_extremes_and_order(list_of_values, buckets):
    v = np.array(list_of_values)
    t = np.arange(len(v)) * 0.1
    kept_t, kept = envelope(t, v, buckets)
    assert len(kept) <= 2 * buckets
    assert np.all(np.diff(kept_t) > 0)
    if np.isfinite(v).any():
        assert np.nanmin(kept) == np.nanmin(v)
        assert np.nanmax(kept) == np.nanmax(v)


@given(st.lists(st.floats(0, 100), min_size=1, max_size=400), st.integers(1, 40))
def test_means_stay_between_extremes(list_of_values, buckets):
    v = np.array(list_of_values)
    t, (m,) = means(np.arange(len(v)) * 0.1, [v], buckets)
    assert len(t) == len(m) <= 2 * buckets
    assert v.min() - 1e-9 <= m.min()
    assert m.max() <= v.max() + 1e-9


def test_line_is_broken_where_nothing_was_measured():
    plot = Plot("x", "x", Axis(0.0, 10.0, "dB"), 0.0, 10.0)
    t = np.array([0.0, 1.0, 5.0, 6.0, 7.0, 8.0])
    plot.line("a", "op0", t, np.array([1.0, 1.0, 1.0, np.nan, 1.0, 1.0]))
    assert plot.body[0].count("M") == 3


def test_ticks_are_round_and_inside():
    for low, high in ((0.0, 7.3), (-117.0, -71.0), (0.0, 150e3), (0.0, 0.02)):
        ticks = Axis(low, high, "x").ticks()
        assert 2 <= len(ticks) <= 12
        assert all(0 <= tick.percent <= 100 for tick in ticks)
    assert [t.text for t in Axis(30.0, 1200.0, "ms", log=True).ticks()] == ["50", "100", "200", "500", "1\u202f000"]


# --- serving cells along the axis

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
