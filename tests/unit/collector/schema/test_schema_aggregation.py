"""Cordero's formulas: their boundaries as the paper has them, their shape for any values."""

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tandem.schema.aggregation import (
    Benefit,
    bandwidth_benefit,
    delay_benefit,
    disjointivity,
    ideal_delay,
    most_loaded_share,
)

rate = st.floats(1e3, 1e9)
delay = st.floats(1e-3, 1e3)
delays = st.lists(delay, min_size=2, max_size=5)


def by_eq_4(one: float, other: float, x: float) -> float:
    """Eq. (4), the paper's own form for two paths."""
    fastest, k = min(one, other), max(one, other) / min(one, other)
    if x <= k / (k + 1) * fastest:
        return 1.0
    if x <= fastest:
        return (k + 1) * (fastest - x) / fastest
    if x <= k * fastest:
        return (fastest - x) / ((k - 1) * fastest)
    return -1.0


def test_disjointivity_of_two_and_of_three_paths():
    """The three are MA2's averages (§3.3.2), 4, 93 and 220 Mbit/s: 317 when nothing is shared."""
    two, three = [10e6, 5e6], [4e6, 93e6, 220e6]
    told = [(two, 15e6, 1), (two, 15.3e6, 1.02), ([10e6, 10e6], 10e6, 0.5), (three, 317e6, 1), (three, 237.75e6, 0.75)]
    assert [disjointivity(each, together) for each, together, _ in told] == pytest.approx([tdi for *_, tdi in told])
    assert disjointivity([0, 0], 0) is None
    assert bandwidth_benefit(three, 317e6, 268.5e6) == pytest.approx((0.5, 0.5))
    assert bandwidth_benefit(three, 317e6, 55e6) == pytest.approx((-0.75, -0.75))


def test_bandwidth_benefit_of_two_paths_and_where_nothing_can_be_gained():
    for x, raw in ((15e6, 1), (12.5e6, 0.5), (10e6, 0), (5e6, -0.5), (0.0, -1), (17.5e6, 1.5)):
        assert bandwidth_benefit([10e6, 5e6], 15e6, x) == Benefit(pytest.approx(raw), pytest.approx(min(raw, 1)))
    for together in (10e6, 9e6):
        assert bandwidth_benefit([10e6, 5e6], together, 10e6) == (None, None)
        assert bandwidth_benefit([10e6, 5e6], together, 12e6) == (None, None)
        assert bandwidth_benefit([10e6, 5e6], together, 5e6) == (-0.5, -0.5)
    assert bandwidth_benefit([0, 0], 0, 0) == (None, None)


@given(st.lists(rate, min_size=2, max_size=5), st.floats(1.01, 5), st.floats(0, 10), st.floats(0, 10))
def test_bandwidth_benefit_never_falls_with_goodput(separate, gain, one, other):
    best = max(separate)
    low, high = sorted((one * best, other * best))
    at_low, at_high = (bandwidth_benefit(separate, gain * best, x) for x in (low, high))
    assert None not in at_low + at_high
    assert at_low.raw <= at_high.raw
    assert -1 <= at_low.clipped <= at_high.clipped <= 1


@given(delay, delay, st.floats(0.01, 3))
def test_two_paths_are_as_the_papers_own_form(one, other, factor):
    x = factor * max(one, other)
    assume(min(one, other) < max(one, other) * (1 - 1e-6) or x <= min(one, other))
    assert delay_benefit([one, other], x).clipped == pytest.approx(by_eq_4(one, other, x), abs=1e-5)
    k = max(one, other) / min(one, other)
    assert ideal_delay([one, other]) == pytest.approx(k / (k + 1) * min(one, other))


def test_delay_benefit_of_three_paths_at_its_corners_and_equal_delays_have_no_third_case():
    # D = 1, 2 and 6 s: Σ 1/D = 6/6 + 3/6 + 1/6 = 10/6, so the ideal is 0.6 s; to D_max the third case goes on over 5 s.
    assert ideal_delay([2.0, 6.0, 1.0]) == pytest.approx(0.6)
    told = {x: delay_benefit([2.0, 6.0, 1.0], x) for x in (0.4, 0.6, 0.8, 1.0, 3.5, 6.0, 11.0)}
    expected = {0.4: 1, 0.6: 1, 0.8: 0.5, 1.0: 0, 3.5: -0.5, 6.0: -1, 11.0: -1}
    assert {x: b.clipped for x, b in told.items()} == pytest.approx(expected)
    assert {x: b.raw for x, b in told.items()} == pytest.approx({**expected, 0.4: 1.5, 11.0: -2})
    assert delay_benefit([2.0, 2.0], 1.0) == (1.0, 1.0)
    assert delay_benefit([2.0, 2.0], 2.0) == (0.0, 0.0)
    assert delay_benefit([2.0, 2.0], math.nextafter(2.0, 3)) == (None, -1.0)
    assert ideal_delay([2.0] * 4) == pytest.approx(0.5)
    assert delay_benefit([2.0] * 4, 2.5) == (None, -1.0)


def test_the_share_of_the_most_loaded_path():
    shares = [most_loaded_share(told) for told in ({"a": 3, "b": 1}, {"a": 3}, {"a": 0, "b": 0}, {})]
    assert shares == [0.75, 1, None, None]


@given(delays, st.floats(0.01, 3), st.floats(0.01, 3))
def test_delay_benefit_never_rises_with_delay(each, one, other):
    low, high = sorted((one * max(each), other * max(each)))
    at_low, at_high = delay_benefit(each, low), delay_benefit(each, high)
    assert 1 >= at_low.clipped >= at_high.clipped >= -1
    if at_low.raw is not None and at_high.raw is not None:
        assert at_low.raw >= at_high.raw


@given(delays, delay)
def test_one_path_more_makes_the_ideal_faster(each, more):
    assert ideal_delay([*each, more]) < ideal_delay(each) < min(each)


def test_what_is_no_measurement_is_refused():
    for bad in (
        lambda: delay_benefit([1.0], 1.0),
        lambda: delay_benefit([1.0, 0.0], 1.0),
        lambda: delay_benefit([1.0, 2.0], math.nan),
        lambda: bandwidth_benefit([-1.0, 2.0], 3.0, 1.0),
        lambda: disjointivity([math.inf], 1.0),
    ):
        with pytest.raises(ValueError, match=r"is no|needs"):
            bad()
