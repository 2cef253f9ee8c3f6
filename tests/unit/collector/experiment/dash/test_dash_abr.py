"""The rules' decisions on scripted throughput and buffer, computed by hand from the papers' formulas."""

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tandem.experiment.dash.abr import (
    BbaRule,
    BolaRule,
    Context,
    DynamicRule,
    FixedRule,
    InsufficientBuffer,
    Loaded,
    Throughput,
    ThroughputRule,
)

LADDER = (1_000_000, 2_000_000, 4_000_000)


def loaded(index=0, mbit_per_s=1.0, seconds=1.0, at=0.0, buffer_s=4.0, duration_s=4.0, stalled=False):
    """A segment that came at ``mbit_per_s`` within ``seconds``, the last byte at ``at``."""
    size = round(mbit_per_s * 1e6 * seconds / 8)
    return Loaded(index, size, at - seconds, at, duration_s, buffer_s, stalled)


def ask(rule, buffer_s, now_s=0.0, segment_s=4.0, stalled=False):
    return rule.choose(Context(now_s, buffer_s, segment_s, stalled))


def test_fixed_stays_and_is_never_beyond_the_ladder():
    assert ask(FixedRule(LADDER, 1), 0).index == 1
    assert ask(FixedRule(LADDER, 99), 50).index == 2


def test_the_estimate_is_the_smaller_of_two_averages_by_download_time():
    throughput = Throughput()
    assert throughput.bit_per_s is None
    throughput.add(1_000_000, 2.0)  # 4 Mbit/s for 2 s: both averages are exact after the correction
    assert throughput.bit_per_s == pytest.approx(4e6)
    throughput.add(1_500_000, 3.0)
    assert throughput.bit_per_s == pytest.approx(4e6)
    # 3 s, one half-life of the fast one, of 1 Mbit/s. fast: before 4e6 (1 − 2^(−5/3)); now half of that and 0.5e6, by 1 − 2^(−8/3)
    throughput.add(375_000, 3.0)
    fast = (0.5 * 4e6 * (1 - 2 ** (-5 / 3)) + 0.5e6) / (1 - 2 ** (-8 / 3))
    slow = (2 ** (-3 / 8) * 4e6 * (1 - 2 ** (-5 / 8)) + (1 - 2 ** (-3 / 8)) * 1e6) / (1 - 2**-1)
    assert fast < slow
    assert throughput.bit_per_s == pytest.approx(fast)
    # after a rise the slow one is the smaller
    throughput.add(12_500_000, 10.0)
    faster = (2 ** (-10 / 3) * fast * (1 - 2 ** (-8 / 3)) + (1 - 2 ** (-10 / 3)) * 1e7) / (1 - 2 ** (-18 / 3))
    slower = (2 ** (-10 / 8) * slow * (1 - 2**-1) + (1 - 2 ** (-10 / 8)) * 1e7) / (1 - 2 ** (-18 / 8))
    assert slower < faster
    assert throughput.bit_per_s == pytest.approx(slower)


def test_throughput_takes_what_nine_tenths_allow():
    for mbit_per_s, index in ((0.5, 0), (2.2, 0), (2.23, 1), (4.44, 1), (4.45, 2), (99, 2)):
        rule = ThroughputRule(LADDER)
        assert ask(rule, 0).index == 0
        rule.loaded(loaded(mbit_per_s=mbit_per_s, seconds=2))
        assert ask(rule, 0).index == index


GP = math.log(4) / (16 / 10 - 1)
VP = 10 / GP


def test_bola_starts_by_throughput_then_goes_by_buffer_with_its_placeholder():
    rule = BolaRule(LADDER)
    assert ask(rule, 0).index == 0
    rule.loaded(loaded(mbit_per_s=3, seconds=4 / 3, at=4 / 3, buffer_s=4))
    # 0.9 · 3 = 2.7: the second. The buffer has a segment, so this is the last choice of the start; the placeholder lifts 4 s of buffer
    # to where the second is preferred: 11.328 s.
    assert ask(rule, 4, now_s=4 / 3).index == 1
    assert rule.placeholder_s == pytest.approx(11.328 - 4, abs=1e-3)
    rule.loaded(loaded(1, mbit_per_s=3, seconds=8 / 3, at=4, buffer_s=6))
    # × 0.99; at most V_p (u + g_p) − (buffer at the request, 6 + 2.667) = 19.328 − 8.667, which does not bind
    assert rule.placeholder_s == pytest.approx(0.99 * 7.328, abs=1e-2)
    # 6 + 7.255 = 13.255 is between the meetings; too little buffer allows 0.5 · 3 · 6 / 4 = 2.25 Mbit/s
    assert ask(rule, 6, now_s=4).index == 1


def test_bola_counts_time_that_was_not_the_networks_and_does_not_rise_beyond_throughput():
    rule = BolaRule(LADDER)
    ask(rule, 0)
    rule.loaded(loaded(mbit_per_s=3, seconds=4 / 3, at=4 / 3, buffer_s=4))
    ask(rule, 4, now_s=4 / 3)
    rule.loaded(loaded(1, mbit_per_s=3, seconds=1, at=4, buffer_s=12))
    before_s = rule.placeholder_s
    # six seconds of waiting count: 12 + 7.25 + 6 s would be the third's, but 0.9 · 3 Mbit/s sustains only the second (BOLA-O)
    choice = ask(rule, 12, now_s=10)
    assert choice.index == 1
    # 12 + 7.25 + 6 less 19.328 is too much: the placeholder gives way, nothing is waited for
    assert choice.wait_s == 0
    assert rule.placeholder_s == pytest.approx(
        before_s + 6 - (12 + before_s + 6 - VP * (1 + math.log(2) + GP)), abs=1e-6
    )


def test_bola_waits_when_real_buffer_is_too_much_for_the_bitrate():
    rule = BolaRule(LADDER)
    ask(rule, 0)
    rule.loaded(loaded(mbit_per_s=1.2, seconds=1, at=1, buffer_s=4))
    ask(rule, 4, now_s=1)
    rule.loaded(loaded(mbit_per_s=1.2, seconds=1, at=2, buffer_s=20))
    choice = ask(rule, 20, now_s=2)
    # the lowest alone is sustained; it scores 0 at V_p (1 + g_p) = 14.328 s, so 20 s are 5.672 too much
    assert choice.index == 0
    assert choice.wait_s == pytest.approx(20 - VP * (1 + GP))


def test_a_stall_takes_the_placeholder_away():
    rule = BolaRule(LADDER)
    ask(rule, 0)
    rule.loaded(loaded(mbit_per_s=5, seconds=1, at=1, buffer_s=4))
    ask(rule, 4, now_s=1)
    assert rule.placeholder_s > 0
    rule.loaded(loaded(2, mbit_per_s=1, seconds=9, at=10, buffer_s=4, stalled=True))
    assert rule.placeholder_s == 0


def test_too_little_buffer_caps_from_the_third_segment_on():
    throughput = Throughput()
    cap = InsufficientBuffer(LADDER, throughput)
    throughput.add(500_000, 1.0)  # 4 Mbit/s
    cap.loaded()
    assert cap.highest(Context(0, 1, 4)) == 2
    cap.loaded()
    # 0.5 · 4 Mbit/s · buffer / 4 s
    script = [(1, 0), (3.99, 0), (4.01, 1), (7.99, 1), (8.01, 2)]
    assert [cap.highest(Context(0, buffer_s, 4)) for buffer_s, _ in script] == [index for _, index in script]
    assert cap.highest(Context(0, 20, 4, stalled=True)) == 0


def test_dynamic_is_throughputs_up_to_the_stable_buffer_and_bolas_until_half_of_it():
    rule = DynamicRule(LADDER)
    told = []
    for buffer_s, now_s in ((0, 0), (4, 1), (11.9, 2), (12, 3), (11, 4), (6.1, 5), (6, 6), (11, 7), (12, 8)):
        told.append((ask(rule, buffer_s, now_s).rule, rule.by_buffer))
        rule.loaded(loaded(mbit_per_s=50, seconds=0.01, at=now_s + 0.01, buffer_s=buffer_s + 4))
    by_buffer = [False, False, False, True, True, True, False, False, True]
    assert [said for _, said in told] == by_buffer
    assert {name for name, said in told if not said} == {"throughput"}
    assert {name for name, said in told if said} == {"bola-e"}


@given(
    st.lists(st.integers(1, 10**9), min_size=1, max_size=12, unique=True).map(sorted),
    st.lists(st.tuples(st.floats(0, 120), st.floats(1e-3, 60), st.integers(0, 10**9), st.booleans()), max_size=30),
    st.sampled_from(("throughput", "bba", "bola-e", "dynamic")),
)
def test_every_rule_always_chooses_one_of_the_ladder_and_waits_no_longer_than_the_buffer(ladder, script, name):
    rules = {
        "throughput": lambda: ThroughputRule(ladder),
        "bba": lambda: BbaRule(ladder, 10, 20),
        "bola-e": lambda: BolaRule(ladder),
        "dynamic": lambda: DynamicRule(ladder),
    }
    rule, now_s = rules[name](), 0.0
    for buffer_s, seconds, size, stalled in script:
        choice = ask(rule, buffer_s, now_s, stalled=stalled)
        assert 0 <= choice.index < len(ladder)
        assert 0 <= choice.wait_s <= max(buffer_s, 0) + 1e-6
        now_s += choice.wait_s + seconds
        rule.loaded(Loaded(choice.index, size, now_s - seconds, now_s, 4, buffer_s + 4, stalled))


def bba_of_the_paper(rates, reservoir_s, cushion_s, previous, buffer_s):
    """Algorithm 1 of Huang et al. (SIGCOMM 2014), line by line, with rates instead of indexes."""
    r_min, r_max = rates[0], rates[-1]
    plus = r_max if previous == r_max else min(r for r in rates if r > previous)
    minus = r_min if previous == r_min else max(r for r in rates if r < previous)
    f = r_min + (r_max - r_min) * min(1.0, max(0.0, (buffer_s - reservoir_s) / cushion_s))
    if buffer_s <= reservoir_s:
        return r_min
    if buffer_s >= reservoir_s + cushion_s:
        return r_max
    if f >= plus:
        return max(r for r in rates if r < f)
    if f <= minus:
        return min(r for r in rates if r > f)
    return previous


RATES = st.lists(st.integers(50_000, 15_000_000), min_size=2, max_size=10, unique=True).map(sorted)


# Reservoir to 90 s, cushion to 216 s: f(131) = 1.98 Mbit/s, f(133) = 2.02, f(215) = 3.98, f(150) = 2.43, f(95) = 1.12.
@example([1_000_000, 2_000_000, 4_000_000], [0, 90, 131, 133, 215, 216, 150, 131, 95, 90, 300])
@given(RATES, st.lists(st.floats(0, 240), min_size=1, max_size=40))
def test_bba_is_the_papers_algorithm_on_any_ladder_and_buffer(rates, buffers):
    rule, previous = BbaRule(rates, 90, 126), rates[0]
    for buffer_s in buffers:
        previous = bba_of_the_paper(rates, 90, 126, previous, buffer_s)
        assert rates[ask(rule, buffer_s).index] == previous


@given(RATES, st.floats(0, 60), st.floats(0.5, 15))
def test_bolas_choice_is_the_papers_maximum_in_segments(rates, buffer_s, segment_s):
    """Spiteri et al. (2016), Eq. 9: m maximizes (V υ_m + V γ p − Q) / S_m, with Q in segments of p seconds and υ_m = ln(S_m / S_1);
    V and γ p as the later paper (2018) sets them from the minimum buffer of 10 s and the target."""
    rule = BolaRule(rates)
    target_s = max(12, 10 + 2 * len(rates))
    top = math.log(rates[-1] / rates[0])
    gamma_p = 1 + top / (target_s / 10 - 1)  # utilities of the player begin at 1, those of the paper at 0
    v = 10 * (target_s / 10 - 1) / top / segment_s
    q = buffer_s / segment_s
    scores = [(v * math.log(s / rates[0]) + v * gamma_p - q) / s for s in rates]
    chosen = rule.best(buffer_s)
    assert scores[chosen] == pytest.approx(max(scores), rel=1e-6, abs=1e-12)
