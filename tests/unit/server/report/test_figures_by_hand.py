"""Figures whose numbers are worked by hand: rounds over three paths beside those of two, what stands in place of Chen's simultaneous SYN,
round trips of a campaign joined by their instants, and tails of round trips and waits in captures. The others': figures.json."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import numpy as np
import pytest
from paper_runs import downloaded, manifest

from support.synthetic_campaign import BOOT, PROBE, MemorySource, Row, Synthetic
from support.synthetic_folder import write
from tandem_server.analysis import estimates, folder, round_trips
from tandem_server.analysis.estimates import Histogram, histogram
from tandem_server.analysis.evaluate import evaluate
from tandem_server.analysis.material import Bins, Material, material, pooled
from tandem_server.analysis.measured import BandwidthRound, DelayRound, Download, Setting
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
    quantile,
    together,
)
from tandem_server.report.figures.figure import LackingError, every, make
from tandem_server.report.figures.papers.chen import alone_share, mean_text, saved_by_model, syn_gap_ms
from tandem_server.report.figures.papers.round_trips import FIGURES as TRIPS
from tandem_server.report.figures.papers.round_trips import impairments, quantiles, tail
from tandem_server.report.figures.sheet import rows

FIGURES = {figure.name: figure for figure in every()}


def drawn(name: str, m: Material) -> list[dict]:
    made = make(FIGURES[name], m)
    assert made.sheet is not None, made.lacks
    return rows(made.sheet)


def of(paths: int) -> Setting:
    return Setting("r", "cordero-remote", "remote", "", {}, {}, tuple("abc"[:paths]), None, 0.0, 9.0)


def bandwidth(goodput: float, *alone: float) -> BandwidthRound:
    rates, total, best = dict(zip("abc", alone, strict=False)), sum(alone), max(alone)
    benefit = (goodput - best) / (total - best)
    return BandwidthRound(of(len(alone)), "oneway", "cubic", max(alone) / min(alone), 1.0, rates, goodput, benefit)


def delay(paths: int, share: float) -> DelayRound:
    return DelayRound(of(paths), 1000, 0.5, 0.25, share, 30.0, 29.0, "acknowledged")


@pytest.fixture
def both() -> Material:
    """10 and 5 Mbit/s; 10, 5 and 5 Mbit/s."""
    two, three = bandwidth(12e6, 10e6, 5e6), bandwidth(18e6, 10e6, 5e6, 5e6)
    return Material(bandwidth=[two, three], delay=[delay(2, 0.6), delay(3, 0.4)])


def panels(name: str, m: Material) -> dict[str, list[dict]]:
    found: dict[str, list[dict]] = {}
    for row in drawn(name, m):
        found.setdefault(row["panel"], []).append(row)
    return found


def test_two_and_three_paths_have_panels_of_their_own(both):
    told = panels("cordero-5", both).items()
    found = {panel: [(r["x"], r["y"]) for r in of_panel if r["mark"] == "curve"] for panel, of_panel in told}
    assert found == {"two paths": [(2, 2 / 5)], "three paths": [(2, 8 / 10)]}
    for name in ("cordero-tdi", "cordero-7", "cordero-8", "cordero-9a", "cordero-10"):
        assert {panel.split(":")[0] for panel in panels(name, both)} == {"two paths", "three paths"}, name


def test_the_bound_of_three_paths_is_the_sum_of_their_rates(both):
    two, three = panels("cordero-6", both).values()
    assert [(r["x"], r["y"]) for r in two if r["mark"] == "curve"] == [(2, 12 / 5)]
    assert next((r["x"], r["y"]) for r in two if r["series"] == "1 + BWR") == (2, 3)
    # ΣC is 4 times the slowest's; MPTCP had 18 of 20 Mbit/s.
    assert [(r["x"], r["y"]) for r in three if r["mark"] == "curve"] == [(4, 18 / 5)]
    assert next((r["x"], r["y"]) for r in three if r["series"] == "ΣC") == (4, 4)


def test_the_most_loaded_of_three_may_carry_less_than_a_half_and_three_alone_are_named(both):
    sheet = make(FIGURES["cordero-9a"], both).sheet
    lows = {panel.title: panel.y.low for panel in sheet.panels}
    assert lows == {"two paths": pytest.approx(0.45), "three paths": pytest.approx(0.28)}
    assert "the probe’s counters (acknowledged), transfers: 1" in sheet.note
    three = Material(bandwidth=both.bandwidth[1:], delay=both.delay[1:])
    assert list(panels("cordero-5", three)) == ["three paths"]
    assert make(FIGURES["cordero-9b"], three).lacks == "rounds of the experiment delay over two paths shaped to a ratio"
    two = Material(bandwidth=both.bandwidth[:1], delay=both.delay[:1])
    assert list(panels("cordero-5", two)) == [""]


OF = Setting("r", "chen-sizes", "join", "", {"wifi": "a", "cellular": "b"}, {}, ("a", "b"), None, None, None)
ONE = Download(
    OF, "p", "single", "mptcp", "a", "reno", 131072, 2, None, 1.0, 40.0, {"a": 0.5, "b": 0.5}, {}, {},
    {"a": 40.0, "b": 60.0}, {}, join_ms={"b": 160.0},
)  # fmt: skip


def test_the_gap_the_part_before_it_and_the_saving_are_those_of_the_arithmetic():
    assert syn_gap_ms(ONE) == 40 + 160 - 60
    assert alone_share(ONE) == pytest.approx(0.2)
    # a: 0.5 in 0.96 s; b: 0.5 in 0.8 s. At once b begins 0.14 s earlier, so that in t: (t − 0.04) · 0.5/0.96 + (t − 0.06) · 0.5/0.8 = 1
    took = (1 + 0.04 * 0.5 / 0.96 + 0.06 * 0.5 / 0.8) / (0.5 / 0.96 + 0.5 / 0.8)
    assert saved_by_model(ONE) == pytest.approx(1 - took)
    assert saved_by_model(replace(ONE, shares={"a": 1.0, "b": 0.0})) == pytest.approx(0.0)

    for changed in (
        *({name: {}} for name in ("join_ms", "handshake_ms", "shares")),
        *({name: None} for name in ("connect_ms", "duration_s")),
        {"duration_s": 0.1},
    ):
        assert saved_by_model(replace(ONE, **changed)) is None, changed


def runs(r: random.Random):
    for size, held, n in ((s, h, n) for s in (8192, 524288) for h in (False, True) for n in range(5)):
        result = downloaded(r, size, 0.5 if held else 1.0, {"a": 0.6, "b": 0.4}, {"a": 30.0, "b": 70.0}, {})
        if size == 8192:  # over before anything joins
            result["subflows"] = [{**result["subflows"][0], "share": 1.0}]
        if held:
            result["held_ms"] = 90.0
        parameters = {"kind": "mptcp", "path": "a", "bytes": size, "congestion_control": "reno", "subflows": 2,
                      "join_before_request": held}  # fmt: skip
        yield manifest("download", result, parameters, kind="mptcp", roles={"wifi": "a", "cellular": "b"}, arm=int(held),
                       name="chen-sizes", step="join", at_s=10.0 + n)  # fmt: skip


def test_held_downloads_are_compared_here_and_are_in_no_other_figure(tmp_path):
    one = Synthetic(seconds=30.0)
    one.manifests = list(runs(random.Random(1)))
    made = material(evaluate(folder.load(write(one, tmp_path / "campaign")), one.source, one.ledger()))
    assert (len(made.downloads), len(made.held)) == (10, 10)
    told = {(row["size_bytes"], row["quantity"]): row for row in drawn("chen-join", made) if row.get("quantity")}
    assert (told[8192, "joined"]["y"], told[8192, "joined"]["n"]) == (0, 5)
    assert (8192, "modelled_percent") not in told
    assert told[524288, "joined"]["y"] == 5
    assert told[524288, "syn_gap_ms"]["y"] == pytest.approx(30.0 + 40.0 - 0.7 * 70.0)
    assert told[524288, "measured_percent"]["y"] == pytest.approx(50.0)
    assert (told[524288, "delayed_ms"]["y"], told[524288, "held_ms"]["y"]) == (1000.0, 500.0)


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
    return round_trips.load(MemorySource(points).pieces("round_trip", PROBE), CLOCK, OPERATORS)


def trips(**told: list[float]) -> Material:
    """A path's round trips, one a second; infinite: lost."""
    records = []
    for path, values in told.items():
        outcomes = ["lost" if math.isinf(v) else "late" if v > 2000 else "answered" for v in values]
        known = [None if math.isinf(v) else v for v in values]
        records += [record(path, n, *one) for n, one in enumerate(zip(outcomes, known, strict=True))]
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
    twice = loaded([record("a", 1, "answered", 30.0)] * 2)
    assert twice["a"].rtt_ms.tolist() == [30.0]


def test_quantiles_count_what_was_lost_as_infinitely_long():
    ten = np.array([float(n) for n in range(1, 10)] + [NONE])
    assert quantile(ten, 0.5) == 5.0
    assert quantile(ten, 0.9) == 9.0
    assert quantile(ten, 0.99) is None  # a tenth of a value lies beyond
    hundred = np.array([50.0] * 98 + [700.0, NONE])
    assert (quantile(hundred, 0.98), quantile(hundred, 0.99)) == (50.0, 700.0)
    assert quantile(np.array([50.0] * 97 + [NONE] * 3), 0.99) == NONE
    assert quantile(np.array([]), 0.5) is None


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


def test_beside_two_modems_a_third_path_takes_no_instants_away():
    three = trips(a=[30.0, 900.0, 30.0], b=[50.0, 900.0, 50.0], wifi=[5.0])
    assert [row["n"] for row in rows(quantiles(three))] == [1, 1, 1, 1]
    assert len(rows(impairments(three))) == 6
    three.radio = dict.fromkeys("ab")
    assert [(row["path"], row["n"]) for row in rows(quantiles(three))][-1] == ("best of two", 3)
    assert len(rows(impairments(three))) == 2


def test_what_is_lacking_is_named():
    one = {"a": loaded([record("a", 1, "answered", 30.0)])["a"]}
    assert {make(figure, Material(round_trips=one)).lacks for figure in TRIPS} == {
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


def test_the_tail_ends_where_the_losses_begin_and_is_kept_whole_of_many_values():
    told = [(10.0, 0.6), (20.0, 0.4), (30.0, 0.2)]
    assert ccdf(np.array([10.0, 10.0, 20.0, 30.0, NONE])) == [pytest.approx(point) for point in told]
    assert ccdf(np.array([10.0, 20.0])) == [(10.0, 0.5)]  # nothing took longer than the longest
    assert ccdf(np.array([NONE])) == []
    values = np.arange(1.0, 100_001.0)
    points = ccdf(values, most=200)
    assert len(points) <= 200
    assert points == sorted(points)
    assert points[0][0] == 1.0
    assert [x for x, _ in points[-50:]] == list(np.arange(99_950.0, 100_000.0))
    assert all(share == pytest.approx(1 - x / 100_000) for x, share in points)


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
    # 100 of 6000 in both, or none: φ = (6000 · both − 200²) / (200 · 5800).
    assert told.phi.value == pytest.approx((6000 * (100 if shared else 0) - 200**2) / (200 * 5800))
    assert told.phi.low <= told.phi.value <= told.phi.high
    assert (told.phi.low > 0) is shared


def test_what_every_five_minutes_tell_alike_has_no_interval():
    """20 of 300 s, the other's 10 s later: φ = (300 · 10 − 20²) / (20 · 280), whichever windows are drawn."""
    alike = np.where(np.arange(3000) % 300 < 20, NONE, 30.0)
    told = together(joint(list(trips(a=list(alike), b=list(np.roll(alike, 10))).round_trips.values())), 0, 1)
    assert told.phi[:3] == pytest.approx([(300 * 10 - 20**2) / (20 * 280)] * 3)


def test_the_table_has_each_path_and_the_best_at_the_same_instants_and_a_curve_ends_at_its_loss():
    told = rows(quantiles(trips(a=[30.0] * 99 + [NONE], b=[50.0] * 98 + [NONE, NONE, 70.0])))
    columns = ("path", "n", "p50_ms", "lost", "p99_ms", "p99.9_ms")
    assert [tuple(row[column] for column in columns) for row in told] == [
        ("Arctel", 100, 30.0, 0.01, 30.0, None),
        ("Borealis", 100, 50.0, 0.02, None, None),
        ("best of two", 100, 30.0, 0.01, 30.0, None),
    ]
    ends = {
        row["series"]: row["y"] for row in rows(tail(trips(a=[30.0, 40.0, NONE, 60.0], b=[50.0, NONE, NONE, 70.0])))
    }
    assert ends == pytest.approx({"Arctel": 0.25, "Borealis": 0.5, "best of two": 0.25})


# --- round trips and waits of packets in captures


def seen(**counts: float) -> Histogram:
    """``ms_3=2``: twice 3 ms; ``longer=1``."""
    ms = [math.nan if name == "longer" else float(name.removeprefix("ms_")) for name in counts]
    return histogram(np.array(ms), np.array([*counts.values()], float))


def captured(run: str, path: str | None, **told: Histogram) -> Bins:
    return Bins(run, path, np.empty(0), np.empty(0), np.empty(0), **told)


@pytest.fixture
def delays() -> Material:
    """Two downloads of four packets each; one packet of the second was still waiting when its capture ended."""
    operators = {"a": "Blue", "b": "Red"}
    waits = seen(ms_0=2, ms_1=1, ms_2=1), seen(ms_0=1, ms_10=2, longer=1)
    rtts = seen(ms_40=3, ms_45=1), seen(ms_40=1, ms_100=3)
    bins = [captured(f"r{n}", None, waits=one) for n, one in enumerate(waits)]
    bins += [captured(f"r{n}", "b", rtts=one) for n, one in enumerate(rtts)]
    of = Setting("", "x", "s", "", {}, {}, ("a", "b"), "low", 0.0, 9.0, operators, "default")
    downloads = [replace(ONE, of=replace(of, run=run), asked_bytes=4 << 20, subflows=None) for run in ("r0", "r1")]
    return Material(operators=operators, downloads=downloads, bins=bins)


def test_the_tails_of_waits_hold_those_that_were_never_over_and_those_of_round_trips_end(delays):
    def points(name: str) -> dict[str, list[tuple[float, float, int]]]:
        found: dict[str, list[tuple[float, float, int]]] = {}
        for row in drawn(name, delays):
            found.setdefault(row["series"], []).append((row["x"], row["y"], row["n"]))
        return found

    assert points("chen-out-of-order") == {"4 MB": [(1, 4 / 8, 8), (2, 3 / 8, 8), (10, 1 / 8, 8)]}
    assert "longer than was captured: 1;" in make(FIGURES["chen-out-of-order"], delays).sheet.note
    # 8 samples: 40, 40, 40, 40, 45, 100, 100, 100; nothing took longer than the last.
    assert points("chen-rtt") == {"Red": [(40, 4 / 8, 8), (45, 3 / 8, 8)]}
    # Of eight packets three came in order.
    assert points("mohan-7c") == {"low speed": [(1, 4 / 8, 8), (2, 5 / 8, 8), (10, 7 / 8, 8)]}


def test_bytes_in_flight_are_summed_over_paths_before_their_median_is_taken(delays):
    """Together 9, 0 and 9 kB; of each path alone the median is 0."""
    t, nothing = np.arange(3.0), np.full(3, math.nan)
    delays.bins = [
        Bins("r0", path, t, np.array(held) * 1e3, nothing) for path, held in (("a", [0, 0, 9]), ("b", [9, 0, 0]))
    ]
    assert [(row["series"], row["y"], row["n"]) for row in drawn("mohan-5b", delays)] == [("MPTCP", 9, 1)]


def test_means_over_connections_with_their_standard_errors(delays):
    told = {row["quantity"]: row for row in drawn("chen-table-delays", delays)}
    # 0, 0, 0.5, 1.5 of four; 0, 9.5, 9.5 of the three known.
    means = [2 / 4, 19 / 3]
    waits = told["out-of-order delay, ms"]
    assert (waits["mean"], waits["n"]) == (pytest.approx(sum(means) / 2), 2)
    assert waits["se"] == pytest.approx((means[1] - means[0]) / 2)  # of two: half their difference
    assert told["out of order, %"]["mean"] == pytest.approx((50 + 75) / 2)
    assert told["RTT, Red, ms"]["mean"] == pytest.approx(((3 * 39.5 + 44.5) / 4 + (39.5 + 3 * 99.5) / 4) / 2)


def test_of_many_delays_two_hundred_are_told_and_each_is_exact():
    one = histogram(np.arange(5000.0), np.ones(5000))
    told = one.above()
    assert len(told) <= 200
    assert (told[0], told[-1][0]) == ((1, 4998 / 5000), 4999)
    assert all(share == pytest.approx((4999 - ms) / 5000) for ms, share in told)
    assert estimates.pooled([one, one]).n == 10_000
    assert estimates.pooled([]).mean_ms() is None


def test_chens_tables_have_the_mean_and_its_standard_error_beside_the_median_and_the_hot_spots_are_in_its_own_alone():
    def single(campaign: str, *rtts_ms: float) -> list[Download]:
        of = replace(OF, campaign=campaign)
        return [
            replace(ONE, of=of, kind="tcp", asked_bytes=8192, rtt_ms={"a": rtt}, loss={"a": 0.01}) for rtt in rtts_ms
        ]

    # 40, 43, 52: mean 45, deviations −5, −2, 7, so their standard deviation is √(78/2) and the mean's error √(39/3).
    m = Material(downloads=[*single("chen-sizes", 52.0, 40.0, 43.0), *single("chen-hotspot", 90.0, 94.0), ONE])
    for name, n, median, mean, error in (("chen-table-3", 3, 43, 45, math.sqrt(13)), ("chen-table-4", 2, 92, 92, 2)):
        (told,) = (row for row in drawn(name, m) if row["quantity"] == "rtt_ms")
        assert (told["size_bytes"], told["path"], told["n"]) == (8192, "wifi", n)
        assert [told[key] for key in ("y", "mean", "se")] == pytest.approx([median, mean, error])
    assert [mean_text(told, 1) for told in ((45.0, math.sqrt(13)), (45.0, None))] == ["45.0\u2009±\u20093.6", "45.0"]
