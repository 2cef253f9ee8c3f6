"""Scores by hand: a log in, figures out, through the command."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.cli.main import main
from tandem.mobility.score import Judged, Movement, Score, score

HERE = Path(__file__).parent / "scores"


def judged(text: str) -> list[Judged]:
    """A letter a second: m moving and judged so, s still and judged so, F still judged moving, M moving judged still."""
    return [Judged(i, 20.0 if c in "mM" else 0.0, c in "mF") for i, c in enumerate(text)]


def later(text: str, by_s: int) -> list[Judged]:
    return [Judged(j.at_s + by_s, j.speed_km_h, j.mobile) for j in judged(text)]


@pytest.mark.parametrize("folder", sorted(HERE.iterdir()), ids=lambda folder: folder.name)
def test_golden(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    arguments = (folder / "arguments.txt").read_text().split()
    assert main(["mobility", "score", "--json", *arguments]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads((folder / "expected.json").read_text())


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
    "a gap ends a spell and its time counts in no rate": (
        [*judged("m" * 60), *later("M" * 20 + "s" * 40 + "F" * 20, 3600)],
        {"starts": 2, "missed_starts": 1, "delay_s_median": 0, "false_starts": 1, "false_starts_per_hour": round(3600 / 140, 3)},
    ),
    "a hold from before a gap is no start behind it and no stop": (
        [*judged("m" * 60), *later("F" * 5 + "s" * 20, 300)], {"false_starts": 0, "stop_delay_s_median": None},
    ),
}  # fmt: skip


def test_figures_by_hand() -> None:
    found = {name: score(seconds).figures() for name, (seconds, _) in CASES.items()}
    assert {name: found[name] for name, (_, told) in CASES.items() if not told.items() <= found[name].items()} == {}


def test_a_class_is_right_on_either_side_of_ten_km_h_and_a_false_movement_has_none() -> None:
    ride = [Judged(i, speed, True) for i, speed in enumerate([5.0] * 100 + [30.0] * 100 + [0.0] * 100)]
    movements = [Movement(0, 100, "low"), Movement(100, 200, "low"), Movement(200, 300, "low"), Movement(0, 50, None)]
    found = score(ride, movements).figures()
    assert (found["speed_classes"], found["speed_class_accuracy"]) == (2, 0.5)


@given(st.text("msFM", min_size=1, max_size=80), st.text("msFM", min_size=1, max_size=80))
def test_counts_add_up(one: str, other: str) -> None:
    total = score(judged(one)) + score(judged(other))
    assert total.seconds == total.right + total.still_judged_moving + total.moving_judged_still == len(one) + len(other)
    assert len(total.start_delays_s) + total.missed_starts == total.starts
    found = total.figures()
    assert found["accuracy"] == round(
        (one + other).count("m") / total.seconds + (one + other).count("s") / total.seconds, 5
    )


def test_nothing_scored_is_nothing_claimed() -> None:
    assert score([]) == Score()
    assert set(Score().figures().values()) == {None, 0}


def test_the_table_says_which_hold_is_used(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    log = tmp_path / "walk.csv"
    log.write_text("Timestamp,Speed,RSRP\n" + "".join(f"2020.01.01_00.00.{i:02},0,-90\n" for i in range(60)))
    assert main(["mobility", "score", str(log), "--hold", "45"]) == 0
    out = capsys.readouterr().out
    assert "published 45 s" in out
    assert "100.0 %" in out
    assert main(["mobility", "score", str(log), "--detector", "fused"]) == 0
    assert "published" not in capsys.readouterr().out


HEAD = "Timestamp,Speed,RSRP\n"


def test_bad_logs_are_refused_in_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
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
    assert "mend: " in printed.err
    return printed.err


def test_a_folder_stands_for_its_logs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for name in ("b.CSV", "a.txt"):
        (tmp_path / name).write_text(HEAD + "2020.01.01_00.00.00,0,-90\n2020.01.01_00.00.01,0,-90\n")
    (tmp_path / "README.md").write_text("no log")
    assert main(["mobility", "score", "--json", str(tmp_path)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [entry["file"] for entry in found["logs"]] == [str(tmp_path / "a.txt"), str(tmp_path / "b.CSV")]
    assert found["overall"]["seconds"] == 4
    assert set(found["overall"]["detectors"]) == {"published", "fused"}


@pytest.mark.parametrize("hold", ["0", "-1", "nan", "inf", "long"])
def test_a_hold_that_cannot_be_is_refused(hold: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        main(["mobility", "score", "x.csv", f"--hold={hold}"])
    assert refused.value.code == 2
    assert "is not a number of seconds" in capsys.readouterr().err
