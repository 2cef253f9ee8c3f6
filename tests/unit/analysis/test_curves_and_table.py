import numpy as np
import pytest

from tandem_server.analysis.around import curve
from tandem_server.analysis.mobility_table import DOWNLOAD_BYTES, table
from tandem_server.analysis.runs import Run, RunSubflow


def run(kind: str, activity: str, goodput: float, size: int = 10_000_000, pairing: str = "sequential", **more) -> Run:
    base = {"id": "r", "pair": "p", "kind": kind, "pairing": pairing, "path": "a", "paths": ("a",), "subflows": ()}
    base |= {
        "start_s": 0.0,
        "end_s": 5.0,
        "bytes": size,
        "duration_s": size * 8 / goodput,
        "goodput_bit_per_s": goodput,
    }
    base |= {"bounded_by": "time", "fallback": False, "failure": None, "activity": activity, "capacity_bit_per_s": 5e7}
    base |= {"sum_of_singles_bit_per_s": None, "pair_ratio": None}
    return Run(**{**base, **more})


def test_time_of_300_mb_is_converted_from_the_mean_goodput():
    (line,) = table([run("mptcp", "still", 4e7), run("mptcp", "still", 8e7), run("tcp", "still", 2e7)])
    assert (line.mptcp.runs, line.mptcp.converted) == (2, True)
    assert line.mptcp.download_s == pytest.approx(DOWNLOAD_BYTES * 8 / 6e7)
    assert line.tcp.goodput_bit_per_s == 2e7


def test_a_whole_file_keeps_its_own_time():
    (line,) = table([run("tcp", "walk", 4e7, DOWNLOAD_BYTES, duration_s=61.0)])
    assert (line.tcp.download_s, line.tcp.converted, line.mptcp.runs) == (61.0, False, 0)


def test_lines_are_in_order_of_speed_and_apart_by_pairing():
    lines = table(
        [run("tcp", "drive", 1e7), run("tcp", "still", 1e7), run("tcp", "still", 1e7, pairing="simultaneous")]
    )
    assert [(x.activity, x.pairing) for x in lines] == [
        ("still", "sequential"), ("still", "simultaneous"), ("drive", "sequential"),
    ]  # fmt: skip


def test_rtt_is_weighted_by_the_bytes_that_had_it():
    flows = (RunSubflow("a", "A", 3_000, 0.75, 40.0, 9), RunSubflow("b", "B", 1_000, 0.25, 80.0, 9))
    (line,) = table([run("mptcp", "still", 1e7, subflows=flows)])
    assert line.mptcp.rtt_ms == pytest.approx(50.0)


def test_failed_runs_are_left_out():
    assert table([run("tcp", "still", 1e7, goodput_bit_per_s=None)]) == []


def test_capacity_that_was_shared_has_no_ratio():
    assert run("mptcp", "still", 4e7).ratio == pytest.approx(0.8)
    assert run("mptcp", "walk", 4e7, pairing="simultaneous").ratio is None


def test_curve_is_the_median_over_events_and_empty_where_nothing_was_measured():
    t = np.arange(0, 100, 0.1)
    value = np.where((t >= 20) & (t < 20.5), 500.0, 50.0)
    value[(t >= 60) & (t < 60.5)] = 300.0
    value[(t >= 80) & (t < 80.5)] = 400.0
    keep = t < 85
    found = curve([20.0, 60.0, 80.0, 300.0], [(t[keep], value[keep])])
    assert found.n == 3
    at = int(np.flatnonzero(np.isclose(found.offset_s, 0.25))[0])
    assert found.median[at] == pytest.approx(400.0)
    assert found.median[0] == pytest.approx(50.0)
    last = int(np.flatnonzero(np.isclose(found.offset_s, 8.25))[0])
    assert found.count[last] == 2
    assert np.isnan(found.low[last])


def test_no_event_in_any_run_gives_an_empty_curve():
    found = curve([5.0], [])
    assert found.n == 0
    assert np.isnan(found.median).all()
