"""What a run's manifest becomes for the figures: gaps between paths, loss, queueing delay, classes and spans, by hand."""

from pathlib import Path

import numpy as np
import pytest

from tandem_server.analysis import measured
from tandem_server.analysis.events import NetworkEvent
from tandem_server.analysis.material import Bins, Material, Span, _joined
from tandem_server.analysis.measured import Setting
from tandem_server.analysis.recorded import SubflowSeries
from tandem_server.analysis.series import around, by_second, differences, means, of_operators, summed, utilisation
from tandem_server.analysis.tables.facts import gather
from tandem_server.report.figures.papers.mohan_mptcp import _whole


def setting(roles=None, shape=None, paths=("a", "b")) -> Setting:
    return Setting("r", "", "", "", roles or {}, shape or {}, paths, None, 0.0, 1.0)


def facts(**manifest):
    (one,) = gather([{"id": "r", "kind": "any", "experiment": {"name": "x"}, **manifest}], Path("/nowhere"))
    return one


def test_by_how_much_path_2_was_made_worse():
    one, lossy = {"path1": "a", "path2": "b"}, {"down_loss_percent": 0.1}
    slow = {"a": {"rtt_ms": 20}, "b": {"rtt_ms": 50}}
    rows = [
        ({}, {}, 0, 0),
        ({}, slow, 30, 0),
        ({"path1": "b", "path2": "a"}, slow, -30, 0),
        (one, {"a": lossy, "b": {**lossy, "rtt_ms": 50}}, 50, 0),
        (one, {"b": {"down_loss_percent": 15}}, 0, 15),
        ({}, {"b": {"rtt_ms": "much"}}, 0, 0),
    ]
    told = [setting(roles, shape) for roles, shape, *_ in rows]
    gaps = [(of.rtt_gap_ms(), of.loss_gap_percent()) for of in told]
    assert gaps == [(rtt, loss) for *_, rtt, loss in rows]
    assert setting(paths=("a",)).rtt_gap_ms() is None


def test_a_download_of_two_paths():
    def flow(path, count, share, rtt, **more):
        return {"path": path, "bytes": count, "share": share, "rtt_ms_median": rtt, **more}

    flows = [
        flow("a", 750, 0.75, 40.0, handshake_rtt_ms=30.0, bytes_retrans=250),
        flow("b", 150, 0.15, 80.0, bytes_retrans=0),
        flow("b", 100, 0.10, 99.0),
    ]
    sender = {"connections": [{"subflows": [{"path": "a", "rtt_ms_min": 30.0}, {"path": "b", "rtt_ms_min": 60.0}]}]}
    run = facts(kind="mptcp", paths=["a", "b"], result={"goodput_bit_per_s": 8e6, "subflows": flows, "sender": sender})
    d = measured.download(setting(), run)
    assert (d.shares, d.loss) == ({"a": 0.75, "b": 0.25}, {"a": 0.25, "b": 0.0})
    assert d.rtt() == pytest.approx(0.75 * 40 + 0.25 * 80)
    assert d.queueing_ms() == pytest.approx(0.75 * 10 + 0.25 * 20)
    assert (d.handshake_ms, d.primary) == ({"a": 30.0}, "a")


def test_what_a_result_does_not_tell_is_absent():
    assert measured.download(setting(), facts(kind="tcp", result=None)) is None
    told = {"subflows": [{"path": 3, "bytes": "many"}], "sender": 7}
    bare = measured.download(setting(), facts(kind="tcp", result=told))
    assert (bare.goodput_bit_per_s, bare.rtt(), bare.queueing_ms()) == (None, None, None)
    assert (bare.shares, bare.loss) == ({}, {})
    rounds = [{"bytes": 0, "benefits": [{}]}, 3, {"benefits": []}]
    assert list(measured.delay_rounds(setting(), facts(result={"rounds": rounds}))) == []
    loads = [{"page_load_time_ms": 5.0, "failure": "timeout"}, {"page": "p"}]
    assert list(measured.loads(setting(), facts(result={"loads": loads}))) == []


def test_rounds_with_the_ratio_that_the_paths_were_shaped_to():
    of = setting(shape={"a": {"up_bit_per_s": 4e6}, "b": {"up_bit_per_s": 1e6}})
    transfers = [{"name": name, "connect_ms": ms} for name, ms in (("tcp a", 22.0), ("tcp b", 60.0), ("mptcp b", 61.0))]
    rows = [{"bytes": 5000, "transfers": transfers, "benefits": [{"primary": "b", "delay_s": 0.1, "benefit": -0.5}]}]
    (one,) = measured.delay_rounds(of, facts(result={"mode": "oneway", "rounds": rows}))
    assert (one.of.shaped_ratio(), one.connect_ms, one.fastest_connect_ms, one.benefit, one.bytes) == (
        4.0,
        61.0,
        22.0,
        -0.5,
        5000,
    )
    row = {"bandwidth_ratio": 3.9, "tdi": 0.9, "c_i_bit_per_s": {"a": 4e6, "b": None}, "benefits": [{"primary": "a"}]}
    (one,) = measured.bandwidth_rounds(of, facts(result={"rounds": [row]}))
    assert (one.ratio, one.tdi, one.alone_bit_per_s, one.benefit) == (3.9, 0.9, {"a": 4e6}, None)


def test_runs_of_a_pair_are_one_span():
    found = [Span(0, 10, "low"), Span(2, 8, "low"), Span(9, 20, "low"), Span(21, 30, "low"), Span(25, 40, "high")]
    assert list(_joined(found)) == [Span(0, 20, "low"), Span(21, 30, "low"), Span(25, 40, "high")]
    assert list(_joined([])) == []
    pauses = [Span(0, 10, "low"), Span(70, 80, "low"), Span(100, 110, "high"), Span(120, 130, "low")]
    assert list(_joined(pauses, 60.0)) == [Span(0, 80, "low"), Span(100, 110, "high"), Span(120, 130, "low")]


def test_a_runs_captures_go_before_the_senders_records_and_a_note_says_so():
    nothing = np.empty(0)

    def series(run, end):
        return SubflowSeries(run, "1", end, "a", "A", nothing, nothing, nothing)

    m = Material(
        flows={(run, "server"): [series(run, "server")] for run in ("r1", "r2")},
        packets={"r1": [series("r1", "capture")]},
    )
    assert [m.at_best(run)[0].end for run in ("r1", "r2")] == ["capture", "server"]
    assert m.source(["r1", "r2", "r2"]) == "RTT: bins of the captures (runs: 1), the sender’s records (runs: 1)."
    assert m.source(["r2"]) == "RTT: the sender’s records (runs: 1)."


def test_t_r_of_the_senders_records_knows_silence_and_the_next_event():
    """The kernel repeats its estimate while nothing is acknowledged: from 10 s for 6 s, then 900 ms for 4 s; a handover at 40 s."""
    t = np.arange(0, 60, 0.1)
    silent = (t >= 10) & (t < 16)
    rtt = np.where((t >= 16) & (t < 20) | (t > 41), 900.0, 50.0)
    series = SubflowSeries("r", "1", "server", "a", "A", t, np.where(silent, 0.0, 1e6), rtt)
    drop, handover = NetworkEvent(10.0, "A", "drop", -9.0), NetworkEvent(40.0, "A", "handover")
    m = Material(flows={("r", "server"): [series]}, events=[drop, NetworkEvent(12.0, "B", "handover"), handover])
    (best,) = m.at_best("r")
    felt = m.recovery("r", best, drop)
    assert (felt.t_r_s, felt.peak_ms, felt.silent_s) == (pytest.approx(10), 900, pytest.approx(6))
    assert felt.seen_s == 30
    assert m.recovery("r", best, handover).why == "run_ended"


def test_bytes_in_flight_are_summed_before_their_median_is_taken():
    """One subflow's bins are full when the other's are empty."""
    t, nothing = np.arange(3.0), np.full(3, np.nan)
    apart = [Bins("r", "a", t, np.array([0.0, 0, 9]), nothing), Bins("r", "b", t, np.array([9.0, 0, 0]), nothing)]
    assert _whole(apart) == {"r": 9}


def series(operator: str | None, times: list[float], goodputs: list[float], rtts: list[float]) -> SubflowSeries:
    return SubflowSeries(
        "r", "1", "server", operator and operator.lower(), operator, *map(np.array, (times, goodputs, rtts))
    )


def test_seconds_are_means_and_those_in_which_one_subflow_is_silent_count_with_its_worse_round_trip():
    assert by_second(np.array([0.1, 0.9, 1.0, 2.5]), np.array([1.0, 3.0, 5.0, np.nan])) == {0: 2.0, 1: 5.0}
    assert means([(-0.6, 1.0), (-0.1, 2.0), (0.0, 3.0), (0.4, 5.0)], 0.5) == [(-0.75, 1.0), (-0.25, 2.0), (0.25, 4.0)]
    a = dict.fromkeys(range(10), 50.0)
    assert differences({"A": a, "B": {2: 60.0, 6: 900.0, 7: 80.0}}) == [10, 850, 850, 850, 850, 30, 30, 30]
    assert differences({"A": {0: 50.0, 9: 50.0}, "B": {0: 60.0, 9: 70.0}}) == [10, 20]  # nothing is known of both
    t, v = np.array([0.0, 5.0, 9.0, 12.0, 30.0]), np.array([1.0, 2.0, np.nan, 4.0, 5.0])
    assert around(t, v, 10.0, 5.0, 5.0) == [(-5.0, 2.0), (2.0, 4.0)]


def test_subflows_of_one_operator_add_up_and_the_least_rtt_counts():
    rows = (("A", 0.0, 4.0, 50.0), ("A", 0.5, 6.0, 40.0), ("B", 0.2, 1.0, 90.0), (None, 0, 1, 1))
    found = [series(operator, [t], [goodput], [rtt]) for operator, t, goodput, rtt in rows]
    assert of_operators(found, "goodput_bit_per_s") == {"A": {0: 10.0}, "B": {0: 1.0}}
    assert of_operators(found, "rtt_ms") == {"A": {0: 40.0}, "B": {0: 90.0}}
    assert differences(of_operators(found, "rtt_ms")) == [50.0]
    assert differences({"A": {0: 40.0}, "B": {1: 90.0}}) == [50.0]
    assert differences({"A": {}, "B": {1: 90.0}}) == differences({}) == []


def test_sums_are_taken_at_each_time_and_hold_over_gaps():
    times, total = summed([
        (np.array([0.0, 0.1, 0.2, 0.4]), np.array([10.0, 20.0, np.nan, 40.0])),
        (np.array([0.3, 0.2]), np.array([7.0, 5.0])),
        (np.array([0.0]), np.array([np.nan])),
    ])  # fmt: skip
    assert times.tolist() == [0, 0.1, 0.2, 0.3, 0.4]
    assert total.tolist() == [10, 20, 25, 27, 40]
    assert [len(column) for column in summed([])] == [0, 0]


def test_utilisation_is_over_the_best_seconds():
    found = {"A": {0: 8.0, 1: 0.0, 2: 5.0}, "B": {0: 2.0, 1: 5.0}}
    # Sums 10, 5, 5; their 95 % quantile is 9.5.
    by_hand = ((8 / 9.5, 2 / 9.5), (0, 5 / 9.5), (5 / 9.5, 0))
    assert utilisation(found, "A", "B") == [pytest.approx(shares) for shares in by_hand]
    assert utilisation({}, "A", "B") == []
    assert utilisation({"A": {0: 0.0}}, "A", "B") == []
