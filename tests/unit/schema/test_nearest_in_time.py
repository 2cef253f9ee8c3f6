"""Joining by time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.schema.nearest import nearest

S = 10**9


def test_each_record_gets_the_nearest_within_a_second() -> None:
    rows_ns = [10 * S, 11 * S, 15 * S]
    times_ns = [8 * S, 9 * S, int(10.4 * S), int(10.5 * S), int(10.6 * S), 13 * S, 16 * S, 16 * S + 1]
    assert nearest(times_ns, rows_ns, ["a", "b", "c"]) == [None, "a", "a", "a", "b", None, "c", None]


def test_the_numbers_of_times_and_rows_must_agree() -> None:
    with pytest.raises(ValueError, match="2 times for 1 rows"):
        nearest([1], [1, 2], ["a"])


@given(st.lists(st.integers(0, 50), max_size=30), st.lists(st.integers(0, 50), max_size=30), st.integers(0, 10))
def test_it_is_what_a_look_at_every_pair_finds(times: list[int], rows: list[int], within: int) -> None:
    for time, found in zip(times, nearest(times, rows, rows, within), strict=True):
        distances = [abs(row - time) for row in rows]
        if found is None:
            assert not distances or min(distances) > within
        else:
            assert abs(found - time) == min(distances) <= within
            assert found == min(row for row in rows if abs(row - time) == min(distances))
