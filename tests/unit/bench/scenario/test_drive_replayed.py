"""A drive out of an export of days and several kits, as a scenario; and a replay held against it."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="pip install -r requirements/dev.txt")

from support.drive_export import DRIVES_S, LENGTH_S, START, S, drive_rows, manifest, write_export, write_records
from tandem_bench.cli.main import main
from tandem_bench.scenario import ScenarioError, from_run


@pytest.fixture(scope="module")
def export(tmp_path_factory) -> Path:
    return write_export(tmp_path_factory.mktemp("drives") / "export")


def iso(at_s: float) -> str:
    return datetime.fromtimestamp(START / S + at_s, UTC).isoformat()


def test_the_longest_drive_of_the_kit_is_played_with_its_radio_capacity_and_runs(export):
    played = from_run(export, probe="kit-1")
    assert played.duration_s == pytest.approx(LENGTH_S, abs=1)
    red, blue = (played.operators[name].columns for name in "AB")
    assert [red["rsrp_dbm"][t] for t in (100, 450, 800)] == [-85.0, -97.0, -85.0]
    assert (red["down_bit_per_s"][70], blue["down_bit_per_s"][160]) == (12_000_000, 6_000_000)
    assert [e["to_eci"] for e in played.of_type("handover", "A")] == [25602]
    assert played.drive is not None
    assert played.drive.started_utc_ns == START + DRIVES_S[1] * S + S // 5
    assert [(round(one.t_s), one.kind, one.path, one.seconds) for one in played.drive.repeats] == [
        (5, "tcp", "a", 3.0),
        (15, "tcp", "b", 3.0),
        (25, "mptcp", "a", 3.0),
    ]
    assert any("1 others: --at T takes another" in note for note in played.notes)
    assert any("runs that are not repeated: 1" in note for note in played.notes)


def test_another_drive_and_another_kit(export):
    first = from_run(export, probe="kit-1", at_ns=START)
    assert (first.duration_s, first.drive.repeats) == (pytest.approx(LENGTH_S - 30, abs=1), ())
    (other,) = {from_run(export, probe="kit-2").drive.probe}
    assert other == "kit-2"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "several probes: kit-1, kit-2; hint: --probe kit-1"),
        (("--probe", "kit-9"), "there is no probe kit-9; hint: --probe with one of kit-1, kit-2"),
        (("--probe", "kit-1", "--at", iso(200_000)), "no drive goes on then or later; hint: the last ones are 20"),
    ],
)
def test_what_cannot_be_chosen_is_one_line(export, words, said, capsys):
    assert main(["scenario", "show", "--from-run", str(export), *words]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1


def test_a_drive_is_shown_by_its_command(export, capsys):
    assert main(["scenario", "show", "--from-run", str(export), "--probe", "kit-1", "--at", iso(0)]) == 0
    assert "the drive of kit-1 from" in capsys.readouterr().err
    assert main(["scenario", "show", "commute", "--probe", "kit-1"]) == 2
    assert "--from-run DIR" in capsys.readouterr().err


def test_runs_of_another_format_and_of_no_time_are_left_out_and_noted(tmp_path):
    folder = write_export(tmp_path / "export")
    first, second, *_ = sorted((folder / "probe" / "kit-1" / "runs").iterdir())
    first.write_text(json.dumps(json.loads(first.read_text()) | {"format": "tandem-run/9"}))
    second.write_text(json.dumps(json.loads(second.read_text()) | {"started_utc_ns": None}))
    played = from_run(folder, probe="kit-1")
    assert [one.kind for one in played.drive.repeats] == ["mptcp"]
    assert any(
        note.startswith("runs of another format than tandem-run/1") and note.endswith(": 1") for note in played.notes
    )
    assert any(note.startswith("runs that tell no time") and note.endswith(": 1") for note in played.notes)


def test_records_that_are_cut_are_one_line(tmp_path):
    folder = write_export(tmp_path / "export")
    for file in (folder / "probe" / "kit-1" / "records" / "radio").iterdir():
        file.write_bytes(file.read_bytes()[:200])
    with pytest.raises(ScenarioError, match=r"cannot be read: .*hint: export the campaign again") as error:
        from_run(folder, probe="kit-1")
    assert "\n" not in str(error.value)


@pytest.fixture
def replay(tmp_path) -> Path:
    """As a rehearsal of the drive leaves it: 2 dB lower, its handover missed, TCP on A slower."""
    folder, begun = tmp_path / "replay", START + 10**6 * S
    rows = drive_rows(begun, {"red": "a", "blue": "b"}, LENGTH_S, apart_db=-2.0)
    rows["event"] = [row for row in rows["event"] if row["kind"] != "handover"]
    write_records(folder, "probe-1", rows)
    for at_s, kind, paths, rate in ((5, "tcp", ["a"], 9e6), (15, "tcp", ["b"], 6e6), (25, "mptcp", ["a", "b"], 16e6)):
        manifest(folder, "probe-1", begun, at_s, kind, paths, rate)
    drive = {"probe": "kit-1", "started_utc_ns": START + DRIVES_S[1] * S, "paths": {"A": "red", "B": "blue"}}
    told = {"format": "tandem-campaign/1", "probe": "probe-1", "started_utc_ns": begun, "duration_s": float(LENGTH_S), "replayed": drive,
            "paths": {"a": {"operator": "A"}, "b": {"operator": "B"}}}  # fmt: skip
    (folder / "campaign.json").write_text(json.dumps(told))
    return folder


def test_a_replay_is_held_against_its_drive(export, replay, capsys):
    assert main(["compare", str(export), str(replay), "--json"]) == 0
    table = {(row["what"], row["operator"]): row for row in json.loads(capsys.readouterr().out)}
    levels = table["RSRP, nine in ten are nearer", "A"]
    assert (levels["drive"], levels["replay"], levels["distance"], levels["n"]) == (-85.0, -87.0, 2.0, LENGTH_S)
    found = {key: (row["drive"], row["replay"], row["distance"]) for key, row in table.items()}
    assert found["handover", "A"] == (1.0, 0.0, 0.0)
    assert found["signal_drop", "A"] == found["mobility_start", ""] == (1.0, 1.0, 1.0)
    assert found["signal_drop", "B"] == (0.0, 0.0, 0.0)
    assert found["goodput of TCP A, Mbit/s", ""] == (12.0, 9.0, 0.75)
    assert found["goodput of MPTCP, Mbit/s", ""] == (16.0, 16.0, 1.0)
    shown = replay / "replay"
    assert (shown / "comparison.csv").read_text().count("\n") == 1 + len(table)
    assert json.loads((shown / "comparison.json").read_text())["drive"]["probe"] == "kit-1"
    pytest.importorskip("matplotlib")
    assert "drive solid, replay dashed" in (shown / "comparison.svg").read_text()


def test_what_cannot_be_compared_is_one_line(export, replay, tmp_path, capsys):
    for drive, other, said in (
        (export, export, "it is of no replay; hint:"),
        (tmp_path / "none", replay, "no records of kit-1; hint:"),
        (export, tmp_path / "none", "cannot be read: No such file"),
    ):
        assert main(["compare", str(drive), str(other)]) == 2
        err = capsys.readouterr().err
        assert said in err
        assert err.count("\n") == 1
