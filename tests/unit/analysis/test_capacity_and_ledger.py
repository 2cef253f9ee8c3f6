import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem_server.analysis.capacity import mean_held, offered_bit_per_s
from tandem_server.analysis.ledger import account, ranges_missing
from tandem_server.analysis.truth import Link


def link(*steps: tuple[float, float]) -> Link:
    t = np.array([s[0] for s in steps])
    return Link(t, np.array([s[1] for s in steps]), np.full(len(t), 40.0))


def test_mean_of_steps_is_their_integral():
    steps = link((0.0, 10.0), (1.0, 0.0), (2.0, 40.0))
    assert mean_held(steps.t_s, steps.down_bit_per_s, 0.5, 2.5) == pytest.approx((5 + 0 + 20) / 2)


def test_first_value_holds_before_and_last_after():
    steps = link((1.0, 10.0), (2.0, 30.0))
    assert mean_held(steps.t_s, steps.down_bit_per_s, 0.0, 1.0) == 10.0
    assert mean_held(steps.t_s, steps.down_bit_per_s, 5.0, 9.0) == 30.0


def test_paths_add_up_and_an_unknown_one_makes_the_sum_unknown():
    a, b = link((0.0, 10.0)), link((0.0, 5.0))
    assert offered_bit_per_s([a, b], 0.0, 1.0) == 15.0
    assert offered_bit_per_s([a, None], 0.0, 1.0) is None
    assert offered_bit_per_s([], 0.0, 1.0) is None


@given(
    st.lists(st.tuples(st.floats(0, 50), st.floats(0, 1e8)), min_size=1, max_size=20, unique_by=lambda s: s[0]),
    st.floats(0, 50),
    st.floats(0.01, 20),
)
def test_mean_lies_between_least_and_greatest(steps, start, length):
    held = link(*sorted(steps))
    mean = mean_held(held.t_s, held.down_bit_per_s, start, start + length)
    assert mean is not None
    assert held.down_bit_per_s.min() * 0.999999 - 1e-6 <= mean <= held.down_bit_per_s.max() * 1.000001 + 1e-6


def test_what_is_lost_is_what_was_made_and_neither_rejected_nor_dropped_nor_is_in_the_database():
    for made, rows, expected in (
        ((5, 5, 0, 0, 0), {"radio": [1, 2, 3], "event": [4, 5]}, (5, 0, [])),
        ((8, 8, 0, 0, 0), {"radio": [1, 2, 5, 6]}, (4, 4, [(3, 4), (7, 8)])),
        ((8, 5, 0, 2, 1), {"radio": [1, 2, 3, 4, 5]}, (5, 0, [(6, 8)])),
        ((2, 2, 0, 0, 0), {"radio": [1, 1]}, (1, 1, [(2, 2)])),  # the same number twice counts once
        ((None,) * 5, {"radio": [1, 4]}, (2, None, [(2, 3)])),  # without the probe's account nobody knows it
    ):
        counts = account(*made, rows)
        assert (counts.in_database, counts.lost, counts.missing) == expected, made
    counts = account(7, 7, 0, 0, 0, None)
    assert (counts.in_database, counts.lost) == (None, None)


@given(st.sets(st.integers(1, 60)), st.integers(0, 60))
def test_gaps_and_numbers_part_the_whole(found, last):
    gaps = {n for a, b in ranges_missing(found, 1, last) for n in range(a, b + 1)}
    assert gaps == set(range(1, last + 1)) - found
