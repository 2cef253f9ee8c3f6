"""Areas and ways: what a position is counted as."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem_server.analysis.coverage.geohash import MOST_LETTERS, geohash, letters_for
from tandem_server.analysis.coverage.seen import S_NS, Fix
from tandem_server.analysis.coverage.way import STEP_M, distance_m, steps

LETTERS = "0123456789bcdefghjkmnpqrstuvwxyz"


def cell(area):
    """South, north, west, east of a geohash: by halving, letter for letter."""
    sides = [[-180.0, 180.0], [-90.0, 90.0]]
    even = True
    for letter in area:
        for mask in (16, 8, 4, 2, 1):
            side = sides[0 if even else 1]
            middle = sum(side) / 2
            side[0 if LETTERS.index(letter) & mask else 1] = middle
            even = not even
    return (*sides[1], *sides[0])


@pytest.mark.parametrize(
    ("latitude", "longitude", "area"),
    [(57.64911, 10.40744, "u4pruydqqvj"), (42.605, -5.603, "ezs42"), (-25.382708, -49.265506, "6gkzwgjzn820")],
)
def test_places_have_the_geohash_that_the_world_gives_them(latitude, longitude, area):
    assert geohash(latitude, longitude, len(area)) == area


@given(st.floats(-90, 90), st.floats(-180, 180), st.integers(1, 12))
def test_a_place_lies_in_its_area(latitude, longitude, letters):
    south, north, west, east = cell(geohash(latitude, longitude, letters))
    assert south - 1e-9 <= latitude <= north + 1e-9
    assert west - 1e-9 <= longitude <= east + 1e-9


@pytest.mark.parametrize(
    ("error_m", "letters"),
    [(0, 6), (5, 6), (610, 6), (612, 5), (1112, 5), (4800, 5), (5000, 4), (19_500, 4), (55_600, 3), (10**7, 1)],
)
def test_what_is_known_less_well_is_a_larger_area(error_m, letters):
    assert letters_for(error_m) == letters


@given(st.floats(0, 2e6))
def test_no_area_is_smaller_than_its_error(error_m):
    letters = letters_for(error_m)
    south, north, _, _ = cell(geohash(10.0, 10.0, letters))
    assert 1 <= letters <= MOST_LETTERS
    assert distance_m(south, 10, north, 10) >= error_m * 0.999


def fixes(places, full=True, error_m=None, every_s=1):
    return [Fix(i * every_s * S_NS, la, lo, full, error_m) for i, (la, lo) in enumerate(places)]


def north_by(metres):
    return metres / 111_194.93


def test_a_straight_way_is_as_long_as_it_is():
    way = steps(fixes([(50 + north_by(12 * i), 8.0) for i in range(101)]))
    assert sum(step.metres for step in way) == pytest.approx(1200, abs=STEP_M)
    assert sum(step.end_utc_ns - step.start_utc_ns for step in way) == 100 * S_NS


def test_a_receiver_that_stands_goes_nowhere_though_it_wanders():
    places = [(50 + north_by(3 * ((i * 7) % 5 - 2)), 8.0) for i in range(3600)]
    assert sum(step.metres for step in steps(fixes(places))) == 0


def test_nothing_is_joined_over_a_gap_a_jump_or_coarse_fixes():
    before = [Fix(i * S_NS, 50 + north_by(20 * i), 8.0, True, 5.0) for i in range(10)]
    after = [Fix((60 + i) * S_NS, 50 + north_by(4000 + 20 * i), 8.0, True, 5.0) for i in range(10)]
    assert sum(step.metres for step in steps([*before, *after])) == pytest.approx(360)
    jump = [Fix(10 * S_NS, 51.0, 8.0, True, 5.0), Fix(11 * S_NS, 51.0, 8.0, True, 5.0)]
    assert sum(step.metres for step in steps([*before, *jump])) == pytest.approx(180)
    assert steps(fixes([(50.01, 8.0), (50.02, 8.0)], full=False, error_m=1112)) == []
    assert steps(fixes([(50 + north_by(20 * i), 8.0) for i in range(10)], error_m=80.0)) == []
