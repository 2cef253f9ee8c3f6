"""The verdict: lost records, failed runs, low scores; and a table that stands without any of them."""

import copy
from typing import Any

import pytest

from tandem_bench.demo.outcome import table, verdict


def run(kind: str, path: str, goodput_bit_per_s: float, **more: object) -> dict[str, Any]:
    subflow = {"operator": path.upper(), "path": path, "bytes": 500, "share": 1.0, "rtt_ms_median": 60.0}
    return {
        "id": f"run-{kind}-{path}", "pair": "pair-1", "kind": kind, "path": path, "pairing": "sequential", "bytes": 500,
        "duration_s": 8.0, "goodput_bit_per_s": goodput_bit_per_s, "capacity_bit_per_s": 7.5e7, "sum_of_singles_bit_per_s": None,
        "fallback": False, "activity": "still", "failure": None, "subflows": [subflow], **more,
    }  # fmt: skip


GOOD: dict[str, Any] = {
    "scenario": "commute",
    "seed": 1,
    "duration_s": 180.0,
    "radio_records": 360,
    "polls_late": 2,
    "handovers": {"true": 10, "detected": 10, "false": 0},
    "signal_drops": {"true": 20, "detected": 18, "false": 1},
    "mobility": {"accuracy": 0.95, "false_starts": 0, "missed_starts": 0},
    "runs": [
        run("mptcp", "a", 7.0e7, sum_of_singles_bit_per_s=7.2e7),
        run("tcp", "a", 3.6e7),
        run("tcp", "b", 3.6e7),
    ],
    "records": {"made": 100, "sent": 100, "in_database": 100, "lost": 0},
    "captures": [{"file": "x.pcap", "bytes": 10, "packets": 1}],
    "interrupted": None,
}


def changed(path: str, value: object) -> dict[str, Any]:
    summary = copy.deepcopy(GOOD)
    *parents, last = path.split(".")
    inner = summary
    for parent in parents:
        inner = inner[parent]
    inner[last] = value
    return summary


def test_all_is_well() -> None:
    assert verdict(GOOD, scored=True) == []


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ("records.lost", 1, "records lost: 1"),
        ("records.lost", None, "records lost"),
        ("records.made", 0, "records lost"),
        ("runs", [], "no run"),
        ("interrupted", "Ctrl-C", "interrupted"),
        ("handovers.detected", 3, "handovers: only 3 of 10"),
        ("mobility.accuracy", 0.5, "mobility"),
        ("mobility.accuracy", None, "mobility"),
    ],
)
def test_what_is_wrong_is_said(path: str, value: object, says: str) -> None:
    wrong = verdict(changed(path, value), scored=True)
    assert len(wrong) == 1
    assert says in wrong[0]


def test_short_rehearsals_and_the_users_own_scenarios_are_not_judged_by_scores() -> None:
    assert verdict({**changed("mobility.accuracy", 0.1), "duration_s": 60.0}, scored=True) == []
    assert verdict(changed("handovers.detected", 0), scored=False) == []


def test_table_names_the_run_its_ratio_and_the_records() -> None:
    text = table(GOOD)
    assert "mptcp a (sequential)" in text
    assert "0.93" in text
    assert "100 made, 100 sent, 100 in the database, 0 lost" in text


def test_table_stands_when_scores_are_absent() -> None:
    summary = changed("mobility", {"accuracy": None, "false_starts": None, "missed_starts": None})
    summary["runs"] = []
    assert "–" in table(summary)


def test_a_sequential_pair_without_one_of_its_runs_is_not_whole() -> None:
    wrong = verdict(changed("runs", GOOD["runs"][:2]), scored=False)
    assert wrong == ["the sequential pair at the start is not whole: MPTCP, and TCP on each of its paths"]
