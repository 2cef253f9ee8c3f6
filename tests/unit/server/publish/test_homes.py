"""Homes: what is kept could not have been there."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem_server.publish.homes import (
    FASTEST_M_PER_S,
    Fixes,
    Home,
    cut_spans,
    distance_m,
    hidden_middle,
    home_of,
    secret_key,
)

HOME = Home(48.2, 11.6, 300.0)
KEY = bytes(range(32))


def fixes(north_m, at_s, error_m=5.0):
    latitude = HOME.latitude_deg + np.asarray(north_m, dtype=float) / 111_195
    times = (np.asarray(at_s, dtype=float) * 1e9).astype(np.int64)
    return Fixes(times, latitude, np.full(len(latitude), HOME.longitude_deg), np.full(len(latitude), error_m))


@given(
    st.lists(st.tuples(st.floats(-60_000, 60_000), st.floats(0.5, 4000)), min_size=1, max_size=30),
    st.binary(min_size=32, max_size=32),
)
def test_at_no_kept_time_the_probe_could_have_been_in_the_circle(way, key):
    north = [place for place, _ in way]
    at = np.cumsum([step for _, step in way])
    cut = cut_spans([HOME], fixes(north, at), key)
    bounds = cut.bounds
    assert np.all(bounds[:, 0] <= bounds[:, 1])
    assert np.all(bounds[1:, 0] > bounds[:-1, 1])
    times = (np.linspace(at[0] - 100, at[-1] + 100, 200) * 1e9).astype(np.int64)
    for time in times[~cut.hold(times)]:
        # To the nearest fixes on either side: whoever was within the told circle then had further to go than there was time.
        for place, moment in zip(north, at, strict=True):
            allowed = abs(time / 1e9 - moment) * FASTEST_M_PER_S
            if abs(place) > allowed + HOME.radius_m:
                break
        else:
            pytest.fail("a kept time is within reach of the home from every fix")


def test_a_visit_is_cut_with_some_seconds_before_and_behind_it():
    at = np.arange(0, 400)
    north = np.where(at < 200, 5000.0, np.where(at < 260, 0.0, 5000.0))
    cut = cut_spans([HOME], fixes(north, at), KEY)
    inner = cut.bounds[(cut.bounds[:, 0] > 0) & (cut.bounds[:, 1] < 400e9)]
    assert len(inner) == 1
    before, behind = 200 - inner[0, 0] / 1e9, inner[0, 1] / 1e9 - 259
    assert 10 <= min(before, behind) <= max(before, behind) <= 41
    at = np.arange(200)  # a coarse fix counts by its error
    coarse, exact = (cut_spans([HOME], fixes(np.full(200, 1500.0), at, error), KEY) for error in (1200, 5))
    assert [cut.touch(100 * 10**9, 100 * 10**9) for cut in (coarse, exact)] == [True, False]


def test_silence_that_is_long_enough_for_a_visit_is_cut_and_a_shorter_one_is_not():
    # 20 km away: there and back takes 390 s and more at the greatest speed.
    short = cut_spans([HOME], fixes([20_000, 20_000], [0, 300]), KEY)
    long = cut_spans([HOME], fixes([20_000, 20_000], [0, 3000]), KEY)
    assert not short.touch(0, 300 * 10**9)
    assert long.touch(1500 * 10**9, 1500 * 10**9)
    assert not long.touch(0, 10 * 10**9)


def test_what_is_cut_is_not_the_told_circle_but_holds_it_and_is_the_same_again():
    middle = hidden_middle(HOME, KEY)
    away = float(distance_m(*middle, HOME.latitude_deg, HOME.longitude_deg))
    assert 0 < away <= 0.9 * HOME.radius_m + 1
    assert hidden_middle(HOME, KEY) == middle
    assert hidden_middle(HOME, bytes(32)) != middle
    north, east = HOME.radius_m / 111_195, HOME.radius_m / 74_100
    around = np.linspace(0, 6.28, 40)
    ring = [(HOME.latitude_deg + north * math.cos(a), HOME.longitude_deg + east * math.sin(a)) for a in around]
    assert all(float(distance_m(*point, *middle)) < 2 * HOME.radius_m for point in ring)


def test_what_is_no_home_is_refused_without_repeating_it():
    for told in ("", "47.9,11.6", "91,0,500", "48,181,500", "48,11,99", "48,11,20001", "nan,11,500", "48,11,nan"):
        with pytest.raises(ValueError, match="hint:") as refused:
            home_of(told)
        assert told == "" or told not in str(refused.value)


def test_the_key_is_made_once_for_its_owner_only(tmp_path):
    file = tmp_path / "state" / "publish.key"
    key = secret_key(file)
    assert len(key) == 32
    assert file.stat().st_mode & 0o777 == 0o600
    assert secret_key(file) == key
    assert "48.2" not in repr(HOME)
    file.write_bytes(b"short")
    with pytest.raises(ValueError, match="is no key"):
        secret_key(file)
