"""Scores by hand: a log in, figures out, through the command."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.cli.main import main
from tandem.mobility.gnettrack import Second
from tandem.mobility.score import Judged, Score, moving_by_fixes, moving_by_places, moving_by_speed, score

HERE = Path(__file__).parent / "scores"


def judged(text: str) -> list[Judged]:
    """A letter a second: m moving and judged so, s still and judged so, F still judged moving, M moving judged still, ? not known."""
    return [Judged(i, None if c == "?" else c in "mM", c in "mF") for i, c in enumerate(text)]


def later(text: str, by_s: int) -> list[Judged]:
    return [Judged(j.at_s + by_s, j.moving, j.mobile) for j in judged(text)]


def scores(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main(["mobility", "score", "--json", *arguments]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("folder", sorted(HERE.iterdir()), ids=lambda folder: folder.name)
def test_golden(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    found = scores(capsys, *(folder / "arguments.txt").read_text().split())
    assert found == json.loads((folder / "expected.json").read_text())


CASES: dict[str, tuple[list[Judged], dict[str, float | int | None]]] = {
    "shares and delays": (
        judged("s" * 20 + "M" * 4 + "m" * 36 + "F" * 10 + "s" * 30),
        {"accuracy": 0.86, "still_judged_moving": round(10 / 60, 5), "moving_judged_still": 0.1, "delay_s_median": 4,
         "stop_delay_s_median": 10, "starts": 1, "missed_starts": 0, "false_starts": 0},
    ),
    "false starts are counted an hour of log": (
        judged("s" * 10 + "F" * 5 + "s" * 40 + "F" * 5), {"false_starts": 2, "false_starts_per_hour": 120.0},
    ),
    "a movement never noticed is a missed start": (
        judged("s" * 20 + "M" * 30 + "s" * 20), {"starts": 1, "missed_starts": 1, "delay_s_median": None},
    ),
    "a stop of less than fifteen seconds is part of the ride and its seconds count as still": (
        judged("m" * 20 + "F" * 14 + "m" * 20), {"starts": 1, "still_judged_moving": 1.0},
    ),
    "one of fifteen is a stop": (judged("m" * 20 + "F" * 15 + "m" * 20), {"starts": 2, "still_judged_moving": 1.0}),
    "what nobody knows is not judged and ends nothing": (
        judged("m" * 20 + "?" * 100 + "m" * 20 + "s" * 20 + "?" * 100 + "m" * 20), {"seconds": 80, "starts": 2, "accuracy": 1.0},
    ),
    "a gap ends a spell and its time counts in no rate": (
        [*judged("m" * 60), *later("M" * 20 + "s" * 40 + "F" * 20, 3600)],
        {"starts": 2, "missed_starts": 1, "delay_s_median": 0, "false_starts": 1, "false_starts_per_hour": round(3600 / 140, 3)},
    ),
    "a hold from before a gap is no start behind it and no stop": (
        [*judged("m" * 60), *later("F" * 5 + "s" * 20, 300)], {"false_starts": 0, "stop_delay_s_median": None},
    ),
}  # fmt: skip


def test_figures_by_hand_and_of_nothing():
    found = {name: score(seconds).figures() for name, (seconds, _) in CASES.items()}
    assert {name: found[name] for name, (_, told) in CASES.items() if not told.items() <= found[name].items()} == {}
    assert score([]) == Score()
    assert set(Score().figures().values()) == {None, 0}


def rows(*legs: tuple[int, float, float]) -> list[Second]:
    """(seconds, km/h, metres north of the first fix) of each fix, repeated until the next one."""
    out: list[Second] = []
    for seconds, speed, north_m in legs:
        out += [Second(len(out) + i, speed, "LTE", {}, (52.0 + north_m / 111_195, -8.4)) for i in range(seconds)]
    return out


def test_an_old_speed_is_not_believed_where_the_next_fix_says_otherwise():
    """A car at 30 km/h stops for ten minutes within 100 m, crawls 100 m in a minute, and drives on."""
    log = rows((600, 30.0, 0), (60, 20.0, 100), (12, 30.0, 200), (300, 30.0, 300))
    assert set(moving_by_speed(log)) == {True}
    found = moving_by_fixes(log)
    assert found[:10] == [True] * 10, "a fresh fix is believed"
    assert found[10:30] == [None] * 20, "it may have been rolling"
    assert found[30:570] == [False] * 540
    assert found[570:600] == [None] * 30, "or be rolling again"
    assert (found[600:610], found[610:660]) == ([True] * 10, [None] * 50), (
        "where in a slow minute it stood is not known"
    )
    assert found[660:672] == [True] * 12
    assert (found[672:682], found[682:]) == ([True] * 10, [None] * 290), "no fix after the last"


def test_one_that_stands_or_has_no_place_is_as_its_speed_says():
    assert set(moving_by_fixes(rows((300, 0.0, 0)))) == {False}
    bare = [Second(i, 30.0 if i < 200 else 0.0, "LTE", {}) for i in range(400)]
    assert moving_by_fixes(bare) == moving_by_speed(bare)
    second_by_second = rows(*((1, 5.0, 1.4 * i) for i in range(100)))
    assert set(moving_by_fixes(second_by_second)) == {True}


def test_by_places_no_speed_is_looked_at():
    """100 m in 10 s, then ten minutes within 100 m, then 100 m in 10 s; the speeds say the contrary."""
    log = rows((10, 0.0, 0), (600, 30.0, 100), (10, 0.0, 200), (5, 0.0, 300))
    found = moving_by_places(log)
    assert found[:10] == [True] * 10
    assert (found[10:40], found[40:580], found[580:610]) == ([None] * 30, [False] * 540, [None] * 30)
    assert (found[610:620], found[620:]) == ([True] * 10, [None] * 5), "nobody knows what comes after the last fix"
    assert set(moving_by_places(rows((600, 30.0, 0), (600, 30.0, 50)))) == {False}, "it never left the place"
    assert set(moving_by_places(rows((60, 30.0, 0)))) == {None}, "it may have been on its way"
    assert set(moving_by_places([Second(i, 30.0, "LTE", {}) for i in range(9)])) == {None}


def test_a_receiver_is_told_each_fix_once_and_judged_by_places(capsys, tmp_path):
    """Levels that never change: radio alone says standing."""
    log = tmp_path / "drive.csv"
    lines = ["Timestamp,Longitude,Latitude,Speed,RSRP"]
    for s in range(240):
        north_m = max(0, s - 119) // 10 * 100
        lines.append(
            f"2020.01.01_00.{s // 60:02}.{s % 60:02},-8.4,{52 + north_m / 111_195:.6f},{36 if north_m else 0},-90"
        )
    log.write_text("\n".join(lines) + "\n")

    alone, receiver = (scores(capsys, str(log), *more)["overall"]["detectors"] for more in ((), ("--receiver",)))
    alone = alone["fused"]
    assert alone["moving_judged_still"] > 0.9
    assert receiver["fused"]["moving_judged_still"] < alone["moving_judged_still"]
    where = receiver["fused"]["where_told"]
    assert (where["accuracy"], where["moving_judged_still"]) == (1.0, 0.0)
    assert receiver["published"]["where_told"]["moving_judged_still"] == 1.0, "the rule takes no fix"
    assert "where_told" not in alone


@given(st.text("msFM", min_size=1, max_size=80), st.text("msFM", min_size=1, max_size=80))
def test_counts_add_up(one, other):
    total = score(judged(one)) + score(judged(other))
    assert total.seconds == total.right + total.still_judged_moving + total.moving_judged_still == len(one) + len(other)
    assert len(total.start_delays_s) + total.missed_starts == total.starts
    found = total.figures()
    assert found["accuracy"] == round(
        (one + other).count("m") / total.seconds + (one + other).count("s") / total.seconds, 5
    )


def test_the_table_says_which_hold_is_used(capsys, tmp_path):
    log = tmp_path / "walk.csv"
    log.write_text("Timestamp,Speed,RSRP\n" + "".join(f"2020.01.01_00.00.{i:02},0,-90\n" for i in range(60)))
    assert main(["mobility", "score", str(log), "--hold", "45"]) == 0
    out = capsys.readouterr().out
    assert "published 45 s" in out
    assert "100.0 %" in out
    assert main(["mobility", "score", str(log), "--detector", "fused"]) == 0
    assert "published" not in capsys.readouterr().out


HEAD = "Timestamp,Speed,RSRP\n"


def test_bad_logs_are_refused_in_one_line(capsys, tmp_path):
    log = tmp_path / "walk.csv"
    for rows, says in {
        "2020.01.01_00.00.00,0,loud\n": "line 2: RSRP 'loud' is no number",
        "2020.01.01_00.00.00,-,-90\n": "from line 2 on no row tells a speed",
        "2020.01.01_00.00.00,99999999,-90\n": "from line 2 on no row tells a speed",
        "2020.01.01_00.00.00,5,-\n": "from line 2 on no row tells a level",
    }.items():
        log.write_text(HEAD + rows)
        assert refusal(capsys, "--json", str(log)).startswith(f"tandem: {log}: {says}")
    for arguments in ([str(tmp_path / "none.csv")], [str(tmp_path)], []):
        refusal(capsys, *arguments)


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["mobility", "score", *arguments]) == 2
    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("\n")) == ("", 1)
    assert "hint: " in printed.err
    return printed.err


def test_a_folder_stands_for_its_logs(capsys, tmp_path):
    for name in ("b.CSV", "a.txt"):
        (tmp_path / name).write_text(HEAD + "2020.01.01_00.00.00,0,-90\n2020.01.01_00.00.01,0,-90\n")
    (tmp_path / "README.md").write_text("no log")
    found = scores(capsys, str(tmp_path))
    assert [entry["file"] for entry in found["logs"]] == [str(tmp_path / "a.txt"), str(tmp_path / "b.CSV")]
    assert found["overall"]["seconds"] == 4
    assert set(found["overall"]["detectors"]) == {"published", "fused"}


def test_a_hold_that_cannot_be_is_refused(capsys):
    for hold in ("0", "nan", "inf", "long"):
        with pytest.raises(SystemExit) as refused:
            main(["mobility", "score", "x.csv", f"--hold={hold}"])
        assert refused.value.code == 2
        assert "is not a number of seconds" in capsys.readouterr().err
