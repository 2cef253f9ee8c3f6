"""Stretches played again and again: each repetition is the stretch as it is, and the truth is that of the whole."""

import json
from itertools import pairwise

from tandem_bench import truth
from tandem_bench.scenario import load, play, repeated, write_timelines
from tandem_bench.scenario.timeline import COLUMNS

FIRST, SECOND = (play(load("drive", 30, seed)) for seed in (1, 2))
PLAYED = repeated([FIRST, SECOND], 3)


def test_every_repetition_has_the_same_radio_and_links():
    assert PLAYED.duration_s == 180
    for name, timeline in PLAYED.operators.items():
        assert len(timeline) == 1800
        for number, stretch in enumerate([FIRST] * 3 + [SECOND] * 3):
            for column in COLUMNS:
                part = timeline.columns[column][number * 300 : (number + 1) * 300]
                assert part == stretch.operators[name].columns[column], (name, number, column)


def test_events_come_again_with_each_repetition_and_say_where_stretches_meet():
    for kind in ("handover", "outage"):
        own = [e for e in PLAYED.of_type(kind, "A") if e.get("cause") != "another stretch"]
        for number, stretch in enumerate([FIRST] * 3 + [SECOND] * 3):
            there = [round(e["t_s"] - 30 * number, 4) for e in own if 30 * number <= e["t_s"] < 30 * (number + 1)]
            assert there == [e["t_s"] for e in stretch.of_type(kind, "A")]
    ecis = PLAYED.operators["A"].columns["eci"]
    changes = [n / 10 for n in range(1, len(ecis)) if ecis[n] != ecis[n - 1]]
    assert [e["t_s"] for e in PLAYED.of_type("handover", "A")] == changes
    assert [(p["t_s"], p["until_s"]) for p in PLAYED.phases[-3:]] == [(150.0, 157.5), (157.5, 177.0), (177.0, 180.0)]
    moving = PLAYED.of_type("mobility")
    assert all(a["moving"] != b["moving"] for a, b in pairwise(moving))


def test_its_timelines_and_truth_are_written_as_any_other(tmp_path):
    files = write_timelines(PLAYED, tmp_path)
    lines = files["B"].read_text().splitlines()
    assert json.loads(lines[0])["duration_s"] == 180
    assert [json.loads(line)["t_s"] for line in lines[1:]] == [n / 10 for n in range(1800)]
    truth.write(PLAYED, tmp_path / "truth.jsonl", 0, 0)
    times = [json.loads(line)["t_s"] for line in (tmp_path / "truth.jsonl").read_text().splitlines()]
    assert times == sorted(times)
