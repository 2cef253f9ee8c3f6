"""Which mobility state a second has."""

import random

from hypothesis import given
from hypothesis import strategies as st

from tandem_server.analysis.coverage.seen import S_NS, Telling
from tandem_server.analysis.coverage.states import CLASS_WITHIN_S, HOLDS_S, States


def health(t, mobile, kind=None):
    return Telling(t * S_NS, mobile, kind)


def test_a_telling_holds_until_the_next_and_not_for_ever():
    states = States([health(0, False), health(10, False)])
    found = [states.at(t * S_NS) for t in (-1, 0, 9, 10, 10 + HOLDS_S, 11 + HOLDS_S)]
    assert found == ["", "still", "still", "still", "still", ""]


def test_events_tell_the_second_and_health_the_class():
    start, stop = Telling(33 * S_NS, True, None, begins=True), Telling(200 * S_NS, False, "high", ends=True)
    told = [health(t, 33 <= t < 200, "high" if t >= 93 else None) for t in range(0, 300, 10)]
    states = States([start, stop, *told])
    assert states.at(32 * S_NS) == "still"
    # The class that is told after the first minute is that of the minute before.
    assert {states.at(t * S_NS) for t in range(33, 200)} == {"high"}
    assert states.at(200 * S_NS) == "still"


def test_a_short_movement_has_no_class_and_does_not_take_the_next_ones():
    told = [
        Telling(10 * S_NS, True, None, begins=True),
        Telling(30 * S_NS, False, None, ends=True),
        Telling(40 * S_NS, True, None, begins=True),
        health(60, True, "low"),
    ]
    states = States(told)
    assert [states.at(t * S_NS) for t in (15, 35, 45)] == ["moving", "still", "low"]


def test_a_class_told_much_later_is_not_that_of_the_beginning():
    told = [health(t, True, "low" if t > CLASS_WITHIN_S else None) for t in range(0, 200, 10)]
    states = States(told)
    assert states.at(0) == "moving"
    assert states.at(10 * S_NS) == "low"


def test_a_span_has_the_state_of_most_of_it():
    states = States([health(t, t >= 20, "low" if t >= 20 else None) for t in range(0, 60, 10)])
    assert states.most(0, 30 * S_NS) == "still"
    assert states.most(10 * S_NS, 60 * S_NS) == "low"
    assert states.most(5 * S_NS, 5 * S_NS) == "still"


@given(st.lists(st.tuples(st.integers(0, 500), st.booleans(), st.sampled_from([None, "low", "high"]))), st.randoms())
def test_the_order_of_arrival_changes_nothing(rows, shuffler: random.Random):
    told = [health(t, mobile, kind if mobile else None) for t, mobile, kind in {row[0]: row for row in rows}.values()]
    other = told.copy()
    shuffler.shuffle(other)
    assert [States(told).at(t * S_NS) for t in range(600)] == [States(other).at(t * S_NS) for t in range(600)]
