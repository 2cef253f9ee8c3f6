import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem_server.analysis.mobility import score, score_lives, spans, state_at

TRUE = [(0.0, False), (40.0, True), (80.0, False)]


def test_accuracy_is_the_share_of_the_time_and_starts_are_false_or_missed():
    for told, span, expected in (
        ([(50.0, True), (90.0, False)], (0.0, 100.0), (0.8, 0, 0, [10.0])),  # late start and late stop cost their time
        ([(10.0, True), (20.0, False), (40.0, True), (80.0, False)], (0.0, 100.0), (0.9, 1, 0, [0.0])),
        ([], (0.0, 100.0), (0.6, 0, 1, [])),
        # Only the time between first and last poll counts.
        ([], (0.0, 40.0), (1.0, 0, 0, [])),
        ([], (40.0, 80.0), (0.0, 0, 1, [])),
    ):
        found = score(TRUE, told, *span)
        assert (found.false_starts, found.missed_starts, found.lag_s) == expected[1:], (told, span)
        assert found.accuracy == pytest.approx(expected[0])
    assert score(TRUE, [], 5.0, 5.0).accuracy is None


changes = st.lists(st.tuples(st.floats(-10, 110), st.booleans()), max_size=20).map(
    lambda c: sorted(c, key=lambda x: x[0])
)


@given(changes)
def test_spans_cover_the_time_once_and_say_the_state(list_of_changes):
    parts = spans(list_of_changes, 0.0, 100.0)
    assert parts[0][0] == 0.0
    assert parts[-1][1] == 100.0
    for (_, end, state), (start, _, following) in itertools.pairwise(parts):
        assert end == start
        assert state != following
    for start, end, state in parts:
        if len({t for t, _ in list_of_changes}) == len(list_of_changes):
            assert state_at(list_of_changes, (start + end) / 2) == state


@given(changes)
def test_a_perfect_detector_scores_one(list_of_changes):
    found = score(list_of_changes, list_of_changes, 0.0, 100.0)
    assert found.accuracy == pytest.approx(1.0)
    assert (found.false_starts, found.missed_starts) == (0, 0)


def test_a_restart_forgets_and_its_gap_is_nobodys():
    """Moving from 40 to 80; off from 50 to 60, found again at 65."""
    found = score_lives(TRUE, [(42.0, True), (60.0, False), (65.0, True), (81.0, False)], [(0.0, 50.0), (60.0, 100.0)])
    assert found.accuracy == pytest.approx(1 - (2 + 5 + 1) / 90)
    assert (found.false_starts, found.missed_starts, found.lag_s) == (0, 0, [2.0])
    # What was said before the restart does not hold after it.
    late = score_lives(TRUE, [(42.0, True)], [(0.0, 50.0), (60.0, 100.0)])
    assert late.accuracy == pytest.approx(1 - (2 + 20) / 90)
    # Off while all of the movement went on: nobody missed it.
    off = score_lives(TRUE, [], [(0.0, 39.0), (81.0, 100.0)])
    assert (off.accuracy, off.missed_starts, off.lag_s) == (1.0, 0, [])
    assert score_lives(TRUE, [], [(0.0, 39.0), (70.0, 100.0)]).missed_starts == 1
    assert score_lives([], [], []).accuracy is None


@given(st.lists(st.tuples(st.floats(0, 100), st.booleans()), max_size=8).map(lambda cs: sorted(cs, key=lambda c: c[0])))
def test_one_life_is_scored_as_it_was(changes):
    assert score_lives(TRUE, changes, [(0.0, 100.0)]) == score(TRUE, changes, 0.0, 100.0)
