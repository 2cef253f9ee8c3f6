"""Handover: event A3 with its time to trigger, interruption, radio link failure; on made-up levels and in whole scenarios."""

import dataclasses

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


@given(gain=st.floats(0, 3.4))
def test_no_handover_within_offset_and_hysteresis(gain):
    assert not served(np.full(200, -80.0), np.full(200, -80.0 + gain), offset_db=2.0, hysteresis_db=1.5).changes


def test_new_cell_serves_only_after_the_interruption():
    neighbour = np.full(200, -95.0)
    neighbour[100:] = -70.0
    out = served(np.full(200, -80.0), neighbour, interruption_ms=350.0, interruption_spread=0.0, drop_queue_share=0.0)
    (change,) = out.changes
    assert change.interruption_ms == 350.0
    assert change.tick - change.started == 4
    assert (out.cell[: change.tick] == 0).all()
    assert (out.cell[change.tick :] == 1).all()
    assert out.available[change.started : change.tick].tolist() == [0, 0, 0, pytest.approx(0.5)]
    assert (np.delete(out.available, range(change.started, change.tick)) == 1).all()
    assert out.kept.all()


def test_dropped_queues_show_as_an_outage():
    neighbour = np.full(200, -95.0)
    neighbour[100:] = -70.0
    out = served(np.full(200, -80.0), neighbour, drop_queue_share=1.0)
    (change,) = out.changes
    assert not change.kept
    assert change.interruption_ms >= 100
    assert out.available[change.started] == 0
    assert not out.kept[change.started]


def test_drowned_link_fails_and_comes_back_elsewhere():
    serving, neighbour = np.full(200, -80.0), np.full(200, -81.0)
    serving[100:] = -110.0
    out = served(serving, neighbour, load_share=0.9, time_to_trigger_ms=5120.0)
    change = out.changes[0]
    assert change.cause == "radio link failure"
    assert change.started == pytest.approx(110, abs=2), "a second below the threshold"
    assert change.to_cell == 1
    assert not change.kept


@settings(max_examples=6)
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
    for seed in range(6):
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
