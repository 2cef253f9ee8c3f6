"""A finished campaign's folder as a scenario, and a drive out of an export of days and several kits; a replay held against its drive."""

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="pip install -r requirements/lock.txt")

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


def test_a_drive_is_shown_by_its_command_and_what_cannot_be_chosen_is_one_line(export, capsys):
    show = ["scenario", "show", "--from-run", str(export)]
    assert main([*show, "--probe", "kit-1", "--at", iso(0)]) == 0
    assert "the drive of kit-1 from" in capsys.readouterr().err
    late = ["--probe", "kit-1", "--at", iso(200_000)]
    for words, said in (
        (show, "several probes: kit-1, kit-2; hint: --probe kit-1"),
        ([*show, "--probe", "kit-9"], "there is no probe kit-9; hint: --probe with one of kit-1, kit-2"),
        ([*show, *late], "no drive goes on then or later; hint: the last ones are 20"),
        (["scenario", "show", "commute", "--probe", "kit-1"], "--from-run DIR"),
    ):
        assert main(words) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert said in line


def test_runs_of_another_format_and_of_no_time_are_left_out_and_noted(tmp_path):
    folder = write_export(tmp_path / "export")
    first, second, *_ = sorted((folder / "probe" / "kit-1" / "runs").iterdir())
    first.write_text(json.dumps(json.loads(first.read_text()) | {"format": "tandem-run/9"}))
    second.write_text(json.dumps(json.loads(second.read_text()) | {"started_utc_ns": None}))
    played = from_run(folder, probe="kit-1")
    assert [one.kind for one in played.drive.repeats] == ["mptcp"]
    for words in ("runs of another format than tandem-run/1", "runs that tell no time"):
        assert any(note.startswith(words) and note.endswith(": 1") for note in played.notes)


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


# --- a rehearsal's folder, whole --------------------------------------------------------------------------------------

ABOUT = {"a": {"operator": "Elisa", "interface": "wwan0"}, "b": {"operator": "DNA", "interface": "wwan1"}}


def radio(name: str, second: float, rsrp: float, **more: Any) -> dict[str, Any]:
    levels = {"path": name, "rat": "LTE", "state": "idle", "rsrp_dbm": rsrp, "rsrq_db": -10.0, "tac": 7, "eci": 25601}
    return {"utc_ns": START + int(second * S), **levels, **more}


def run(folder: Path, kind: str, names: list[str], begin: float, end: float, rate: float, **more: Any) -> None:
    result = {"duration_s": end - begin, "goodput_bit_per_s": rate, "subflows": more.pop("subflows", [])}
    more = {"pairing": "sequential", "ended_utc_ns": START + int(end * S), "result": result, **more}
    manifest(folder, "probe-1", START, begin, kind, names, rate, **more)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    campaign = {
        "format": "tandem-campaign/1", "started_utc_ns": START, "ended_utc_ns": START + 60 * S, "duration_s": 60.0,
        "probe": "probe-1", "paths": ABOUT,
    }  # fmt: skip
    (tmp_path / "campaign.json").write_text(json.dumps(campaign))
    rows: dict[str, list[dict[str, Any]]] = {"radio": [], "position": []}
    for second in range(60):
        if not 30 <= second < 40:  # nothing was recorded of a for ten seconds
            cell = 25601 if second < 45 else 25602
            rows["radio"].append(radio("a", second + 0.4, -90.0 - second % 3, eci=cell))
        state = "no_service" if 20 <= second < 25 else "connected"
        rows["radio"].append(radio("b", second + 0.6, -100.0, state=state))
        if second >= 10:
            rows["position"].append({"utc_ns": START + second * S, "speed_m_per_s": 5.0})
    write_records(tmp_path, "probe-1", rows)
    write_records(tmp_path, "other", {"radio": [radio("b", second + 0.7, -60.0) for second in range(60)]})
    run(tmp_path, "tcp", ["a"], 5, 10, 20e6, subflows=[{"path": "a", "bytes": 1, "handshake_rtt_ms": 61.5}])
    run(tmp_path, "tcp", ["b"], 12, 17, 8e6)
    run(tmp_path, "mptcp", ["a", "b"], 20, 25, 90e6)  # says nothing of one path
    run(tmp_path, "tcp", ["a"], 50, 55, 10e6, pairing="simultaneous", pair="q")
    run(
        tmp_path, "mptcp", ["a", "b"], 50, 55, 12e6, pairing="simultaneous", pair="q",
        subflows=[{"path": "a", "bytes": 2_500_000}, {"path": "b", "bytes": 5_000_000}],
    )  # fmt: skip
    return tmp_path


def test_the_recorded_radio_and_the_least_capacity_are_played(folder: Path) -> None:
    played = from_run(folder)
    assert played.duration_s == 60.0
    a, b = (played.operators[name].columns for name in "AB")
    assert (a["rsrp_dbm"][4], a["rsrp_dbm"][14]) == (-90.0, -91.0)
    assert a["plmn"][0] == "00101"  # networks for tests, whatever was recorded
    assert b["rsrp_dbm"][100] == -100.0  # the other probe's records are not ours
    assert a["down_bit_per_s"][70] == 20_000_000
    assert a["down_bit_per_s"][200] == 20_000_000  # the last holds
    assert a["down_bit_per_s"][525] == 14_000_000  # TCP's 10 and MPTCP's 4 shared the path
    assert b["down_bit_per_s"][140] == 8_000_000
    assert a["rtt_ms"][80] == 61.5
    assert a["speed_m_s"][200] == 5.0
    assert [(e["from_eci"], e["to_eci"]) for e in played.of_type("handover", "A")] == [(25601, 25602)]


def test_gaps_and_no_service_are_outages(folder: Path) -> None:
    played = from_run(folder)
    (gap,) = played.of_type("outage", "A")
    assert (gap["t_s"], gap["until_s"]) == (pytest.approx(30.4, abs=0.11), pytest.approx(40.4, abs=0.11))
    (silent,) = played.of_type("outage", "B")
    assert (silent["t_s"], silent["until_s"]) == (pytest.approx(20.6, abs=0.11), pytest.approx(25.6, abs=0.11))
    assert played.operators["A"].columns["down_bit_per_s"][350] == 0
    assert not played.operators["B"].columns["registered"][230]


def test_what_is_not_known_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scenario", "show", "--from-run", str(folder)]) == 0
    notes = capsys.readouterr().err
    known = "its capacity is known, as the least that single-path runs show, for 10 of 60 s"
    for words in (f"A is path a (Elisa): {known}", "B is path b (DNA)", "for 5 of 60 s", "uplinks were not measured"):
        assert words in notes


def test_without_records_the_truth_of_a_rehearsal_is_played(folder: Path) -> None:
    shutil.rmtree(folder / "probe" / "probe-1" / "records")
    lines = []
    for tick in range(600):
        for name, level in (("Elisa", -80.0), ("DNA", -90.0)):
            told = {"operator": name, "rsrp_dbm": level - tick // 100, "rat": "LTE", "speed_m_s": 2.0}
            lines.append(json.dumps({"t_s": tick / 10, "type": "radio", **told}))
    (folder / "truth.jsonl").write_text("\n".join(lines))
    played = from_run(folder, duration_s=30)
    assert played.duration_s == 30
    assert played.operators["B"].columns["rsrp_dbm"][255] == -92.0
    assert played.operators["A"].columns["speed_m_s"][0] == 2.0
    assert "there are no records" in played.notes[0]


def test_a_folder_that_cannot_be_played_is_one_line(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    for file, text, what in (
        ("campaign.json", None, "cannot be read"),
        ("campaign.json", "{", "not JSON"),
        ("campaign.json", "[]", "no JSON object"),
        ("campaign.json", "{}", "no tandem-campaign/1"),
        ("probe/probe-1/records", None, "neither records of probe-1 nor truth.jsonl: no radio; hint: "),
        ("probe/probe-1/records/radio", None, "radio of two paths is needed, found: none"),
        ("probe/probe-1/runs/probe-1-0.json", "x", "not JSON"),
    ):
        other = Path(shutil.copytree(folder, tmp_path_factory.mktemp("wrong") / "folder"))
        place = other / file
        if text is not None:
            place.write_text(text)
        else:
            shutil.rmtree(place) if place.is_dir() else place.unlink()
        with pytest.raises(ScenarioError, match=what) as error:
            from_run(other)
        assert "\n" not in str(error.value)


def test_a_manifest_that_says_nothing_is_passed_over(folder: Path) -> None:
    file = folder / "probe" / "probe-1" / "runs" / "probe-1-0.json"
    told = json.loads(file.read_text())
    for change in (
        {"result": None}, {"started_utc_ns": None}, {"paths": 5}, {"result": {"goodput_bit_per_s": "x", "subflows": 4}},
    ):  # fmt: skip
        file.write_text(json.dumps({**told, **change}))
        assert from_run(folder).operators["A"].columns["down_bit_per_s"][70] == 14_000_000
