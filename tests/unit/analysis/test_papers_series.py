"""A run's series as the figures take them."""

from __future__ import annotations

import numpy as np
import pytest

from tandem_server.analysis.papers.series import (
    around,
    by_second,
    differences,
    means,
    of_operators,
    summed,
    utilisation,
)
from tandem_server.analysis.recorded import SubflowSeries


def series(operator: str | None, times: list[float], goodputs: list[float], rtts: list[float]) -> SubflowSeries:
    return SubflowSeries(
        "r", "1", "server", operator and operator.lower(), operator, *map(np.array, (times, goodputs, rtts))
    )


def test_seconds_are_means_of_what_is_there():
    assert by_second(np.array([0.1, 0.9, 1.0, 2.5]), np.array([1.0, 3.0, 5.0, np.nan])) == {0: 2.0, 1: 5.0}
    assert means([(-0.6, 1.0), (-0.1, 2.0), (0.0, 3.0), (0.4, 5.0)], 0.5) == [(-0.75, 1.0), (-0.25, 2.0), (0.25, 4.0)]


def test_subflows_of_one_operator_add_up_and_the_least_rtt_counts():
    found = [
        series("A", [0.0], [4.0], [50.0]),
        series("A", [0.5], [6.0], [40.0]),
        series("B", [0.2], [1.0], [90.0]),
        series(None, [0], [1], [1]),
    ]
    assert of_operators(found, "goodput_bit_per_s") == {"A": {0: 10.0}, "B": {0: 1.0}}
    assert of_operators(found, "rtt_ms") == {"A": {0: 40.0}, "B": {0: 90.0}}
    assert differences(of_operators(found, "rtt_ms")) == [50.0]
    assert differences({"A": {0: 40.0}, "B": {1: 90.0}}) == [50.0]
    assert differences({"A": {}, "B": {1: 90.0}}) == differences({}) == []


def test_seconds_in_which_one_subflow_is_silent_count_with_its_worse_round_trip():
    a = dict.fromkeys(range(10), 50.0)
    assert differences({"A": a, "B": {2: 60.0, 6: 900.0, 7: 80.0}}) == [10, 850, 850, 850, 850, 30, 30, 30]
    assert differences({"A": {0: 50.0, 9: 50.0}, "B": {0: 60.0, 9: 70.0}}) == [10, 20]  # nothing is known of both


def test_sums_are_taken_at_each_time_and_hold_over_gaps():
    times, total = summed([
        (np.array([0.0, 0.1, 0.2, 0.4]), np.array([10.0, 20.0, np.nan, 40.0])),
        (np.array([0.3, 0.2]), np.array([7.0, 5.0])),
        (np.array([0.0]), np.array([np.nan])),
    ])  # fmt: skip
    assert times.tolist() == [0, 0.1, 0.2, 0.3, 0.4]
    assert total.tolist() == [10, 20, 25, 27, 40]
    assert [len(column) for column in summed([])] == [0, 0]


def test_utilisation_is_over_the_best_seconds():
    found = {"A": {0: 8.0, 1: 0.0, 2: 5.0}, "B": {0: 2.0, 1: 5.0}}
    # Sums 10, 5, 5; their 95 % quantile is 9.5.
    assert utilisation(found, "A", "B") == [
        pytest.approx((8 / 9.5, 2 / 9.5)),
        pytest.approx((0, 5 / 9.5)),
        pytest.approx((5 / 9.5, 0)),
    ]
    assert utilisation({}, "A", "B") == []
    assert utilisation({"A": {0: 0.0}}, "A", "B") == []


def test_around_an_event():
    t, v = np.array([0.0, 5.0, 9.0, 12.0, 30.0]), np.array([1.0, 2.0, np.nan, 4.0, 5.0])
    assert around(t, v, 10.0, 5.0, 5.0) == [(-5.0, 2.0), (2.0, 4.0)]
