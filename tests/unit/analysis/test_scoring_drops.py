import pytest

from tandem_server.analysis.drops import by_size, score
from tandem_server.analysis.handovers import FoundEvent
from tandem_server.analysis.truth import TrueDrop


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
