"""Mohan's figures as numbers, at their borders; estimates with their intervals; mobility classes by how often events came: the fit, what
leaving one out says of it, and each run's window, by hand."""

import itertools
import math
import random
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
from tandem_server.analysis.mobility_classes import (
    LABELLED,
    PLAYED,
    Classifier,
    Fit,
    Judged,
    Times,
    as_json,
    class_of,
    fit,
    from_json,
    run_classes,
)
from tandem_server.analysis.recorded import SubflowSeries
from tandem_server.analysis.series import (
    around,
    by_second,
    curve,
    differences,
    means,
    of_operators,
    summed,
    utilisation,
)


def test_a_median_of_21_has_the_order_statistics_that_the_binomial_gives():
    level = 0.8
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


def test_boxes_distributions_and_words_of_mobility_classes():
    assert box([float(v) for v in range(11)]) == Box(1.0, 2.5, 5.0, 7.5, 9.0, 11)
    assert box([math.nan]) is None
    assert cdf([2.0, 1.0, 2.0, 4.0]) == [(1.0, 0.25), (2.0, 0.75), (4.0, 1.0)]
    assert cdf([float(v) for v in range(1000)], most=4) == [(249.0, 0.25), (499.0, 0.5), (749.0, 0.75), (999.0, 1.0)]
    assert cdf([]) == []
    told = [class_of(*words) for words in (("Driving", "still"), ("", "walk"), ("lunch", "moving"), ("", None))]
    assert told == ["high", "low", "moving", None]


def test_seconds_are_means_and_those_in_which_one_subflow_is_silent_count_with_its_worse_round_trip():
    assert by_second(*series((0.1, 1.0), (0.9, 3.0), (1.0, 5.0), (2.5, math.nan))) == {0: 2.0, 1: 5.0}
    assert means([(-0.6, 1.0), (-0.1, 2.0), (0.0, 3.0), (0.4, 5.0)], 0.5) == [(-0.75, 1.0), (-0.25, 2.0), (0.25, 4.0)]
    a = dict.fromkeys(range(10), 50.0)
    assert differences({"A": a, "B": {2: 60.0, 6: 900.0, 7: 80.0}}) == [10, 850, 850, 850, 850, 30, 30, 30]
    assert differences({"A": {0: 50.0, 9: 50.0}, "B": {0: 60.0, 9: 70.0}}) == [10, 20]  # nothing is known of both
    assert differences({"A": {0: 40.0}, "B": {1: 90.0}}) == [50.0]
    assert differences({"A": {}, "B": {1: 90.0}}) == differences({}) == []
    known = series((0.0, 1.0), (5.0, 2.0), (9.0, math.nan), (12.0, 4.0), (30.0, 5.0))
    assert around(*known, 10.0, 5.0, 5.0) == [(-5.0, 2.0), (2.0, 4.0)]


def test_subflows_of_one_operator_add_up_and_the_least_rtt_counts():
    rows = (("A", 0.0, 4.0, 50.0), ("A", 0.5, 6.0, 40.0), ("B", 0.2, 1.0, 90.0), (None, 0.0, 1.0, 1.0))
    found = [SubflowSeries("r", "1", "server", "a", who, *np.array(values)[:, None]) for who, *values in rows]
    assert of_operators(found, "goodput_bit_per_s") == {"A": {0: 10.0}, "B": {0: 1.0}}
    assert of_operators(found, "rtt_ms") == {"A": {0: 40.0}, "B": {0: 90.0}}


def test_sums_are_taken_at_each_time_and_hold_over_gaps():
    one = series((0.0, 10.0), (0.1, 20.0), (0.2, math.nan), (0.4, 40.0))
    times, total = summed([one, series((0.3, 7.0), (0.2, 5.0)), series((0.0, math.nan))])
    assert times.tolist() == [0, 0.1, 0.2, 0.3, 0.4]
    assert total.tolist() == [10, 20, 25, 27, 40]
    assert [len(column) for column in summed([])] == [0, 0]


def test_utilisation_is_over_the_best_seconds():
    found = {"A": {0: 8.0, 1: 0.0, 2: 5.0}, "B": {0: 2.0, 1: 5.0}}
    # Sums 10, 5, 5; their 95 % quantile is 9.5.
    by_hand = ((8 / 9.5, 2 / 9.5), (0, 5 / 9.5), (5 / 9.5, 0))
    assert utilisation(found, "A", "B") == [pytest.approx(shares) for shares in by_hand]
    assert utilisation({}, "A", "B") == utilisation({"A": {0: 0.0}}, "A", "B") == []


def test_a_curve_is_the_median_over_events_and_empty_where_there_are_none():
    """Half a second of 500, 300 and 350 from three events on; the last one's run ends 5 s later."""
    peaks = {20.0: 500.0, 60.0: 300.0, 80.0: 350.0}
    t = np.arange(0, 85, 0.1)
    value = np.full(len(t), 50.0)
    for at, peak in peaks.items():
        value[(t >= at) & (t < at + 0.5)] = peak
    found = curve([([*peaks, 300.0], [(t, value)])])
    told = dict(zip(found.offset_s, zip(found.median, found.low, found.high, strict=True), strict=True))
    assert (found.n, told[0.25], told[-9.75]) == (3, (350, 325, 425), (50, 50, 50))
    assert told[8.25] == pytest.approx((50, math.nan, math.nan), nan_ok=True)  # of two events
    found = curve([([5.0], [])])
    assert (found.n, np.isnan(found.median).all()) == (0, True)


POLLED = (0.0, 1800.0)


def test_the_threshold_between_low_and_high_speed():
    found = fit({"low": [1.0, 2.0, 3.0], "high": [7.0, 8.0, 9.0]})
    assert found == (Classifier(("low", "high"), (5.0,)), 1.0, 6, ((3, 0), (0, 3)))
    assert [found.classifier.of(v) for v in (4.999, 5.0)] == ["low", "high"]
    one = fit({"low": [1.0], "high": [2.0]})
    assert (one.classifier.bounds, one.accuracy, one.judged) == ((1.5,), None, 0)
    assert fit({"low": [1.0], "high": [5.0, 6.0]})[1:] == (1.0, 2, ((0, 0), (0, 2)))
    assert fit({"low": [1.0], "high": [], "moving": [3.0]}) is None
    # 8.5 lies among the other class: it is judged wrong when it is left out.
    wrong = fit({"low": [1.0, 2.0, 3.0, 8.5], "high": [7.0, 8.0, 9.0]})
    assert (wrong.accuracy, wrong.confusion) == (pytest.approx(6 / 7), ((3, 1), (0, 3)))


def test_no_other_bounds_have_fewer_errors():
    drawn = random.Random(3)
    for _ in range(60):
        names = ("static", "low", "high")[: drawn.choice((2, 3))]
        samples = {name: [float(drawn.randint(0, 9)) for _ in range(drawn.randint(1, 5))] for name in names}
        places = [v / 2 - 0.25 for v in range(23)]

        def errors(c, samples=samples):
            return sum(c.of(v) != name for name, values in samples.items() for v in values)

        every = itertools.combinations_with_replacement(places, len(names) - 1)
        assert errors(fit(samples).classifier) == min(errors(Classifier(names, bounds)) for bounds in every)


def test_a_fit_goes_through_a_file():
    found = fit({"low": [1.0, 2.0, 3.0, 8.5], "high": [7.0, 8.0, 9.0]})
    assert from_json(as_json(found, "x")) == (found, "x")
    for change in (
        {"format": "other"},
        {"bounds_per_five_minutes": []},
        {"classes": ["low", "fast"]},
        {"judged": None},
    ):
        with pytest.raises(ValueError, match="no fit of mobility classes"):
            from_json({**as_json(found, "x"), **change})
    with pytest.raises(ValueError, match="no fit"):
        from_json([])


def walk_and_drive():
    """Five minutes each by turns: on foot an event a minute, in a car five."""
    spans = [(300.0 * n, 300.0 * (n + 1), ("low", "high")[n % 2]) for n in range(6)]
    events = [a + k * (60 if name == "low" else 12) for a, b, name in spans for k in range(5 if name == "low" else 25)]
    return spans, events


def test_a_campaign_with_labelled_runs_is_fitted_on_them():
    spans, events = walk_and_drive()
    runs = {f"r{n}": span for n, span in enumerate(spans)}
    found = run_classes(Times(events, POLLED, spans, [], runs))
    assert found.fitted_on == f"6 windows of about 300 s of {LABELLED}"
    assert (found.fit.classifier.bounds, found.fit.accuracy) == ((15.0,), 1.0)
    assert found.runs == {f"r{n}": (Judged(5.0, "low"), Judged(25.0, "high"))[n % 2] for n in range(6)}
    assert found.as_json()["confusion"] == [[3, 0], [0, 3]]
    assert "right for 100 % of 6" in found.accuracy_text()


def test_a_runs_window_is_five_minutes_about_it_but_not_into_runs_of_another_label():
    runs = {"walk": (280.0, 290.0, "low"), "drive": (310.0, 320.0, "high"), "free": (600.0, 610.0, None)}
    given = Fit(Classifier(("low", "high"), (10.0,)), None, 0, ((0, 0), (0, 0))), "given: elsewhere"
    found = run_classes(Times([100.0, 200.0, 295.0, 312.0, 700.0], POLLED, [], [], runs), given)
    # Walk: 135 to 310, of 200 and 295; drive: 290 to 465, of 295 and 312; free: 455 to 755, of 700.
    rates = [found.runs[run].per_five_minutes for run in runs]
    assert rates == [pytest.approx(2 * 300 / 175), pytest.approx(2 * 300 / 175), pytest.approx(1.0)]
    assert found.fitted_on == "given: elsewhere"


def test_without_labels_what_the_bench_played_and_without_that_it_says_so():
    spans, events = walk_and_drive()
    assert run_classes(Times(events, POLLED, [], spans, {})).fitted_on.endswith(PLAYED)
    assert run_classes(Times(events, POLLED, spans[:1], spans, {})).fitted_on.endswith(PLAYED)
    # One span of each class: windows of a minute, five each.
    short = run_classes(Times(events, POLLED, spans[:2], spans, {}))
    assert (short.fitted_on, short.fit.judged) == (f"10 windows of about 60 s of {LABELLED}", 10)
    bare = run_classes(Times(events, POLLED, [], [], {"r": (0.0, 10.0, None)}))
    assert (bare.fit, bare.runs["r"].mobility) == (None, None)
    assert "no fit was given (report --mobility FILE)" in bare.accuracy_text()
    assert run_classes(Times([], None, spans, [], {"r": (0.0, 10.0, None)})).runs["r"] == Judged(None, None)


def test_the_papers_factor_for_two_decibels():
    assert factor_per_2_db([-6, -8, -10], [2.0, 3.4, 5.78]) == pytest.approx(1.7)
    assert factor_per_2_db([6, 6, 6], [1.0, 2.0, 3.0]) is None
    assert factor_per_2_db([6, 8], [1.0, 2.0]) is None
    with pytest.raises(ValueError, match="above 0"):
        factor_per_2_db([6, 8, 10], [1.0, 0.0, 2.0])
