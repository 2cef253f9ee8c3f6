"""Mohan's figures as numbers, at their borders; estimates with their intervals."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from tandem_server.analysis import estimates
from tandem_server.analysis.estimates import Box, box, cdf, ellipse
from tandem_server.analysis.events import (
    NetworkEvent,
    apart,
    factor_per_2_db,
    following,
    overlap,
    per_five_minutes,
    recovery,
    up_to_and_over,
    windows,
)
from tandem_server.analysis.mobility_classes import class_of


@pytest.mark.parametrize("level", [0.95, 0.8, 0.5])
def test_a_median_of_21_has_the_order_statistics_that_the_binomial_gives(level):
    values = [float(v * v) for v in range(1, 22)]
    # The resamples' median is at most the k-th value when at least 11 of 21 draws are: Bin(21, k/21).
    at_most = {
        k: sum(math.comb(21, j) * (k / 21) ** j * (1 - k / 21) ** (21 - j) for j in range(11, 22)) for k in range(22)
    }
    low = min(k for k, p in at_most.items() if p >= (1 - level) / 2)
    high = min(k for k, p in at_most.items() if p >= (1 + level) / 2)
    found = estimates.median(values, level, resamples=20_000)
    assert found == (121.0, float(low**2), float(high**2), 21)


def test_intervals_are_the_same_in_any_order_and_few_values_have_none():
    values = [5.0, 1.0, 8.0, 3.0, 9.0, 2.0]
    assert estimates.median(values) == estimates.median(sorted(values)) == estimates.median([*values, math.nan])
    assert estimates.median(values, seed=1).value == estimates.median(values, seed=2).value
    few = [estimates.median(some) for some in ([], [math.nan], [4.0], [4.0, 6.0], [4.0] * 5)]
    assert few == [None, None, (4.0, None, None, 1), (5.0, None, None, 2), (4.0, 4.0, 4.0, 5)]


def test_many_values_are_drawn_in_parts():
    values = list(np.random.default_rng(1).normal(10, 1, 4001))
    found = estimates.median(values)
    # The median's standard error of a normal sample: 1.2533 / √n.
    assert found.high - found.low == pytest.approx(2 * 1.96 * 1.2533 / math.sqrt(4001), rel=0.2)


def test_rates_and_shares_have_intervals_at_their_ends_too():
    assert estimates.rate([1, 3], [300, 300], 300) == (2.0, None, None, 2)
    assert estimates.rate([1, 0], [100, 0], 300) == (3.0, None, None, 1)
    assert estimates.rate([], [], 300) is None
    assert estimates.rate([2, 2, 2], [300, 300, 300], 300) == (2.0, 2.0, 2.0, 3)
    with pytest.raises(ValueError, match="one count"):
        estimates.rate([1], [1, 2], 300)
    # Wilson's for 0 of 10 at 95 %: up to z²/(n + z²) = 3.8415/13.8415.
    assert estimates.share(0, 10) == (0.0, 0.0, pytest.approx(3.8415 / 13.8415, abs=1e-4), 10)
    assert estimates.share(10, 10)[1:] == (pytest.approx(10 / 13.8415, abs=1e-4), 1.0, 10)
    assert estimates.share(0, 0) is None


def test_windows_and_frequencies_of_five_minutes():
    assert windows(0, 600) == [(0, 300), (300, 600)]
    assert windows(0, 660) == [(0, 300), (300, 660)]  # 60 s are not more than the least
    assert windows(0, 661) == [(0, 300), (300, 600), (600, 661)]
    assert (windows(10, 40), windows(5, 5)) == ([(10, 40)], [])
    assert [per_five_minutes(3, seconds) for seconds in (300, 180, 0)] == [3, 5, None]
    assert up_to_and_over([-6.0, -8.0, -8.1, 9.0]) == (2, 2)  # drops of eight decibels are small ones


def test_handovers_follow_drops_and_events_of_both_links_overlap_and_are_apart():
    assert following([10.0], [10.0]) == 1  # one poll showed both
    assert following([10.0], [5.0]) == 1
    assert following([10.0], [4.999]) == 0
    assert following([10.0], [10.001]) == 0
    assert following([10.0, 12.0, 40.0], [9.0]) == 2
    assert following([], [9.0]) == 0
    assert overlap([event(0, "A"), event(6.999, "B")]) == (2, 2)
    assert overlap([event(0, "A"), event(7, "B")]) == (2, 0)
    assert overlap([event(0, "A"), event(1, "A")]) == (2, 0)
    assert overlap([event(0, "A"), event(3, "B"), event(30, "B"), event(33, "B")]) == (4, 2)
    assert overlap([]) == (0, 0)
    events = [event(0, "A"), event(10, "B"), event(14, "A"), event(30, "A")]
    assert [[e.t_s for e in apart(events, gap)] for gap in (10, 4)] == [[0, 30], [0, 10, 14, 30]]


def event(t: float, operator: str) -> NetworkEvent:
    return NetworkEvent(t, operator, "handover")


def series(*pairs: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([t for t, _ in pairs]), np.array([v for _, v in pairs])


def sampled(rtt_ms: Callable[[float], float | None], end_s: float = 60.0) -> tuple[np.ndarray, np.ndarray]:
    """Ten samples a second from 0 on; none where the function says so."""
    return series(*((n / 10, v) for n in range(round(end_s * 10)) if (v := rtt_ms(n / 10)) is not None))


def felt(
    rtt_ms: Callable[[float], float | None], next_s: float = math.inf, end_s: float = 60.0
) -> tuple[float | None, str, float, float]:
    """Of an event at 20 s: t_R, why not, the peak, how much was silence."""
    found = recovery(*sampled(rtt_ms, end_s), 20.0, next_s, end_s)
    assert found.level_ms == 50.0
    t_r = None if math.isnan(found.t_r_s) else pytest.approx(found.t_r_s)
    return t_r, found.why, found.peak_ms, pytest.approx(found.silent_s)


def test_recovery_is_held_and_the_next_event_ends_what_is_the_first_ones() -> None:
    assert felt(lambda t: 600 if 20.1 <= t < 32 and not 21 <= t < 21.1 else 50) == (12.0, "", 600, 0)
    assert felt(lambda t: 75.01 if 20 <= t < 22 else 75 if 22 <= t < 23 else 50) == (2.0, "", 75.01, 0)
    assert felt(lambda t: 75 if t > 20 else 50) == (0.0, "", 75, 0)  # exactly the factor never left
    assert felt(lambda t: 50 if t < 25.1 else 600) == (0.0, "", 50, 0)  # nor what rises too late to be the event's
    # A drop at 20 s and a handover at 23.5 s, whose 700 ms are not the drop's.
    both = [300 if 20 <= n / 10 < 22 else 700 if 23.5 <= n / 10 < 31 else 50 for n in range(600)]
    assert felt(lambda t: both[round(t * 10)], next_s=23.5) == (2.0, "", 300, 0)
    assert felt(lambda t: 300 if 20 <= t < 23.5 else 700 if 23.5 <= t < 31 else 50, next_s=23.5) == (
        None, "next_event", 300, 0,
    )  # fmt: skip


def test_silence_is_out_of_range_and_what_is_not_seen_to_recover_says_why() -> None:
    assert felt(lambda t: None if 20 <= t < 26 else 900 if 26 <= t < 30 else 50) == (10.0, "", 900, 6.0)
    assert felt(lambda t: None if 20 <= t < 26 else 50) == (6.0, "", 50, 6.0)
    assert felt(lambda t: 200 if 20 <= t < 21 else None if 21.5 <= t < 25 else 50) == (5.0, "", 200, 3.6)
    assert felt(lambda t: None if 20 <= t < 20.8 else 50) == (0.0, "", 50, 0)
    assert felt(lambda t: 50 if t < 20 else 600) == (None, "run_ended", 600, 0)
    assert felt(lambda t: 50 if t < 20 else 600, end_s=90.0) == (None, "not_recovered", 600, 0)
    assert felt(lambda t: 50 if t < 24 else None) == (None, "silent_to_end", 50, pytest.approx(36.1))
    assert felt(lambda _: 50, end_s=24.9) == (None, "run_ended", 50, 0)  # it might have risen yet
    assert felt(lambda _: 50, end_s=25.0) == (0.0, "", 50, 0)
    assert felt(lambda t: 600 if 20 <= t < 22 else 50, end_s=22.9) == (None, "run_ended", 600, 0)
    assert recovery(*sampled(lambda t: None if t < 20 else 50), 20.0, math.inf, 60.0).why == "no_sample_before"
    assert recovery(*sampled(lambda t: None if t < 18.1 else 50), 20.0, math.inf, 60.0).why == "just_begun"


def test_the_papers_factor_for_two_decibels():
    assert factor_per_2_db([-6, -8, -10], [2.0, 3.4, 5.78]) == pytest.approx(1.7)
    assert factor_per_2_db([6, 6, 6], [1.0, 2.0, 3.0]) is None
    assert factor_per_2_db([6, 8], [1.0, 2.0]) is None
    with pytest.raises(ValueError, match="above 0"):
        factor_per_2_db([6, 8, 10], [1.0, 0.0, 2.0])


def test_an_ellipse_is_one_standard_deviation_wide():
    """x: 0, 0, 2, 2 has mean 1 and variance 4/3; y the same; they are independent."""
    found = ellipse([0, 0, 2, 2], [0, 2, 0, 2])
    assert found == pytest.approx((1, 1, math.sqrt(4 / 3), math.sqrt(4 / 3), 0, 4))
    assert max(x for x, _ in found.outline()) == pytest.approx(1 + math.sqrt(4 / 3))
    line = ellipse([0, 1, 2], [0, 10, 20])
    assert line.correlation == pytest.approx(1)
    assert all(y == pytest.approx(10 * x) for x, y in line.outline())
    assert ellipse([1, 2], [1, 2]) is None
    assert ellipse([1, 1, 1], [1, 2, 3]).correlation == 0


def test_boxes_distributions_and_mobility_classes():
    assert box([float(v) for v in range(11)]) == Box(1.0, 2.5, 5.0, 7.5, 9.0, 11)
    assert box([math.nan]) is None
    assert cdf([2.0, 1.0, 2.0, 4.0]) == [(1.0, 0.25), (2.0, 0.75), (4.0, 1.0)]
    assert cdf([float(v) for v in range(1000)], most=4) == [(249.0, 0.25), (499.0, 0.5), (749.0, 0.75), (999.0, 1.0)]
    assert cdf([]) == []
    told = [class_of(*words) for words in (("Driving", "still"), ("", "walk"), ("lunch", "moving"), ("", None))]
    assert told == ["high", "low", "moving", None]
