"""Runs joined to what was recorded about them, and what a run's manifest becomes for the figures, by hand."""

import gc
import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tandem_server.analysis import measured
from tandem_server.analysis.evaluate import account
from tandem_server.analysis.events import NetworkEvent
from tandem_server.analysis.material import Material, _events
from tandem_server.analysis.measured import Setting
from tandem_server.analysis.recorded import Recorded, SubflowSeries, load, name_by_run
from tandem_server.analysis.records import Clock, InfluxSource, piece_of
from tandem_server.analysis.runs import Run, RunSubflow, join, mean_held, offered_bit_per_s, run_rtt_ms
from tandem_server.analysis.tables.facts import gather
from tandem_server.analysis.truth import Link, Truth
from tandem_server.store import Series


def run(kind: str, activity: str, goodput: float, size: int = 10_000_000, pairing: str = "sequential", **more) -> Run:
    base = {"id": "r", "pair": "p", "kind": kind, "pairing": pairing, "path": "a", "paths": ("a",), "subflows": ()}
    base |= {
        "start_s": 0.0,
        "end_s": 5.0,
        "bytes": size,
        "duration_s": size * 8 / goodput,
        "goodput_bit_per_s": goodput,
    }
    base |= {"fallback": False, "failure": None, "activity": activity, "capacity_bit_per_s": 5e7}
    return Run(**{**base, "sum_of_singles_bit_per_s": None, "pair_ratio": None, **more})


def test_a_ratio_is_of_the_capacity_that_a_run_had_for_itself_and_its_rtt_weighted_by_bytes():
    assert run("mptcp", "still", 4e7).ratio == pytest.approx(0.8)
    assert run("mptcp", "walk", 4e7, pairing="simultaneous").ratio is None, "capacity that was shared"
    flows = (RunSubflow("a", "A", 3_000, 0.75, 40.0), RunSubflow("b", "B", 1_000, 0.25, 80.0))
    assert run_rtt_ms(run("mptcp", "still", 1e7, subflows=flows)) == pytest.approx(50.0)


def link(*steps: tuple[float, float]) -> Link:
    t = np.array([s[0] for s in steps])
    return Link(t, np.array([s[1] for s in steps]))


def test_mean_of_steps_is_their_integral_and_paths_add_up():
    steps = link((0.0, 10.0), (1.0, 0.0), (2.0, 40.0))
    assert mean_held(steps.t_s, steps.down_bit_per_s, 0.5, 2.5) == pytest.approx((5 + 0 + 20) / 2)
    steps = link((1.0, 10.0), (2.0, 30.0))  # the first value holds before, the last after
    assert [mean_held(steps.t_s, steps.down_bit_per_s, *span) for span in ((0.0, 1.0), (5.0, 9.0))] == [10.0, 30.0]
    a, b = link((0.0, 10.0)), link((0.0, 5.0))
    assert [offered_bit_per_s(links, 0.0, 1.0) for links in ([a, b], [a, None], [])] == [15.0, None, None]


def test_what_is_lost_is_what_was_made_and_neither_rejected_nor_dropped_nor_is_in_the_database():
    for made, rows, expected in (
        ((5, 5, 0, 0, 0), {"radio": [1, 2, 3], "event": [4, 5]}, (5, 0, [])),
        ((8, 8, 0, 0, 0), {"radio": [1, 2, 5, 6]}, (4, 4, [(3, 4), (7, 8)])),
        ((8, 5, 0, 2, 1), {"radio": [1, 2, 3, 4, 5]}, (5, 0, [(6, 8)])),
        ((2, 2, 0, 0, 0), {"radio": [1, 1]}, (1, 1, [(2, 2)])),  # the same number twice counts once
        ((None,) * 5, {"radio": [1, 4]}, (2, None, [(2, 3)])),  # without the probe's account nobody knows it
    ):
        records = dict(zip(("made", "sent", "pending", "rejected", "dropped"), made, strict=True))
        counts = account(records, {name: np.array(numbers) for name, numbers in rows.items()})
        assert (counts.in_database, counts.lost, counts.missing) == expected, made
    counts = account({"made": 7, "sent": 7, "pending": 0, "rejected": 0, "dropped": 0}, None)
    assert (counts.in_database, counts.lost) == (None, None)


S = 10**9
CLOCK = Clock(0, 0)
OPERATORS = {"a": "A", "b": "B"}


def manifest(
    run: str, kind: str, paths: list[str], goodput: float | None, pairing: str = "sequential", pair: str = "p"
) -> dict:
    made = {"id": run, "pair": pair, "pairing": pairing, "kind": kind, "paths": paths, "parameters": {"seconds": 2.0}}
    made |= {"started_monotonic_ns": 1 * S, "ended_monotonic_ns": 3 * S, "result": None, "failure": {"reason": "reset"}}
    if goodput is not None:
        flows = [{"path": p, "operator": OPERATORS[p], "bytes": 500, "share": 1 / len(paths)} for p in paths]
        result = {"bytes": 1000, "duration_s": 2.0, "goodput_bit_per_s": goodput, "fallback": False, "subflows": flows}
        made |= {"result": result, "failure": None}
    return made


def truth() -> Truth:
    t = np.array([0.0, 2.0])
    return Truth(links={"A": Link(t, np.array([20e6, 10e6])), "B": Link(t, np.array([8e6, 0.0]))})


def joined(manifests: list[dict], recorded: Recorded | None = None, true: Truth | None = None) -> list:
    return join(manifests, recorded or Recorded(), true, CLOCK, OPERATORS, lambda *_: "still")


def test_capacity_is_the_mean_over_the_run_and_its_paths_in_the_field_not_known_and_shared_at_the_same_time():
    run = joined([manifest("m", "mptcp", ["a", "b"], 17e6)], true=truth())[0]
    assert run.capacity_bit_per_s == pytest.approx(15e6 + 4e6)
    assert run.ratio == pytest.approx(17 / 19)
    assert joined([manifest("m", "mptcp", ["a", "b"], 17e6)])[0].capacity_bit_per_s is None
    made = [manifest("m", "mptcp", ["a", "b"], 9e6, "simultaneous"), manifest("x", "tcp", ["a"], 7e6, "simultaneous")]
    runs = joined(made, true=truth())
    assert [r.ratio for r in runs] == [None, None]
    assert runs[0].pair_ratio == pytest.approx(16 / 19)


def test_sum_of_singles_is_that_of_the_pair_and_only_for_mptcp_and_with_a_failed_one_not_known():
    made = [manifest("m", "mptcp", ["a", "b"], 17e6), manifest("x", "tcp", ["a"], 14e6)]
    runs = joined([*made, manifest("y", "tcp", ["b"], 3e6), manifest("z", "tcp", ["b"], 9e6, pair="another")])
    assert [r.sum_of_singles_bit_per_s for r in runs] == [17e6, None, None, None]
    runs = joined([*made, manifest("y", "tcp", ["b"], None)])
    assert (runs[0].sum_of_singles_bit_per_s, runs[2].failure) == (None, "reset")


def series(run: str, path: str | None, values: list[float]) -> SubflowSeries:
    v = np.array(values)
    return SubflowSeries(run, "1", "server", path, OPERATORS.get(path or ""), np.arange(len(v)) * 0.1, v, v)


def test_rtt_is_the_senders_median_of_the_path_and_a_path_without_a_name_is_that_of_a_run_over_one():
    recorded = Recorded(subflows=[series("m", "a", [40, 50, 90]), series("m", "b", [70, float("nan"), 80])])
    flows = joined([manifest("m", "mptcp", ["a", "b"], 1e6)], recorded)[0].subflows
    assert [f.rtt_ms_median for f in flows] == [50.0, 75.0]
    recorded = Recorded(subflows=[series("x", None, [40, 50]), series("m", None, [60])])
    name_by_run(recorded, {"x": ["a"], "m": ["a", "b"]}, OPERATORS)
    assert [(s.path, s.operator) for s in recorded.subflows] == [("a", "A"), (None, None)]


class ManyPolls:
    """More than a day of polls, the later half first, as a database gives series one after the other; at first no cell is named."""

    COUNT = 150_000

    def pieces(self, measurement, *_):
        for first in range(0, self.COUNT if measurement == "radio" else 0, 1000):
            places = [(n + self.COUNT // 2) % self.COUNT for n in range(first, first + 1000)]
            rows = [[at * S, -80.0 - at % 40, at // 10 if at >= 100 else None] for at in places]
            yield piece_of("radio", Series("radio", {"path": "a", "boot": "b"}, ["time", "rsrp_dbm", "eci"], rows))


def test_polls_of_weeks_lie_in_files_and_are_what_they_were():
    radio = load(ManyPolls(), "probe-1", Clock(0), OPERATORS).radio["a"]
    count = ManyPolls.COUNT
    assert all(isinstance(column, np.memmap) for column in (radio.t_s, radio.rsrp_dbm, radio.late_ms))
    assert np.array_equal(radio.t_s, np.arange(count))
    assert np.array_equal(radio.rsrp_dbm, -80.0 - np.arange(count) % 40)
    assert np.isnan(radio.late_ms).all()
    assert radio.named_cells() == [(at, at // 10) for at in range(100, count)]
    assert (len(radio.eci), np.isnan(radio.eci[:100]).all()) == (count, True)


def piece(measurement, t_s, tags, fields):
    return piece_of(measurement, Series(measurement, tags, ["time", *fields], [[t_s * S, *fields.values()]]))


class Recovered:
    """Path a's radio is switched off and on in 25 s that end at 100 s, and answers again at 110 s; before, its dialogue was begun anew and
    a step could not be done. A handover and a round trip of either path each five seconds."""

    def pieces(self, measurement, *_):
        if measurement == "event":
            for t, kind, fields in (
                (40, "recovery_step", {"step": "at", "took_ms": 9000.0, "detail": "port opened anew"}),
                (50, "recovery_step", {"step": "usb", "took_ms": 1.0, "detail": "skipped: no USB device"}),
                (100, "recovery_step", {"step": "cfun", "took_ms": 25_000.0, "detail": "radio switched off and on"}),
                (110, "recovered", {"step": "cfun", "took_ms": 70_000.0, "detail": "after at, cfun"}),
            ):
                yield piece("event", t, {"kind": kind, "path": "a", "boot": "b"}, fields)
        for t in range(0, 200, 5):
            for path in ("a", "b"):
                if measurement == "event":
                    yield piece(
                        "event", t, {"kind": "handover", "path": path, "operator": path.upper(), "boot": "b"}, {}
                    )
                elif measurement == "round_trip":
                    yield piece(
                        "round_trip", t, {"path": path, "boot": "b"}, {"monotonic_ns": t * S, "outcome": "down"}
                    )


def test_what_the_probe_did_to_a_modem_is_no_event_of_the_network():
    found = load(Recovered(), "probe-1", Clock(0), OPERATORS)
    assert found.recoveries == {"a": [(75.0, 170.0)]}
    left_out = [e.t_s for e in found.events if e.kind == "handover" and e.recovering]
    assert left_out == [float(t) for t in range(75, 171, 5)]
    assert {e.path for e in found.events if e.recovering} == {"a"}
    assert [len(found.round_trips[path].t_s) for path in ("a", "b")] == [20, 40]
    assert found.left_out == 20
    drawn = [e.t_s for e in _events(SimpleNamespace(recorded=found)) if e.operator == "A"]
    assert drawn == [t for t in map(float, range(0, 200, 5)) if not 75 <= t <= 170]


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
    assert (one.of.shaped_ratio(), one.connect_ms, one.fastest_connect_ms) == (4.0, 61.0, 22.0)
    assert (one.benefit, one.bytes) == (-0.5, 5000)
    row = {"bandwidth_ratio": 3.9, "tdi": 0.9, "c_i_bit_per_s": {"a": 4e6, "b": None}, "benefits": [{"primary": "a"}]}
    (one,) = measured.bandwidth_rounds(of, facts(result={"rounds": [row]}))
    assert (one.ratio, one.tdi, one.alone_bit_per_s, one.benefit) == (3.9, 0.9, {"a": 4e6}, None)


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


class Weeks:
    """A database whose answers come in pieces; ``held``: how many records and pieces there are when the next piece is asked for."""

    def __init__(self, pieces: int, rows: int) -> None:
        self.pieces, self.size, self.held, self.asked = pieces, rows, [], []
        self._before = self._alive()

    def parts(self, influxql: str, _params: object = None):
        self.asked.append(influxql)
        if '"radio"' in influxql:
            names, tags = ["rsrp_dbm", "eci"], {"path": "a", "driver": "quectel"}
        elif '"subflow"' in influxql or 'SELECT "seq"' in influxql:
            names, tags = ["rtt_ms", "seq"], {"run": "r", "end": "server", "subflow": "1", "path": "a"}
        else:
            return
        for n in range(self.pieces):
            # The later half first: series of one path come one after the other, whatever their times.
            first = (n + self.pieces // 2) % self.pieces * self.size
            rows = [[(first + k) * S, -90.0 if k else None, 1000 + first] for k in range(self.size)]
            yield Series("m", {**tags, "boot": f"b{n % 2}"}, ["time", *names], rows)
            del rows
            self.held.append(self._alive() - self._before)

    def _alive(self) -> int:
        gc.collect()
        return sum(isinstance(one, Series) for one in gc.get_objects())


def test_records_and_their_numbers_pass_piece_by_piece_into_columns():
    store = Weeks(pieces=8, rows=50)
    found = load(InfluxSource(store), "probe-1", Clock(0), OPERATORS)
    radio, (flow,) = found.radio["a"], found.subflows
    assert radio.t_s.tolist() == flow.t_s.tolist() == [float(t) for t in range(400)]
    assert (radio.operator, flow.operator) == ("A", "A")
    assert [radio.named_cells()[at] for at in (0, 75)] == [(0, 1000), (75, 1050)]
    assert math.isnan(radio.rsrp_dbm[50])
    assert math.isnan(radio.sinr_db[0])
    assert len(store.held) == 16
    assert max(store.held) <= 2  # the piece that was read last
    assert all("SELECT *" not in asked for asked in store.asked)
    store = Weeks(pieces=4, rows=50)
    found = InfluxSource(store).numbers("subflow", "probe-1", {"b0"})
    assert (found.dtype, len(found), max(store.held)) == (np.int64, 200, 1)
