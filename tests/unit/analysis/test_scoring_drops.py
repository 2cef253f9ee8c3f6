import numpy as np
import pytest

from tandem_server.analysis.drops import at_polls, by_size, score
from tandem_server.analysis.handovers import FoundEvent
from tandem_server.analysis.truth import Level, TrueDrop


@pytest.mark.parametrize(
    ("drops", "events", "seen"),
    [
        pytest.param(
            [(10.0, -7.0), (30.0, -9.0)], [(8.5, "A"), (31.5, "A")], (2, 0, 0), id="on either side of the moment"
        ),
        pytest.param([(10.0, -7.0)], [(12.5, "A")], (0, 1, 1), id="further away it misses it and is false"),
        pytest.param([(10.0, -14.0)], [(9.6, "A"), (10.6, "A")], (1, 0, 0), id="two of one long fall are not false"),
        pytest.param([(10.0, -7.0)], [(10.0, "B")], (0, 1, 1), id="operators are told apart"),
    ],
)
def test_events_find_drops(drops, events, seen):
    found = score([TrueDrop(t, "A", db) for t, db in drops], [FoundEvent(*event) for event in events])
    assert (len(found.found), len(found.missed), len(found.false_events)) == seen
    assert found.true == len(drops)


def test_edges_of_sizes():
    edges = {-5.9: [], -6.0: ["6-8"], -7.99: ["6-8"], -8.0: ["8-12"], -11.9: ["8-12"], -12.0: ["12+"], -60.0: ["12+"]}
    assert {change: [name for name, n in by_size([change]).items() if n] for change in edges} == edges


def level(*steps: tuple[float, float]) -> Level:
    """RSRP ten times a second for 20 s: ``steps`` are (from second, dBm)."""
    t = np.arange(0, 20, 0.1)
    values = np.full(len(t), steps[0][1])
    for start, value in steps[1:]:
        values[t >= start - 1e-9] = value
    return Level(t, values)


POLLS = np.arange(0.2, 19, 1.0)


def test_a_fall_between_two_polls_is_true_and_stamped_at_the_later_and_what_no_two_polls_saw_is_none():
    assert at_polls("A", level((0, -80.0), (5.5, -90.0)), POLLS, POLLS) == [TrueDrop(6.2, "A", -10.0)]
    gap = np.array([0.2, 1.2, 2.2, 6.2, 7.2])
    for seen, polls in (
        (level((0, -80.0), (5.3, -95.0), (5.9, -80.0)), POLLS),  # a dip between two polls
        (level((0, -80.0), (4.0, -95.0)), gap),  # polls with a gap between them are not successive
        (level((0, -80.0), (4.0, float("nan")), (8.0, -95.0)), POLLS),  # the radio was absent
    ):
        assert at_polls("A", seen, polls, polls) == []


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
