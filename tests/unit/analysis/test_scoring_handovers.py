from hypothesis import given
from hypothesis import strategies as st

from tandem_server.analysis.handovers import CellPoll, FoundEvent, lives, merge, score
from tandem_server.analysis.truth import TrueHandover


def polls(*cells: tuple[float, int]) -> dict[str, list[CellPoll]]:
    return {"A": [CellPoll(t, eci) for t, eci in cells]}


def every_second(eci_at: dict[float, int], until: int = 10) -> dict[str, list[CellPoll]]:
    """A poll each second; ``eci_at`` names from when a cell is recorded."""
    return polls(*((float(t), [e for at, e in sorted(eci_at.items()) if at <= t][-1]) for t in range(until)))


def test_new_cell_recorded_within_two_seconds_is_detected():
    found = score([TrueHandover(4.2, "A", 1, 2)], every_second({0: 1, 5: 2}), [FoundEvent(5.0, "A")])
    assert (found.true, found.detected, found.false) == (1, 1, 0)
    assert found.delay_s == [5.0 - 4.2]


def test_new_cell_recorded_later_is_missed_and_its_event_is_false():
    found = score([TrueHandover(4.2, "A", 1, 2)], every_second({0: 1, 7: 2}), [FoundEvent(7.0, "A")])
    assert (found.true, found.detected, found.false) == (1, 0, 1)
    assert found.missed[0].to_eci == 2


def test_what_was_not_polled_cannot_be_seen_sooner():
    """The next poll came only after the tolerance; an event a poll later tells of nothing."""
    late = polls((3.0, 1), (4.0, 1), (7.5, 2), (8.5, 2))
    found = score([TrueHandover(4.2, "A", 1, 2)], late, [FoundEvent(7.5, "A")])
    assert (found.true, found.detected, found.false) == (1, 1, 0)
    assert found.delay_s == [7.5 - 4.2]
    again = score([TrueHandover(4.2, "A", 1, 2)], late, [FoundEvent(8.5, "A")])
    assert (again.detected, again.false) == (1, 1)


def test_another_operators_poll_does_not_count():
    cells = {"A": every_second({0: 1})["A"], "B": every_second({0: 1, 5: 2})["A"]}
    assert score([TrueHandover(4.2, "A", 1, 2)], cells, []).detected == 0


def test_several_between_two_polls_are_one_to_the_last_cell():
    true = [TrueHandover(4.2, "A", 1, 2), TrueHandover(4.6, "A", 2, 3)]
    found = score(true, every_second({0: 1, 5: 3}), [FoundEvent(5.0, "A")])
    assert (found.true, found.detected, found.hidden) == (1, 1, 0)


def test_there_and_back_between_two_polls_is_hidden_and_not_scored():
    true = [TrueHandover(4.2, "A", 1, 2), TrueHandover(4.6, "A", 2, 1)]
    found = score(true, every_second({0: 1}), [])
    assert (found.true, found.detected, found.hidden) == (0, 0, 1)


def test_event_without_a_handover_is_false():
    assert score([], every_second({0: 1, 5: 2}), [FoundEvent(5.0, "A")]).false == 1


def test_handover_of_an_operator_that_was_never_polled_is_missed():
    found = score([TrueHandover(4.2, "A", 1, 2)], {}, [])
    assert (found.true, found.detected) == (1, 0)


def test_an_event_after_the_last_poll_may_tell_of_a_handover_after_it():
    """The modem says a new cell unasked; the collector ends before it polls again."""
    found = score([TrueHandover(9.4, "A", 1, 2)], every_second({0: 1}), [FoundEvent(9.6, "A")])
    assert (found.true, found.missed, found.false) == (0, [], 0)
    assert score([TrueHandover(9.4, "A", 1, 2)], every_second({0: 1}), [FoundEvent(9.2, "A")]).false == 1


def test_handover_after_the_last_poll_is_nobodys_to_find():
    assert score([TrueHandover(50.0, "A", 1, 2)], every_second({0: 1}), []).true == 0


@given(st.lists(st.tuples(st.floats(0, 100), st.integers(1, 5)), max_size=30))
def test_merging_never_makes_more_and_ends_in_the_last_cell(changes):
    at, handovers = 1, []
    for t, to in sorted(changes):
        handovers.append(TrueHandover(t, "A", at, to))
        at = to
    merged, hidden = merge(handovers, [float(t) for t in range(101)])
    assert len(merged) + hidden <= len(handovers)
    assert all(m.to_eci in {h.to_eci for h in handovers if h.t_s == m.t_s} for m in merged)


def test_a_handover_while_the_collector_was_off_is_left_out():
    cells = {"A": [CellPoll(float(t), 1 if t < 12 else 2) for t in (*range(10), *range(20, 30))]}
    true = [TrueHandover(12.0, "A", 1, 2)]
    assert score(true, cells, []).true == 1
    assert (score(true, cells, [], starts=[19.5]).true, lives([1.0, 2.0, 5.0], [4.0, 9.0])) == (
        0,
        [(1.0, 2.0), (5.0, 5.0)],
    )
