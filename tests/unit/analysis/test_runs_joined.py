import gc
import math

import numpy as np
import pytest

from tandem_server.analysis.clock import Clock
from tandem_server.analysis.influx_source import InfluxSource
from tandem_server.analysis.recorded import Recorded, SubflowSeries, load, name_by_run
from tandem_server.analysis.runs import join
from tandem_server.analysis.source import Row
from tandem_server.analysis.truth import Link, Truth
from tandem_server.store import Series

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
    return Truth(links={"A": Link(t, np.array([20e6, 10e6]), t), "B": Link(t, np.array([8e6, 0.0]), t)})


def joined(manifests: list[dict], recorded: Recorded | None = None, true: Truth | None = None) -> list:
    return join(manifests, recorded or Recorded(), true, CLOCK, OPERATORS, lambda *_: "still")


def test_capacity_is_the_mean_over_the_run_and_its_paths():
    run = joined([manifest("m", "mptcp", ["a", "b"], 17e6)], true=truth())[0]
    assert run.capacity_bit_per_s == pytest.approx(15e6 + 4e6)
    assert run.ratio == pytest.approx(17 / 19)


def test_in_the_field_capacity_is_not_known():
    assert joined([manifest("m", "mptcp", ["a", "b"], 17e6)])[0].capacity_bit_per_s is None


def test_sum_of_singles_is_that_of_the_pair_and_only_for_mptcp():
    runs = joined([
        manifest("m", "mptcp", ["a", "b"], 17e6), manifest("x", "tcp", ["a"], 14e6), manifest("y", "tcp", ["b"], 3e6),
        manifest("z", "tcp", ["b"], 9e6, pair="another"),
    ])  # fmt: skip
    assert [r.sum_of_singles_bit_per_s for r in runs] == [17e6, None, None, None]


def test_sum_with_a_failed_single_is_not_known():
    runs = joined(
        [manifest("m", "mptcp", ["a", "b"], 17e6), manifest("x", "tcp", ["a"], 14e6), manifest("y", "tcp", ["b"], None)]
    )
    assert runs[0].sum_of_singles_bit_per_s is None
    assert runs[2].failure == "reset"


def test_runs_at_the_same_time_share_the_capacity():
    made = [manifest("m", "mptcp", ["a", "b"], 9e6, "simultaneous"), manifest("x", "tcp", ["a"], 7e6, "simultaneous")]
    runs = joined(made, true=truth())
    assert [r.ratio for r in runs] == [None, None]
    assert runs[0].pair_ratio == pytest.approx(16 / 19)


def series(run: str, path: str | None, values: list[float]) -> SubflowSeries:
    v = np.array(values)
    return SubflowSeries(run, "1", "server", path, OPERATORS.get(path or ""), np.arange(len(v)) * 0.1, v, v)


def test_rtt_is_the_senders_median_of_the_path():
    recorded = Recorded(subflows=[series("m", "a", [40, 50, 90]), series("m", "b", [70, float("nan"), 80])])
    flows = joined([manifest("m", "mptcp", ["a", "b"], 1e6)], recorded)[0].subflows
    assert [(f.rtt_ms_median, f.rtt_samples) for f in flows] == [(50.0, 3), (75.0, 2)]


def test_only_a_run_over_one_path_names_a_series_without_one():
    recorded = Recorded(subflows=[series("x", None, [40, 50]), series("m", None, [60])])
    name_by_run(recorded, {"x": ["a"], "m": ["a", "b"]}, OPERATORS)
    assert [(s.path, s.operator) for s in recorded.subflows] == [("a", "A"), (None, None)]


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
        return sum(isinstance(one, Row | Series) for one in gc.get_objects())


def test_records_pass_one_by_one_into_columns():
    store = Weeks(pieces=8, rows=50)
    found = load(InfluxSource(store), "probe-1", Clock(0), OPERATORS, None, None)
    radio, (flow,) = found.radio["a"], found.subflows
    assert radio.t_s.tolist() == flow.t_s.tolist() == [float(t) for t in range(400)]
    assert (radio.operator, radio.driver, flow.operator) == ("A", "quectel", "A")
    assert (radio.eci[0], radio.eci[75]) == (1000, 1050)
    assert math.isnan(radio.rsrp_dbm[50])
    assert math.isnan(radio.sinr_db[0])
    assert radio.pci == [None] * 400
    assert len(store.held) == 16
    assert max(store.held) <= 3  # the piece that was read last, and its last record
    assert all("SELECT *" not in asked for asked in store.asked)


def test_numbers_of_records_are_held_as_numbers():
    store = Weeks(pieces=4, rows=50)
    found = InfluxSource(store).numbers("subflow", "probe-1", {"b0"})
    assert (found.dtype, len(found), max(store.held)) == (np.int64, 200, 1)
