"""Signal drops and mobility of the truth."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from tandem_bench.truth import drops, mobility

LEVELS = st.lists(st.one_of(st.none(), st.integers(-140, -44)), max_size=120)


def test_one_line_a_fall_at_its_steepest():
    levels = [-80.0] * 20 + [-82.0, -85.0, -89.0, -92.0] + [-92.0] * 20
    (drop,) = drops.find(levels, 0.1)
    assert (drop.tick, drop.change_db, drop.from_dbm, drop.to_dbm) == (23, -12.0, -80.0, -92.0)
    assert drop.held_s == 1.0, "seen by any poll"


def test_a_slow_fall_is_none():
    assert drops.find([-80.0 - i // 2 for i in range(60)], 0.1) == [], "5 dB a second"


def test_a_fall_at_the_very_end_counts():
    (drop,) = drops.find([-80.0] * 20 + [-90.0], 0.1)
    assert drop.tick == 20


def test_flicker_of_rounding_is_one_fall_and_two_falls_are_two():
    flicker = [-80.0] * 10 + [-86.0, -85.0, -86.0] + [-86.0] * 20
    assert len(drops.find(flicker, 0.1)) == 1
    two = [-70.0] * 10 + [-78.0] * 20 + [-86.0] * 20
    assert len(drops.find(two, 0.1)) == 2


@given(LEVELS)
def test_found_just_when_some_poll_phase_could_see_it(levels):
    seen = {
        t
        for t in range(10, len(levels))
        if levels[t] is not None and levels[t - 10] is not None and levels[t] - levels[t - 10] <= -6
    }
    found = drops.find(levels, 0.1)
    assert bool(seen) is bool(found)
    assert {d.tick for d in found} <= seen
    assert sum(round(d.held_s / 0.1) for d in found) == len(seen)
    for drop in found:
        assert drop.change_db == drop.to_dbm - drop.from_dbm <= -6


def test_a_short_stop_is_part_of_the_ride_and_a_long_one_is_not():
    go, stop = [5.0] * 100, [0.0]
    assert mobility.changes([0.0] * 50 + go + stop * 149 + go + stop * 20, 0.1) == [
        (0, False),
        (50, True),
        (399, False),
    ]
    assert mobility.changes(go + stop * 150 + go, 0.1) == [(0, True), (100, False), (250, True)]


@given(st.lists(st.floats(0, 30), max_size=400))
def test_states_alternate_from_the_start(speeds):
    changes = mobility.changes(speeds, 0.1)
    assert (changes[0][0] == 0) if speeds else not changes
    assert all(a[1] != b[1] and a[0] < b[0] for a, b in itertools.pairwise(changes))
