"""An hour's rows: what is counted where."""

import pytest

from tandem_server.analysis.coverage.counts import Counts, added, of_area
from tandem_server.analysis.coverage.hour import HOUR_NS, Key, count
from tandem_server.analysis.coverage.seen import S_NS, Fix, Handover, Poll, Slot, Telling
from tandem_server.analysis.coverage.states import States

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


def test_a_poll_that_failed_is_none_and_a_stale_one_has_no_level():
    polls = [poll(0), poll(1, None, answered=False), poll(2, None), poll(3, None, served=False), poll(9)]
    (fields,) = rows(polls).values()
    assert (fields["polls"], fields["rsrp_dbm_count"], fields["polls_unserved"]) == (4, 2, 1)
    # Each until the next, that which failed included, and 2.5 s at most; the failed one stands for nothing.
    assert fields["time_s"] == 1 + 1 + 2.5 + 2.5


def test_each_thing_is_in_one_hour():
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


def test_rows_add_up_and_an_exact_sum_has_no_order():
    one, other = Counts(rsrp_dbm=[-90.1, -101.7]), Counts(rsrp_dbm=[-77.3])
    one.counted["polls"], other.counted["polls"] = 2, 1
    both = added([one.fields(), other.fields()])
    assert both == added([other.fields(), one.fields()])
    whole = Counts(rsrp_dbm=[-77.3, -90.1, -101.7])
    whole.counted["polls"] = 3
    assert both == {k: pytest.approx(v) for k, v in whole.fields().items()}
    assert type(both["polls"]) is int
