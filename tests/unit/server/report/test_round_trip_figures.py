"""Round trips of a campaign: joined by their instants, the tail and the impairments reckoned by hand, and what the tables say."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from support.synthetic_campaign import BOOT, PROBE, MemorySource, Row
from tandem_server.analysis.material import Material, pooled
from tandem_server.analysis.mobility_classes import RunClasses
from tandem_server.analysis.records import Clock
from tandem_server.analysis.round_trips import (
    DOWN,
    LATE,
    LOST,
    WINDOW_S,
    PathTrips,
    after_each_other,
    ccdf,
    joint,
    load,
    quantile,
    together,
)
from tandem_server.report.figures.figure import LackingError, make
from tandem_server.report.figures.papers.round_trips import FIGURES, impairments, quantiles, tail
from tandem_server.report.figures.sheet import rows

S = 10**9
CLOCK = Clock(0)
OPERATORS = {"a": "Arctel", "b": "Borealis"}
NONE = math.inf


def record(
    path: str, second: float, outcome: str, rtt_ms: float | None = None, boot: str = BOOT, **more: object
) -> Row:
    fields = {"outcome": outcome, "rtt_ms": rtt_ms, "monotonic_ns": round(second * S), "beside_run": False, **more}
    told = {name: value for name, value in fields.items() if value is not None}
    return Row(round(second * S), {"probe": PROBE, "boot": boot, "path": path}, told)


def loaded(records: list[Row]) -> dict[str, PathTrips]:
    points = [("round_trip", n, row) for n, row in enumerate(records)]
    return load(MemorySource(points).pieces("round_trip", PROBE), CLOCK, OPERATORS)


def trips(**told: list[float]) -> Material:
    """A path's round trips, one a second; infinite: lost."""
    records = [
        record(path, n, "lost" if math.isinf(v) else "late" if v > 2000 else "answered", None if math.isinf(v) else v)
        for path, values in told.items()
        for n, v in enumerate(values)
    ]
    return Material(operators=OPERATORS, round_trips=loaded(records))


def test_paths_are_joined_where_both_were_measured_and_no_run_was_under_way():
    found = loaded(
        [
            record("a", 1, "answered", 30.0),
            record("a", 3, "lost"),
            record("a", 2, "late", 2500.0),
            record("a", 4, "answered", 31.0, beside_run=True),
            record("a", 5, "paused"),
            record("a", 6, "down"),
            record("a", 8, "answered", 33.0),
            record("a", 9, "answered"),  # without its time: not as the schema has it
            record("a", 9, "lost", 5.0),
            *(record("b", n, "answered", 40.0 + n) for n in (1, 2, 3, 4, 5, 6, 7)),
            record("b", 8, "answered", 99.0, boot="another"),  # its CLOCK_MONOTONIC began elsewhere
        ]
    )
    assert (found["a"].operator, found["a"].t_s.tolist()) == ("Arctel", [1, 2, 3, 4, 6, 8])
    both = joint(list(found.values()))
    assert both.t_s.tolist() == [1, 2, 3, 6]
    assert both.rtt_ms.tolist() == [[30, 2500, NONE, NONE], [41, 42, 43, 46]]
    assert both.code[0].tolist() == [0, LATE, LOST, DOWN]
    best, code = both.best()
    assert (best.tolist(), code.tolist()) == ([30, 42, 43, 46], [0, 0, 0, 0])
    assert both.impaired().tolist() == [[False, True, True, True], [False] * 4]


def test_the_same_record_twice_is_one_instant():
    found = loaded([record("a", 1, "answered", 30.0)] * 2)
    assert found["a"].rtt_ms.tolist() == [30.0]


def test_quantiles_count_what_was_lost_as_infinitely_long():
    ten = np.array([float(n) for n in range(1, 10)] + [NONE])
    assert quantile(ten, 0.5) == 5.0
    assert quantile(ten, 0.9) == 9.0
    assert quantile(ten, 0.99) is None  # a tenth of a value lies beyond
    hundred = np.array([50.0] * 98 + [700.0, NONE])
    assert (quantile(hundred, 0.98), quantile(hundred, 0.99)) == (50.0, 700.0)
    assert quantile(np.array([50.0] * 97 + [NONE] * 3), 0.99) == NONE
    assert quantile(np.array([]), 0.5) is None


def test_the_tail_ends_where_the_losses_begin():
    assert ccdf(np.array([10.0, 10.0, 20.0, 30.0, NONE])) == [
        pytest.approx(point) for point in ((10.0, 0.6), (20.0, 0.4), (30.0, 0.2))
    ]
    assert ccdf(np.array([10.0, 20.0])) == [(10.0, 0.5)]  # nothing took longer than the longest
    assert ccdf(np.array([NONE])) == []


def test_of_many_values_the_whole_tail_is_kept():
    values = np.arange(1.0, 100_001.0)
    points = ccdf(values, most=200)
    assert len(points) <= 200
    assert points == sorted(points)
    assert points[0][0] == 1.0
    assert [x for x, _ in points[-50:]] == list(np.arange(99_950.0, 100_000.0))
    assert all(share == pytest.approx(1 - x / 100_000) for x, share in points)


def test_impairments_together_by_hand():
    """Ten instants: A impaired in 4, B in 5, both in 3. P(B) = 5/10, P(B|A) = 3/4, φ = (10·3 − 4·5) / √(4·6·5·5)."""
    a = [900.0, NONE, 301.0, 3000.0, 30.0, 30.0, 30.0, 30.0, 30.0, 300.0]
    b = [NONE, 400.0, 500.0, 40.0, 600.0, NONE, 40.0, 40.0, 40.0, 40.0]
    found = joint(list(trips(a=a, b=b).round_trips.values()))
    told = together(found, 0, 1)
    assert (told.alone.value, told.alone.n) == (0.5, 10)
    assert (told.given.value, told.given.n) == (0.75, 4)
    assert told.phi.value == pytest.approx(10 / math.sqrt(600))
    assert told.phi.low is None  # all in one window of five minutes
    other = together(found, 1, 0)
    assert (other.alone.value, other.given.value) == (0.4, 0.6)
    assert other.phi.value == told.phi.value


def test_paths_that_are_never_impaired_or_always_have_no_correlation():
    fine = joint(list(trips(a=[30.0] * 5, b=[30.0, NONE, 30.0, 30.0, 30.0]).round_trips.values()))
    told = together(fine, 0, 1)
    assert (told.alone.value, told.given, told.phi) == (0.2, None, None)
    always = together(joint(list(trips(a=[NONE] * 3, b=[NONE] * 3).round_trips.values())), 0, 1)
    assert (always.given.value, always.phi) == (1.0, None)


@pytest.mark.parametrize("shared", [True, False])
def test_intervals_tell_paths_that_fail_together_from_those_that_do_not(shared):
    """Outages of 20 s in one window of two, the other's in the same windows or in the other ones."""
    a, b = np.full(6000, 30.0), np.full(6000, 30.0)
    for window in range(0, 20, 2):
        a[window * 300 : window * 300 + 20] = NONE
        other = (window if shared else window + 1) * 300 + 10
        b[other : other + 20] = NONE
    told = together(joint(list(trips(a=list(a), b=list(b)).round_trips.values())), 0, 1)
    assert told.given.value == (0.5 if shared else 0.0)
    assert told.alone.value == pytest.approx(200 / 6000)
    assert told.phi.low <= told.phi.value <= told.phi.high
    assert (told.phi.low > 0) is shared


def test_the_table_has_each_path_and_the_best_at_the_same_instants():
    told = rows(quantiles(trips(a=[30.0] * 99 + [NONE], b=[50.0] * 98 + [NONE, NONE, 70.0])))
    assert [(row["path"], row["n"], row["p50_ms"]) for row in told] == [
        ("Arctel", 100, 30.0),
        ("Borealis", 100, 50.0),
        ("best of two", 100, 30.0),
    ]
    assert [row["lost"] for row in told] == [0.01, 0.02, 0.01]
    assert [row["p99_ms"] for row in told] == [30.0, None, 30.0]
    assert [row["p99.9_ms"] for row in told] == [None] * 3


def test_the_figure_says_how_many_and_a_curve_ends_at_its_loss():
    told = rows(tail(trips(a=[30.0, 40.0, NONE, 60.0], b=[50.0, NONE, NONE, 70.0])))
    assert {row["series"]: row["n"] for row in told} == dict.fromkeys(("Arctel", "Borealis", "best of two"), 4)
    ends = {row["series"]: row["y"] for row in told}
    assert ends == {
        series: pytest.approx(share) for series, share in (("Arctel", 0.25), ("Borealis", 0.5), ("best of two", 0.25))
    }


def test_beside_two_modems_a_third_path_takes_no_instants_away():
    three = trips(a=[30.0, 900.0, 30.0], b=[50.0, 900.0, 50.0], wifi=[5.0])
    assert [row["n"] for row in rows(quantiles(three))] == [1, 1, 1, 1]
    assert len(rows(impairments(three))) == 6
    three.radio = dict.fromkeys("ab")
    assert [(row["path"], row["n"]) for row in rows(quantiles(three))][-1] == ("best of two", 3)
    assert len(rows(impairments(three))) == 2


def test_what_is_lacking_is_named():
    one = {"a": loaded([record("a", 1, "answered", 30.0)])["a"]}
    assert {make(figure, Material(round_trips=one)).lacks for figure in FIGURES} == {
        "round trips of two paths ([round_trip] enabled = true)"
    }
    apart = loaded([record("a", 1, "answered", 30.0), record("b", 2, "answered", 30.0)])
    for draw in (tail, quantiles, impairments):
        with pytest.raises(LackingError, match="instants at which all paths were asked"):
            draw(Material(round_trips=apart))
    with pytest.raises(LackingError, match="answers to round trips"):
        tail(trips(a=[NONE], b=[NONE]))


def test_kits_with_the_same_operators_are_one_joint_tail_and_others_stand_apart():
    """Two kits with the operators' modems the other way round, one with another pair: every kit's instants are joined with its own only."""
    one = replace(trips(a=[30.0, NONE], b=[50.0, 60.0]), probe="kit-1")
    other = replace(trips(a=[70.0, NONE, 80.0], b=[35.0, 36.0, NONE]), probe="kit-2")
    other = replace(other, operators={"a": OPERATORS["b"], "b": OPERATORS["a"]})
    third = replace(trips(a=[20.0, 21.0], b=[25.0, 26.0]), probe="kit-3", operators={"a": OPERATORS["a"], "b": "Third"})
    pool = pooled([one, other, third], RunClasses())
    told = {row["path"]: (row["n"], row["p50_ms"]) for row in rows(quantiles(pool))}
    assert told == {
        "Arctel (Arctel + Borealis)": (5, 36.0),
        "Borealis (Arctel + Borealis)": (5, 70.0),
        "best of two (Arctel + Borealis)": (5, 36.0),
        "Arctel (Arctel + Third)": (2, 20.0),
        "Third (Arctel + Third)": (2, 25.0),
        "best of two (Arctel + Third)": (2, 20.0),
    }
    assert [panel.title for panel in tail(pool).panels] == ["Arctel + Borealis", "Arctel + Third"]
    windows = after_each_other([joint(list(kit.round_trips.values())) for kit in (one, other)]).t_s // WINDOW_S
    assert windows.tolist() == [0, 0, 1, 1, 1]
