"""An hour's rows: what is counted where."""

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem_server.derived.coverage import (
    CLASS_WITHIN_S,
    HOLDS_S,
    HOUR_NS,
    MOST_LETTERS,
    S_NS,
    STEP_M,
    Fix,
    Handover,
    Key,
    Poll,
    RunEnded,
    Slot,
    States,
    Telling,
    benefit,
    count,
    distance_m,
    geohash,
    letters_for,
    of_area,
    pair_point,
    steps,
)
from tandem_server.schema.derived import PAIR
from tandem_server.schema.measurements import check_server

START = 1_700_000_000 // 3600 * 3600 * S_NS
HERE, THERE = (50.0, 8.0), (50.1, 8.0)
AREA, OTHER = "u0vsqn", "u0vtn0"


def poll(t, rsrp=-95.0, path="a", **other):
    told = {"operator": f"op-{path}", "rat": "lte", "answered": True, "served": True, **other}
    return Poll(START + round(t * S_NS), path, rsrp_dbm=rsrp, **told)


def fix(t, place=HERE, full=True, error_m=5.0):
    return Fix(START + round(t * S_NS), *place, full, error_m)


def still(*times, mobile=False):
    return States([Telling(START + t * S_NS, mobile, "high" if mobile else None) for t in times])


def rows(polls=(), fixes=(), handovers=(), slots=(), states=None):
    counted = count(START, polls, fixes, handovers, slots, states or still(*range(-60, 3660, 30)))
    return {key: row.fields() for key, row in counted.items()}


def test_polls_are_counted_in_bins_whose_lower_edge_is_theirs():
    levels = [-157.0, -125.1, -125.0, -120.1, -110.0, -105.0, -70.1, -70.0, -40.0]
    found = rows([poll(i, level) for i, level in enumerate(levels)])
    (fields,) = found.values()
    bins = {name: n for name, n in fields.items() if name.startswith(("rsrp_m", "rsrp_b", "rsrp_f"))}
    assert bins == {
        "rsrp_below_m125": 2, "rsrp_m125_m120": 2, "rsrp_m110_m105": 1, "rsrp_m105_m100": 1, "rsrp_m75_m70": 1, "rsrp_from_m70": 2,
    }  # fmt: skip
    assert (fields["polls"], fields["rsrp_dbm_count"], fields["rsrp_dbm_sum"]) == (9, 9, pytest.approx(sum(levels)))
    assert fields["time_s"] == 8 + 2.5
    assert fields["rsrp_weak_count"] == of_area(fields)["rsrp_weak_count"] == 5


def test_rows_part_by_modem_technology_area_and_state():
    polls = [poll(t, path=p, rat="lte" if t < 4 else "gsm") for t in range(8) for p in ("a", "b")]
    fixes = [fix(t, HERE if t < 2 else THERE) for t in range(6)]
    told = States([Telling(START, False, None), Telling(START + 3 * S_NS, True, "low")])
    found = rows(polls, fixes, states=told)
    counts = {(k.path, k.rat, k.area, k.mobility): fields["polls"] for k, fields in found.items()}
    of_each = {
        ("lte", AREA, "still"): 2, ("lte", OTHER, "still"): 1, ("lte", OTHER, "low"): 1,
        # The fix of second 5 is the nearest within a second until second 6.
        ("gsm", OTHER, "low"): 3, ("gsm", "", "low"): 1,
    }  # fmt: skip
    assert counts == {(path, *key): n for path in ("a", "b") for key, n in of_each.items()}
    assert {k.operator for k in found} == {"op-a", "op-b"}


def test_a_poll_that_failed_is_none_and_each_thing_is_in_one_hour():
    polls = [poll(0), poll(1, None, answered=False), poll(2, None), poll(3, None, served=False), poll(9)]
    (fields,) = rows(polls).values()
    assert (fields["polls"], fields["rsrp_dbm_count"], fields["polls_unserved"]) == (4, 2, 1)
    # Each until the next, that which failed included, and 2.5 s at most; the failed one stands for nothing.
    assert fields["time_s"] == 1 + 1 + 2.5 + 2.5
    polls = [poll(t) for t in (-1, 0, 1799, 3599, 3600, 3601)]
    hours = [count(START + k * HOUR_NS, polls, [], [], [], still()) for k in (-1, 0, 1)]
    assert [sum(row.counted["polls"] for row in hour.values()) for hour in hours] == [1, 3, 2]
    # The last poll of an hour lasts until the first of the next.
    assert [sum(row.time_ns for row in hour.values()) / 1e9 for hour in hours] == [1, 2.5 + 2.5 + 1, 1 + 2.5]


def test_handovers_and_seconds_of_goodput_belong_to_the_poll_before_them():
    polls = [poll(t) for t in range(10)]
    fixes = [fix(t) for t in range(10)]
    handovers = [Handover(START + 3_200_000_000, "a", "op-a"), Handover(START + 600 * S_NS, "a", "op-a")]
    slots = [Slot(START + 4 * S_NS, "a", 0.0), Slot(START + 5 * S_NS, "a", 30e6), Slot(START + 6 * S_NS, "b", 1e6)]
    found = rows(polls, fixes, handovers, slots)
    known = found[Key("a", "op-a", "lte", AREA, "still")]
    assert (known["handovers"], known["way_handovers"], known["way_time_s"]) == (1, 1, 9)
    assert (known["goodput_none"], known["goodput_20_50"], known["goodput_bit_per_s_count"]) == (1, 1, 2)
    assert known["goodput_bit_per_s_sum"] == 30e6
    # Without a poll nearby neither technology nor way is known; the fact is counted all the same.
    assert found[Key("a", "op-a", "", "", "still")] == {"handovers": 1}
    assert found[Key("b", "", "", AREA, "still")] == {
        "goodput_1_2": 1, "goodput_bit_per_s_count": 1, "goodput_bit_per_s_sum": 1e6,
    }  # fmt: skip


def test_coarse_positions_make_larger_areas_and_no_way():
    polls = [poll(t) for t in range(5)]
    coarse = [fix(t, (50.0, 8.0 + t), full=False, error_m=1112.0) for t in range(5)]
    found = rows(polls, coarse)
    assert {len(key.area) for key in found} == {5}
    assert not any("way_m" in fields or "way_time_s" in fields for fields in found.values())
    unknown = rows(polls, [fix(t, full=False, error_m=None) for t in range(5)])
    assert {len(key.area) for key in unknown} == {5}


def health(t, mobile, kind=None):
    return Telling(t * S_NS, mobile, kind)


def test_a_telling_holds_until_the_next_and_a_span_has_the_state_of_most_of_it():
    states = States([health(0, False), health(10, False)])
    found = [states.at(t * S_NS) for t in (-1, 0, 9, 10, 10 + HOLDS_S, 11 + HOLDS_S)]
    assert found == ["", "still", "still", "still", "still", ""]
    states = States([health(t, t >= 20, "low" if t >= 20 else None) for t in range(0, 60, 10)])
    assert states.most(0, 30 * S_NS) == "still"
    assert states.most(10 * S_NS, 60 * S_NS) == "low"
    assert states.most(5 * S_NS, 5 * S_NS) == "still"


def test_events_tell_the_second_and_health_the_class():
    start, stop = Telling(33 * S_NS, True, None, begins=True), Telling(200 * S_NS, False, "high", ends=True)
    told = [health(t, 33 <= t < 200, "high" if t >= 93 else None) for t in range(0, 300, 10)]
    states = States([start, stop, *told])
    assert states.at(32 * S_NS) == "still"
    # The class that is told after the first minute is that of the minute before.
    assert {states.at(t * S_NS) for t in range(33, 200)} == {"high"}
    assert states.at(200 * S_NS) == "still"


def test_a_class_told_much_later_or_after_a_short_movement_is_not_that_of_the_beginning():
    begins = [Telling(t * S_NS, True, None, begins=True) for t in (10, 40)]
    states = States([*begins, Telling(30 * S_NS, False, None, ends=True), health(60, True, "low")])
    assert [states.at(t * S_NS) for t in (15, 35, 45)] == ["moving", "still", "low"]
    told = [health(t, True, "low" if t > CLASS_WITHIN_S else None) for t in range(0, 200, 10)]
    states = States(told)
    assert states.at(0) == "moving"
    assert states.at(10 * S_NS) == "low"


@given(st.lists(st.tuples(st.integers(0, 500), st.booleans(), st.sampled_from([None, "low", "high"]))), st.randoms())
def test_the_order_of_arrival_changes_nothing(rows, shuffler: random.Random):
    told = [health(t, mobile, kind if mobile else None) for t, mobile, kind in {row[0]: row for row in rows}.values()]
    other = told.copy()
    shuffler.shuffle(other)
    assert [States(told).at(t * S_NS) for t in range(600)] == [States(other).at(t * S_NS) for t in range(600)]


def test_places_have_the_worlds_geohash_and_what_is_known_less_well_a_larger_area():
    places = {(57.64911, 10.40744): "u4pruydqqvj", (42.605, -5.603): "ezs42", (-25.382708, -49.265506): "6gkzwgjzn820"}
    assert {place: geohash(*place, len(area)) for place, area in places.items()} == places
    letters = {0: 6, 5: 6, 610: 6, 612: 5, 1112: 5, 4800: 5, 5000: 4, 19_500: 4, 55_600: 3, 10**7: 1}
    assert {error_m: letters_for(error_m) for error_m in letters} == letters


LETTERS = "0123456789bcdefghjkmnpqrstuvwxyz"


def cell(area):
    """South, north, west, east of a geohash: by halving, letter for letter."""
    sides = [[-180.0, 180.0], [-90.0, 90.0]]
    even = True
    for letter in area:
        for mask in (16, 8, 4, 2, 1):
            side = sides[0 if even else 1]
            side[0 if LETTERS.index(letter) & mask else 1] = sum(side) / 2
            even = not even
    return (*sides[1], *sides[0])


@given(st.floats(-90, 90), st.floats(-180, 180), st.integers(1, 12))
def test_a_place_lies_in_its_area(latitude, longitude, letters):
    south, north, west, east = cell(geohash(latitude, longitude, letters))
    assert south - 1e-9 <= latitude <= north + 1e-9
    assert west - 1e-9 <= longitude <= east + 1e-9


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


def test_a_straight_way_is_as_long_as_it_is_and_a_receiver_that_stands_goes_nowhere():
    way = steps(fixes([(50 + north_by(12 * i), 8.0) for i in range(101)]))
    assert sum(step.metres for step in way) == pytest.approx(1200, abs=STEP_M)
    assert sum(step.end_utc_ns - step.start_utc_ns for step in way) == 100 * S_NS
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


def run(run_id, kind, path, goodput, ok=True, pairing="sequential", of=3, end=0):
    return RunEnded(end * S_NS, run_id, kind, path, "pair-1", pairing, "commute", ok, goodput, 10.0, False, of)


RUNS = [
    run("r1", "mptcp", "a", 30e6, end=100),
    run("r2", "tcp", "a", 20e6, end=60),
    run("r3", "tcp", "b", 15e6, end=150),
]
OPERATORS = {"a": "op-a", "b": "op-b"}


def test_a_pair_is_held_against_its_best_path_and_their_sum():
    found = pair_point(RUNS, OPERATORS, {"a": 3_000, "b": 1_000})
    assert (found.utc_ns, found.start_utc_ns) == (100 * S_NS, 90 * S_NS)
    assert found.tags == {"pairing": "sequential", "campaign": "commute", "operator": "op-a", "fallback": "false"}
    assert found.fields == {
        "pair": "pair-1", "run": "r1", "mptcp_goodput_bit_per_s": 30e6, "best_goodput_bit_per_s": 20e6, "worst_goodput_bit_per_s": 15e6,
        "sum_goodput_bit_per_s": 35e6, "best_path": "a", "best_operator": "op-a", "gain": 1.5, "sum_ratio": 30 / 35,
        "benefit": pytest.approx(10 / 15), "benefit_raw": pytest.approx(10 / 15), "paths": 2, "failed": 0, "pairs": 1,
        "lower": 0, "benefits": 1, "shares": 1,
        "primary_share": 0.75, "most_loaded_share": 0.75,
    }  # fmt: skip
    check_server("pair", {"probe": "p", "mobility": "low", **found.tags}, found.fields)
    assert set(found.fields) == {field.name for field in PAIR.fields}


def test_what_shares_its_paths_has_no_benefit_and_a_run_that_the_network_failed_had_nothing():
    found = pair_point([replace(r, pairing="simultaneous") for r in RUNS], OPERATORS, {})
    assert found.fields["gain"] == 1.5
    assert not {"benefit", "benefit_raw", "sum_ratio", "primary_share"} & set(found.fields)
    failed = [RUNS[0], RUNS[1], run("r3", "tcp", "b", None, ok=False)]
    found = pair_point(failed, OPERATORS, {})
    assert (found.fields["worst_goodput_bit_per_s"], found.fields["failed"]) == (0.0, 1)
    # One path carried all: there is no scale for a gain.
    assert "benefit" not in found.fields
    none = pair_point([RUNS[0], run("r2", "tcp", "a", None, ok=False), run("r3", "tcp", "b", None, ok=False)], {}, {})
    assert not {"gain", "benefit", "best_path", "best_operator"} & set(none.fields)
    worse = pair_point([run("r1", "mptcp", "a", None, ok=False), *RUNS[1:]], OPERATORS, {})
    assert (worse.fields["gain"], worse.fields["benefit"]) == (0, -1)


def test_what_is_no_whole_pair_has_no_point_and_the_sum_of_the_paths_stands_for_all_at_once():
    two, none = [*RUNS, run("r4", "mptcp", "b", 1e6)], [run("r1", "mptcp", "a", None), *RUNS[1:]]
    assert [pair_point(runs, OPERATORS, {}) for runs in (RUNS[1:], RUNS[:1], RUNS[:2], two, none)] == [None] * 5
    assert [benefit([10e6, 5e6], x) for x in (12.5e6, 4e6)] == [pytest.approx(0.5), pytest.approx(-0.6)]
    assert benefit([8e6], 8e6) is benefit([0.0, 0.0], 0.0) is None
