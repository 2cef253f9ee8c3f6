"""One parameter scales a scenario; every phase stays, distances follow from speed and time."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tandem_bench.scenario import load, play
from tandem_bench.scenario.route import lay_out


@pytest.mark.parametrize("name", ["commute", "still", "walk", "drive"])
@settings(max_examples=15)
@given(duration_s=st.floats(10, 3600))
def test_phases_cover_the_duration(name, duration_s):
    scenario = load(name, duration_s, 1)
    route = lay_out(scenario)
    assert len(route.t_s) == round(duration_s * 10)
    assert len(route.starts) == len(scenario.phases) + 1
    assert all(b > a for a, b in zip(route.starts[:-1], route.starts[1:], strict=True))
    assert (route.starts[0], route.starts[-1]) == (0, len(route.t_s))
    moved = np.hypot(np.diff(route.x_m), np.diff(route.y_m))
    assert moved == pytest.approx(route.speed_m_s[:-1] * 0.1, abs=1e-6)
    assert route.distance_m[-1] == pytest.approx(moved.sum(), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("duration_s", [30, 95.5, 180])
def test_whole_commutes_of_any_length(duration_s):
    played = play(load("commute", duration_s, 2))
    assert [p["activity"] for p in played.phases] == ["still", "walk", "tram", "drive", "still"]
    assert [round(p["until_s"], 1) for p in played.phases][-1] == duration_s
    home = played.phases[0]["until_s"] / duration_s
    assert home >= 0.22
    changes = played.of_type("mobility")
    assert [e["moving"] for e in changes] == [False, True, False]
    assert all(len(t) == round(duration_s * 10) for t in played.operators.values())


def test_a_long_one_goes_far_and_meets_several_areas():
    played = play(load("commute", 1200, 1))
    assert played.summary()["distance_m"] > 5_000
    assert all(len(t) == 12_000 for t in played.operators.values())
    assert all(len(set(t.columns["tac"])) > 1 for t in played.operators.values())


def test_speed_keeps_to_acceleration_and_stands_at_stops():
    scenario = load("commute", 180, 4)
    route = lay_out(scenario)
    change = np.abs(np.diff(route.speed_m_s)) / 0.1
    assert change.max() <= 2.0 + 1e-6
    tram = slice(route.starts[2] + 30, route.starts[3] - 30)
    assert route.speed_m_s[tram].min() == 0, "the tram stops"
    assert (route.speed_m_s[route.first_phase()] == 0).all()
