"""Pairs of runs held against each other."""

from dataclasses import replace

import pytest

from tandem.schema.metrics import PAIR
from tandem.schema.record import check_server
from tandem_server.analysis.coverage.pairs import benefit, pair_point
from tandem_server.analysis.coverage.seen import S_NS, RunEnded


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


def test_what_shares_its_paths_has_no_benefit():
    found = pair_point([replace(r, pairing="simultaneous") for r in RUNS], OPERATORS, {})
    assert found.fields["gain"] == 1.5
    assert not {"benefit", "benefit_raw", "sum_ratio", "primary_share"} & set(found.fields)


def test_a_run_that_the_network_failed_had_nothing():
    failed = [RUNS[0], RUNS[1], run("r3", "tcp", "b", None, ok=False)]
    found = pair_point(failed, OPERATORS, {})
    assert (found.fields["worst_goodput_bit_per_s"], found.fields["failed"]) == (0.0, 1)
    # One path carried all: there is no scale for a gain.
    assert "benefit" not in found.fields
    none = pair_point([RUNS[0], run("r2", "tcp", "a", None, ok=False), run("r3", "tcp", "b", None, ok=False)], {}, {})
    assert not {"gain", "benefit", "best_path", "best_operator"} & set(none.fields)
    worse = pair_point([run("r1", "mptcp", "a", None, ok=False), *RUNS[1:]], OPERATORS, {})
    assert (worse.fields["gain"], worse.fields["benefit"]) == (0, -1)


@pytest.mark.parametrize(
    "runs",
    [RUNS[1:], RUNS[:1], RUNS[:2], [*RUNS, run("r4", "mptcp", "b", 1e6)], [run("r1", "mptcp", "a", None), *RUNS[1:]]],
)
def test_what_is_no_whole_pair_has_no_point(runs):
    assert pair_point(runs, OPERATORS, {}) is None


@pytest.mark.parametrize(
    ("separate", "x", "raw"),
    [([10e6, 5e6], 12.5e6, 0.5), ([10e6, 5e6], 4e6, -0.6), ([8e6], 8e6, None), ([0.0, 0.0], 0.0, None)],
)
def test_the_sum_of_the_paths_stands_for_all_at_once(separate, x, raw):
    assert benefit(separate, x) == (None if raw is None else pytest.approx(raw))
