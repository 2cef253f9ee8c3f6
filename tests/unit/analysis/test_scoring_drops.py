import numpy as np
import pytest

from tandem_server.analysis.drops import at_polls, by_size, score
from tandem_server.analysis.handovers import FoundEvent
from tandem_server.analysis.truth import Level, TrueDrop


def test_event_on_either_side_of_the_steepest_moment_finds_the_drop():
    true = [TrueDrop(10.0, "A", -7.0), TrueDrop(30.0, "A", -9.0)]
    found = score(true, [FoundEvent(8.5, "A"), FoundEvent(31.5, "A")])
    assert (len(found.found), len(found.missed), len(found.false_events)) == (2, 0, 0)


def test_event_further_away_misses_it_and_is_false():
    found = score([TrueDrop(10.0, "A", -7.0)], [FoundEvent(12.5, "A")])
    assert (found.true, len(found.missed), len(found.false_events)) == (1, 1, 1)


def test_two_events_of_one_long_fall_are_not_false():
    assert not score([TrueDrop(10.0, "A", -14.0)], [FoundEvent(9.6, "A"), FoundEvent(10.6, "A")]).false_events


def test_operators_are_told_apart():
    assert score([TrueDrop(10.0, "A", -7.0)], [FoundEvent(10.0, "B")]).missed


@pytest.mark.parametrize(
    ("change", "name"), [(-6.0, "6-8"), (-7.99, "6-8"), (-8.0, "8-12"), (-11.9, "8-12"), (-12.0, "12+"), (-60.0, "12+")]
)
def test_edges_of_sizes(change, name):
    assert {k for k, n in by_size([change]).items() if n} == {name}


def test_smaller_changes_have_no_size():
    assert sum(by_size([-5.9]).values()) == 0


def level(*steps: tuple[float, float]) -> Level:
    """RSRP ten times a second for 20 s: ``steps`` are (from second, dBm)."""
    t = np.arange(0, 20, 0.1)
    values = np.full(len(t), steps[0][1])
    for start, value in steps[1:]:
        values[t >= start - 1e-9] = value
    return Level(t, values)


POLLS = np.arange(0.2, 19, 1.0)


def test_a_fall_between_two_polls_is_true_and_stamped_at_the_later():
    assert at_polls("A", level((0, -80.0), (5.5, -90.0)), POLLS, POLLS) == [TrueDrop(6.2, "A", -10.0)]


def test_a_dip_that_no_poll_sees_is_no_drop():
    assert at_polls("A", level((0, -80.0), (5.3, -95.0), (5.9, -80.0)), POLLS, POLLS) == []


def test_polls_with_a_gap_between_them_are_not_successive():
    polls = np.array([0.2, 1.2, 2.2, 6.2, 7.2])
    assert at_polls("A", level((0, -80.0), (4.0, -95.0)), polls, polls) == []


def test_nothing_is_true_where_the_radio_was_absent():
    assert at_polls("A", level((0, -80.0), (4.0, float("nan")), (8.0, -95.0)), POLLS, POLLS) == []


def test_a_fall_that_rounding_made_six_is_not_false():
    event = FoundEvent(6.2, "A")
    nearly = at_polls("A", level((0, -80.1), (5.5, -85.9)), POLLS, POLLS, least_db=5.0)
    assert score([], [event], nearly).false_events == []
    assert score([], [event]).false_events == [event]


def test_a_fall_during_a_poll_may_be_seen_by_it_or_by_the_next():
    steep = level((0, -80.0), (6.2, -90.0))
    begun, ended = POLLS - 0.05, POLLS + 0.05
    assert at_polls("A", steep, begun, ended) == []
    assert [d.change_db for d in at_polls("A", steep, begun, ended, surely=False)] == [-10.0, -10.0]
