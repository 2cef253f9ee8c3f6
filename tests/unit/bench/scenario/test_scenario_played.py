"""Played scenarios: any duration, the same bytes from the same seed, stretches played again; what holds of radio, links and handovers."""

import dataclasses
import hashlib
import inspect
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tandem_bench.scenario import load, play
from tandem_bench.scenario.cells import Cell
from tandem_bench.scenario.levels import Heard
from tandem_bench.scenario.model import Carrier
from tandem_bench.scenario.route import lay_out
from tandem_bench.scenario.serving import serve


@given(name=st.sampled_from(["commute", "still", "walk", "drive"]), duration_s=st.floats(10, 3600))
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


def test_whole_commutes_of_any_length():
    for duration_s in (30, 95.5, 180):
        played = play(load("commute", duration_s, 2))
        assert [p["activity"] for p in played.phases] == ["still", "walk", "tram", "drive", "still"]
        assert round(played.phases[-1]["until_s"], 1) == duration_s
        assert played.phases[0]["until_s"] / duration_s >= 0.22, "at home"
        assert [e["moving"] for e in played.of_type("mobility")] == [False, True, False]
        assert all(len(t) == round(duration_s * 10) for t in played.operators.values())


def digest(seed: int) -> str:
    played = play(load("commute", 40, seed))
    text = "".join(line for t in played.operators.values() for line in t.lines()) + json.dumps(played.events)
    return hashlib.sha256(text.encode()).hexdigest()


def test_same_seed_same_bytes_whatever_the_hash_seed_and_the_threads_and_another_seed_others():
    environment = dict(os.environ, PYTHONHASHSEED="12345", OMP_NUM_THREADS="4", OPENBLAS_NUM_THREADS="4")
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    imports = "import hashlib, json\nfrom tandem_bench.scenario import load, play\n"
    program = f"{imports}{inspect.getsource(digest)}\nprint(digest(7))"
    shown = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == digest(7) != digest(8)


SCENARIO = load("still", 20, 1)
CARRIER = Carrier(1300, 20.0, 1.0)


def heard(eci: int, levels: np.ndarray, load_share: float = 0.0) -> Heard:
    cell = Cell(eci, eci % 504, 1, CARRIER, 0.0, load_share)
    return Heard(cell, 0, 0, levels, levels, np.full(len(levels), load_share))


def served(serving: np.ndarray, neighbour: np.ndarray, load_share: float = 0.0, **model):
    handover = dataclasses.replace(SCENARIO.handover, long_share=0.0, long_share_at_speed=0.0, **model)
    scenario = dataclasses.replace(SCENARIO, handover=handover)
    route = lay_out(scenario)
    cells = [heard(1 << 8 | 1, serving), heard(2 << 8 | 1, neighbour, load_share)]
    return serve(scenario, scenario.operators[0], cells, route)


@given(better_ticks=st.integers(1, 12), trigger_ms=st.sampled_from([0, 100, 160, 320, 640]))
def test_handover_only_after_the_time_to_trigger(better_ticks, trigger_ms):
    serving, neighbour = np.full(200, -80.0), np.full(200, -95.0)
    neighbour[100 : 100 + better_ticks] = -70.0
    out = served(serving, neighbour, time_to_trigger_ms=float(trigger_ms))
    due = (better_ticks - 1) * 100 >= trigger_ms
    there = [c for c in out.changes if c.to_cell == 1]
    assert bool(there) is due
    if due:
        assert there[0].started * 100 >= 100 * 100 + trigger_ms


@settings(max_examples=settings.default.max_examples // 4)
@given(seed=st.integers(0, 10**6))
def test_truth_of_handovers_is_the_change_of_cells(seed):
    played = play(load("drive", 60, seed))
    for operator, timeline in played.operators.items():
        eci = timeline.columns["eci"]
        changes = [(round(i / 10, 1), eci[i - 1], eci[i]) for i in range(1, len(eci)) if eci[i] != eci[i - 1]]
        truth = played.of_type("handover", operator)
        assert [(e["t_s"], e["from_eci"], e["to_eci"]) for e in truth] == changes
        for e in truth:
            assert e["handover_kind"] == ("sector" if e["from_eci"] >> 8 == e["to_eci"] >> 8 else "enb")
            assert e["interruption_ms"] >= 0
            assert e["queue"] in ("kept", "dropped")
        outages = played.of_type("outage", operator)
        out = timeline.columns["outage"]
        for e in outages:
            first = round(e["t_s"] * 10)
            assert all(out[first : min(len(out), int(e["until_s"] * 10 + 1e-6))])
        assert sum(out) == sum(min(len(out), int(e["until_s"] * 10 + 1e-6)) - round(e["t_s"] * 10) for e in outages), (
            "no outage without a line"
        )


def test_a_serving_cell_that_falls_out_of_reach_is_left():
    """At 90 m/s between small cells no trigger keeps up; every tick still has a cell that is heard."""
    small = dataclasses.replace(SCENARIO.operators[0], spacing_m=100.0, clear_m=0.0)
    fast = dataclasses.replace(load("drive").phases[1], speed_m_s=90.0, acceleration_m_s2=10.0)
    played = play(
        dataclasses.replace(SCENARIO, duration_s=40.0, phases=(fast,), operators=(small, SCENARIO.operators[1]))
    )
    assert min(played.operators["A"].columns["rsrp_dbm"]) > -140
    assert len(set(played.operators["A"].columns["eci"])) > 5


def test_commutes_begin_as_the_file_says_and_have_several_handovers_of_both_kinds():
    counts, kinds = [], set()
    for seed in range(3):
        played = play(load("commute", 180, seed))
        home = played.summary()["phases"][0]["operators"]
        assert 35e6 <= home["A"]["down_bit_per_s"] <= 60e6
        assert 25e6 <= home["B"]["down_bit_per_s"] <= 45e6
        assert all(8e6 <= home[o]["up_bit_per_s"] <= 25e6 for o in "AB")
        assert all(home[o]["handovers"] == 0 and home[o]["outage_s"] == 0 for o in "AB")
        counts += [len(played.of_type("handover", o)) for o in "AB"]
        kinds |= {e["handover_kind"] for e in played.of_type("handover")}
    assert kinds == {"enb", "sector"}
    assert 4 <= sorted(counts)[len(counts) // 2] <= 10
    assert min(counts) >= 1
