"""Figures of streams whose times are made up; clocks that can and cannot be compared."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.experiment.latency import Stream, figures
from tandem.experiment.reflector import Answer, Clock, Comparison, compare, read_clock

MS = 1_000_000
APART = Comparison(False, None, None)


def stream(ups, downs, ahead_ns=0, stay_ms=1, lost_up=(), lost_down=()):
    """Questions every 20 ms with these one-way times; the server's clock is ``ahead_ns`` before ours."""
    found, count = Stream(), 0
    for n, (up, down) in enumerate(zip(ups, downs, strict=True)):
        sent = n * 20 * MS
        found.sent_ns.append(sent)
        if n in lost_up:
            continue
        count += 1
        if n in lost_down:
            continue
        there = sent + round(up * MS)
        back = there + stay_ms * MS
        answer = Answer(1, n, count, sent, there + ahead_ns, back + ahead_ns)
        found.heard[n] = answer, back + round(down * MS)
    return found


@given(st.integers(-(10**18), 10**18))
def test_round_trip_and_variation_do_not_depend_on_the_clocks(ahead):
    found = figures(stream([10, 12, 10], [30, 30, 33], ahead), APART)
    assert (found["rtt_ms"]["p1"], found["rtt_ms"]["p99"]) == (40, 43)
    assert (found["up_variation_ms"]["p99"], found["down_variation_ms"]["p99"]) == (2, 3)
    assert (found["rtt_jitter_ms"]["p1"], found["rtt_jitter_ms"]["p99"]) == (1, 2)
    assert (found["up_ms"], found["down_ms"]) == (None, None)
    assert found["server_ms"]["mean"] == 1


@given(st.integers(-(10**15), 10**15))
def test_absolute_times_between_clocks_that_are_synchronised(ahead):
    found = figures(stream([10, 12], [30, 30], ahead), Comparison(True, 1.5, ahead))
    assert found["up_ms"]["mean"] == pytest.approx(11, abs=0.01)
    assert found["down_ms"]["mean"] == pytest.approx(30, abs=0.01)


def test_loss_by_its_direction_and_a_stream_of_nothing_is_none():
    found = figures(stream([10] * 6, [10] * 6, lost_up=(1, 5), lost_down=(2,)), APART)
    # the last that was answered is number 4: of 5 questions the server had 4
    assert (found["sent"], found["received"], found["lost_up"], found["lost_down"]) == (6, 3, 1, 1)
    assert found["lost_share"] == 0.5
    silent = Stream(sent_ns=[1, 2, None])
    found = figures(silent, APART)
    assert (found["sent"], found["not_sent"], found["lost_share"], found["lost_up"]) == (2, 1, 1.0, None)
    assert found["rtt_ms"]["p50"] is None
    assert figures(Stream(), APART)["lost_share"] is None


def test_clocks_are_compared_only_when_both_are_synchronised():
    good, poor = Clock(1000, True, 2.0), Clock(400, False, None)
    assert compare(good, Clock(400, True, 3.0)) == Comparison(True, 5.0, 600)
    for pair in ((good, poor), (poor, good), (good, None), (good, Clock(1, None, None)), (good, Clock(1, True, None))):
        assert compare(*pair) == APART
    for told in (None, 1, {}, {"utc_minus_monotonic_ns": "1"}, {"utc_minus_monotonic_ns": True}):
        assert read_clock(told) is None
