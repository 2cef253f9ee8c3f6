import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem_server.analysis.handovers import CellPoll, FoundEvent, lives, merge, score
from tandem_server.analysis.truth import TrueHandover


def polls(*cells: tuple[float, int]) -> dict[str, list[CellPoll]]:
    return {"A": [CellPoll(t, eci) for t, eci in cells]}


def every_second(eci_at: dict[float, int], until: int = 10) -> dict[str, list[CellPoll]]:
    """A poll each second; ``eci_at`` names from when a cell is recorded."""
    return polls(*((float(t), [e for at, e in sorted(eci_at.items()) if at <= t][-1]) for t in range(until)))


def true(*changes: tuple[float, int, int]) -> list[TrueHandover]:
    return [TrueHandover(t, "A", before, after) for t, before, after in changes]


STAYS, LATE = every_second({0: 1}), polls((3.0, 1), (4.0, 1), (7.5, 2), (8.5, 2))
ONE = true((4.2, 1, 2))


@pytest.mark.parametrize(
    ("handovers", "cells", "events", "seen"),
    [
        pytest.param(ONE, every_second({0: 1, 5: 2}), [5.0], (1, 1, 0, 0), id="recorded within two seconds"),
        pytest.param(ONE, every_second({0: 1, 7: 2}), [7.0], (1, 0, 1, 0), id="recorded later: its event is false"),
        pytest.param(ONE, LATE, [7.5], (1, 1, 0, 0), id="what was not polled cannot be seen sooner"),
        pytest.param(ONE, LATE, [8.5], (1, 1, 1, 0), id="an event a poll later tells of nothing"),
        pytest.param(
            ONE, STAYS | {"B": every_second({0: 1, 5: 2})["A"]}, [], (1, 0, 0, 0), id="another operator's poll"
        ),
        pytest.param(
            true((4.2, 1, 2), (4.6, 2, 3)),
            every_second({0: 1, 5: 3}),
            [5.0],
            (1, 1, 0, 0),
            id="several are one to the last cell",
        ),
        pytest.param(true((4.2, 1, 2), (4.6, 2, 1)), STAYS, [], (0, 0, 0, 1), id="there and back is hidden"),
        pytest.param([], every_second({0: 1, 5: 2}), [5.0], (0, 0, 1, 0), id="an event without a handover"),
        pytest.param(ONE, {}, [], (1, 0, 0, 0), id="an operator that was never polled"),
        # The modem says a new cell unasked; the collector ends before it polls again.
        pytest.param(true((9.4, 1, 2)), STAYS, [9.6], (0, 0, 0, 0), id="an event after the last poll and the handover"),
        pytest.param(
            true((9.4, 1, 2)), STAYS, [9.2], (0, 0, 1, 0), id="an event after the last poll, before the handover"
        ),
        pytest.param(true((50.0, 1, 2)), STAYS, [], (0, 0, 0, 0), id="after the last poll it is nobody's to find"),
    ],
)
def test_what_is_detected_missed_false_and_hidden(handovers, cells, events, seen):
    found = score(handovers, cells, [FoundEvent(t, "A") for t in events])
    assert (found.true, found.detected, found.false, found.hidden) == seen
    assert len(found.missed) == found.true - found.detected


def test_the_delay_is_that_of_the_poll_and_what_was_missed_is_named():
    assert score(ONE, every_second({0: 1, 5: 2}), []).delay_s == [5.0 - 4.2]
    assert score(ONE, LATE, []).delay_s == [7.5 - 4.2]
    assert score(ONE, every_second({0: 1, 7: 2}), []).missed[0].to_eci == 2


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
    off = true((12.0, 1, 2))
    assert (score(off, cells, []).true, score(off, cells, [], starts=[19.5]).true) == (1, 0)
    assert lives([1.0, 2.0, 5.0], [4.0, 9.0]) == [(1.0, 2.0), (5.0, 5.0)]
