"""truth.jsonl: whole, in order, with the times of both clocks; signal drops and mobility of the truth."""

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem_bench import truth
from tandem_bench.scenario import load, play
from tandem_bench.truth import find_drops

EPOCH, UTC = 5_000_000_000_123, 1_700_000_000_000_000_000


@pytest.fixture(scope="module")
def played():
    return play(load("commute", 30, 81))  # one handover and one outage


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def check(lines):
    assert all(line["monotonic_ns"] - EPOCH == line["utc_ns"] - UTC for line in lines)
    assert all(abs(line["t_s"] - (line["monotonic_ns"] - EPOCH) / 1e9) < 1e-4 for line in lines)
    times = [line["t_s"] for line in lines]
    assert times == sorted(times)


def test_everything_in_order(played, tmp_path):
    path = tmp_path / "truth.jsonl"
    count = truth.write(played, path, EPOCH, UTC)
    lines = read(path)
    assert len(lines) == count
    check(lines)
    of = {kind: [x for x in lines if x["type"] == kind] for kind in {x["type"] for x in lines}}
    assert len(of["radio"]) == len(of["link"]) == 2 * 300
    assert [x["activity"] for x in of["phase"]] == ["still", "walk", "tram", "drive", "still"]
    assert len(of["handover"]) == len(played.of_type("handover"))
    assert set(of["radio"][0]) == {
        "t_s", "monotonic_ns", "utc_ns", "type", "operator", "rsrp_dbm", "rsrq_db", "sinr_db", "rssi_dbm", "plmn", "tac",
        "eci", "pci", "earfcn", "rat", "speed_m_s",
    }  # fmt: skip
    assert set(of["link"][0]) == {
        "t_s", "monotonic_ns", "utc_ns", "type", "operator", "down_bit_per_s", "up_bit_per_s", "rtt_ms", "buffer_down_bytes",
        "buffer_up_bytes", "loss", "outage",
    }  # fmt: skip


def test_later_lines_and_logs_find_their_places(played, tmp_path):
    log = tmp_path / "link-A.jsonl"
    entry = {"type": "link_log", "operator": "A", "direction": "down"}
    entries = [{**entry, "monotonic_ns": EPOCH + i * 10**8} for i in range(50)]
    log.write_text("".join(json.dumps(e) + "\n" for e in entries) + '{"type": "link_lo')
    fault = {"type": "fault", "t_s": 7.25, "operator": "B", "fault": "hang", "seconds": 3}
    path = tmp_path / "truth.jsonl"
    count = truth.write(played, path, EPOCH, UTC, later=[fault], logs=[log])
    lines = read(path)
    assert len(lines) == count
    check(lines)
    (found,) = [x for x in lines if x["type"] == "fault"]
    assert found["monotonic_ns"] == EPOCH + 7_250_000_000
    assert sum(x["type"] == "link_log" for x in lines) == 50


def test_an_early_end_cuts_what_was_not_played(played, tmp_path):
    path = tmp_path / "truth.jsonl"
    truth.write(played, path, EPOCH, UTC, until_s=10.0)
    lines = read(path)
    assert max(x["t_s"] for x in lines) == 10.0
    assert {x["activity"] for x in lines if x["type"] == "phase"} < {"still", "walk", "tram", "drive"}


def test_a_play_that_goes_on_beyond_the_scenario_goes_on_in_its_last_phase(played, tmp_path):
    path = tmp_path / "truth.jsonl"
    truth.write(played, path, EPOCH, UTC, until_s=played.duration_s + 90)
    phases = [x for x in read(path) if x["type"] == "phase"]
    assert [x["until_s"] for x in phases[:-1]] == [x["t_s"] for x in phases[1:]]
    assert phases[-1]["until_s"] == played.duration_s + 90


@pytest.mark.parametrize("line", ["{", "[]", '{"t_s": 1}', '{"type": "fault"}', '{"type": "fault", "t_s": "soon"}'])
def test_lines_that_are_none_are_named(played, tmp_path, line):
    log = tmp_path / "bad.jsonl"
    log.write_text(line + "\n")
    with pytest.raises(truth.TruthError, match=r"bad\.jsonl:1: "):
        truth.write(played, tmp_path / "truth.jsonl", EPOCH, UTC, logs=[log])
    assert not (tmp_path / "truth.jsonl").exists()


LEVELS = st.lists(st.one_of(st.none(), st.integers(-140, -44)), max_size=120)


@given(LEVELS)
def test_found_just_when_some_poll_phase_could_see_it(levels):
    seen = {
        t
        for t in range(10, len(levels))
        if levels[t] is not None and levels[t - 10] is not None and levels[t] - levels[t - 10] <= -6
    }
    found = find_drops(levels, 0.1)
    assert bool(seen) is bool(found)
    assert {d.tick for d in found} <= seen
    assert sum(round(d.held_s / 0.1) for d in found) == len(seen)
    for drop in found:
        assert drop.change_db == drop.to_dbm - drop.from_dbm <= -6


def test_a_short_stop_is_part_of_the_ride_and_a_long_one_is_not():
    go, stop = [5.0] * 100, [0.0]
    assert truth.changes([0.0] * 50 + go + stop * 149 + go + stop * 20, 0.1) == [(0, False), (50, True), (399, False)]
    assert truth.changes(go + stop * 150 + go, 0.1) == [(0, True), (100, False), (250, True)]


def test_the_rule_says_moving_for_ten_seconds_after_a_large_change_between_two_polls_of_either_modem():
    quiet = [-90.0] * 300
    step = [-90.0] * 105 + [-84.0] * 195
    slow = [-90.0 - i / 20 for i in range(300)]
    found = truth.by_the_rule([quiet, step], [0, 3], 0.1)
    assert [tick for tick, moving in enumerate(found) if moving] == list(range(113, 213)), "seen by the poll at 11.3 s"
    assert not any(truth.by_the_rule([quiet, slow], [0, 3], 0.1)), "5 dB in ten seconds are none of 6 between polls"
    assert not any(truth.by_the_rule([quiet, [None] * 105 + step[105:]], [0, 3], 0.1)), "nothing to compare with"


@given(st.lists(st.floats(0, 30), max_size=400))
def test_states_alternate_from_the_start(speeds):
    changes = truth.changes(speeds, 0.1)
    assert (changes[0][0] == 0) if speeds else not changes
    assert all(a[1] != b[1] and a[0] < b[0] for a, b in itertools.pairwise(changes))
