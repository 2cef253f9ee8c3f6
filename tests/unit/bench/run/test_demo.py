"""A rehearsal's folder, its plan, its programs, and its verdict."""

import errno
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem_bench.run import folder as folder_module
from tandem_bench.run.folder import DemoFolder, FolderError
from tandem_bench.run.outcome import rule, table, verdict
from tandem_bench.run.programs import Owner, ProgramError, Programs
from tandem_bench.run.rehearsal import OVERHEAD_S, PlanError, plan
from tandem_bench.scenario import load, play

ME = Owner(os.getuid(), os.getgid())


def test_an_earlier_rehearsal_is_set_aside_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = DemoFolder(tmp_path / "out")
    first.make(ME)
    first.write_campaign({"format": "tandem-campaign/1", "scenario": "first"}, ME)
    second = DemoFolder(tmp_path / "out")
    second.make(ME)
    aside = [path for path in tmp_path.iterdir() if path.name != "out"]
    assert len(aside) == 1
    assert "first" in (aside[0] / "campaign.json").read_text()
    assert str(aside[0]) in capsys.readouterr().out
    assert not second.campaign.exists()
    DemoFolder(tmp_path / "out").make(ME)
    assert len(list(tmp_path.iterdir())) == 3, "what a failed start left, too"


def test_a_folder_with_other_things_and_a_file_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(FolderError, match=r"not empty.*--out"):
        DemoFolder(tmp_path).make(ME)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    with pytest.raises(FolderError, match="is a file"):
        DemoFolder(tmp_path / "thesis.tex").make(ME)


def test_too_little_room_is_said_before_anything_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_module, "NEEDED_BYTES", 1 << 62)
    with pytest.raises(FolderError, match="MB free"):
        DemoFolder(tmp_path / "out").make(ME)


def test_room_is_held_back_and_given_to_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = DemoFolder(tmp_path / "out")
    made.make(ME)
    (reserve,) = made.bench.iterdir()
    assert reserve.stat().st_blocks * 512 >= folder_module.RESERVE_BYTES
    assert made.full() is None
    monkeypatch.setattr(folder_module, "LEAST_FREE_BYTES", 1 << 62)
    assert "disk is full; make room" in (made.full() or "")
    made.release_reserve()
    made.release_reserve()
    assert not list(made.bench.iterdir())


@given(still_s=st.floats(30, 900), paths=st.integers(1, 4))
def test_first_pair_ends_within_the_first_still_phase(still_s: float, paths: int) -> None:
    planned = plan(still_s, still_s * 4, paths)
    runs = paths + 1
    end = planned.first_start_s + runs * (planned.first_seconds + OVERHEAD_S) + (runs - 1) * planned.first_pause_s
    assert planned.first_seconds >= 2.0
    if planned.first_seconds > 2.0:
        assert end <= still_s + 0.4


def test_too_short_a_rehearsal_is_refused_with_the_least_that_works() -> None:
    with pytest.raises(PlanError, match=r"give at least \d+"):
        plan(1.0, 5.0, 2)


def run(kind: str, path: str, *used: str) -> dict[str, Any]:
    told = {"id": f"run-{kind}-{path}", "pair": "pair-1", "kind": kind, "path": path, "pairing": "sequential"}
    return {**told, "failure": None, "subflows": [{"path": one} for one in used]}


GOOD: dict[str, Any] = {
    "duration_s": 180.0,
    "handovers": {"true": 10, "detected": 10},
    "mobility": {"accuracy": 0.95},
    "runs": [run("mptcp", "a", "a", "b"), run("tcp", "a", "a"), run("tcp", "b", "b")],
    "records": {"made": 100, "lost": 0},
    "interrupted": None,
}


def changed(path: str, value: object) -> dict[str, Any]:
    first, _, second = path.partition(".")
    return {**GOOD, first: {**GOOD[first], second: value} if second else value}


def test_what_is_wrong_is_said() -> None:
    for path, value, says in (
        ("records.lost", 1, "records lost: 1"),
        ("records.lost", None, "records lost"),
        ("records.made", 0, "records lost"),
        ("runs", [], "no run"),
        ("interrupted", "Ctrl-C", "interrupted"),
        ("handovers.detected", 3, "handovers: only 3 of 10"),
        ("mobility.accuracy", 0.3, "mobility"),
        ("mobility.accuracy", None, "mobility"),
        ("runs", GOOD["runs"][:2], " at the start is not whole: MPTCP, and TCP on each of its paths"),
    ):
        (wrong,) = verdict(changed(path, value), scored=True)
        assert says in wrong


def test_short_rehearsals_and_the_users_own_scenarios_are_not_judged_by_scores() -> None:
    assert verdict(GOOD, scored=True) == []
    assert verdict({**changed("mobility.accuracy", 0.1), "duration_s": 60.0}, scored=True) == []
    assert verdict(changed("handovers.detected", 0), scored=False) == []


def test_the_mobility_state_is_held_to_what_the_rule_gives_on_the_levels_that_were_played() -> None:
    assert verdict(changed("mobility.accuracy", 0.6), scored=True, right=0.7) == []
    (wrong,) = verdict(changed("mobility.accuracy", 0.5), scored=True, right=0.7)
    assert "right only 50.0 % of the time, where the published rule gives 70.0 %" in wrong
    assert 0.4 < rule(play(load("commute", 60, 1))) < 1


def test_table_names_the_run_its_ratio_and_the_records() -> None:
    subflow = {"operator": "A", "path": "a", "bytes": 500, "share": 1.0, "rtt_ms_median": 60.0}
    figures = {"path": "a", "bytes": 500, "duration_s": 8.0, "goodput_bit_per_s": 7.0e7, "capacity_bit_per_s": 7.5e7}
    more = {"sum_of_singles_bit_per_s": 7.2e7, "fallback": False, "activity": "still", "subflows": [subflow]}
    text = table(
        {
            **GOOD, "scenario": "commute", "seed": 1, "radio_records": 360, "polls_late": 2,
            "handovers": {"true": 10, "detected": 10, "false": 0}, "signal_drops": {"true": 20, "detected": 18, "false": 1},
            "mobility": {"accuracy": 0.95, "false_starts": 0, "missed_starts": 0},
            "runs": [{**run("mptcp", "a"), **figures, **more}],
            "records": {"made": 100, "sent": 100, "in_database": 100, "lost": 0},
            "captures": [{"file": "x.pcap", "bytes": 10, "packets": 1}],
        }
    )  # fmt: skip
    for words in ("mptcp a (sequential)", "0.93", "100 made, 100 sent, 100 in the database, 0 lost"):
        assert words in text


SLEEPER = "import time; print('ready to sleep', flush=True); time.sleep(600)"


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_a_program_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    code = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN);" + SLEEPER
    with Programs(tmp_path) as programs:
        program = programs.start("stubborn", python(code), ready_s=60)
        assert programs.end(program, timeout_s=0.2).exit == -9


def test_why_it_did_not_start(tmp_path: Path) -> None:
    sleeps = "import time; time.sleep(600)"
    for code, ready_s, says in (
        ("import sys; sys.exit('no such port: /dev/x')", 60, "ended before it was ready: no such port: /dev/x"),
        (f"print('hello', flush=True); {sleeps}", 60, "said 'hello' instead of ready"),
        (sleeps, 0.1, "not ready within"),
    ):
        with Programs(tmp_path) as programs, pytest.raises(ProgramError, match=says):
            programs.start("broken", python(code), ready_s=ready_s)


def test_where_the_kernel_has_no_pidfd_an_end_is_awaited_all_the_same(tmp_path, monkeypatch):
    def absent(*_: object) -> int:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))  # before Linux 5.3

    monkeypatch.setattr(os, "pidfd_open", absent)
    with Programs(tmp_path) as programs:
        program = programs.start("short", python("import sys; sys.stdin.read(); sys.exit(7)"))
        usage = program.wait(60)
        assert usage is not None
        assert usage.exit == 7
        going = programs.start("long", python("import time; time.sleep(600)"))
        assert going.wait(0) is None
        assert going.wait(0.05) is None
        assert programs.end(going).exit == -signal.SIGTERM


def test_a_program_that_dies_later_is_noticed(tmp_path: Path) -> None:
    code = "import sys; print('ready', flush=True); sys.stdin.read(); sys.exit('the disk is full')"
    with Programs(tmp_path) as programs:
        program = programs.start("database", python(code), ready_s=60)
        program.wait(60)
        why = programs.watch()
    assert why is not None
    assert "database ended by itself with status 1: the disk is full" in why
