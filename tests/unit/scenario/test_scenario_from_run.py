"""A finished campaign's folder as a scenario."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tandem.schema.line_protocol import encode
from tandem.schema.record import Record
from tandem_bench.cli.main import main
from tandem_bench.scenario import ScenarioError, from_run
from tandem_bench.scenario.recorded.points import point

S = 10**9
START = 1_795_000_000 * S
PATHS = {"a": {"operator": "Elisa", "interface": "wwan0"}, "b": {"operator": "DNA", "interface": "wwan1"}}


def radio(name: str, second: float, rsrp: float, **more: Any) -> str:
    fields = {"state": "idle", "rsrp_dbm": rsrp, "rsrq_db": -10.0, "tac": 7, "eci": 25601, **more}
    record = Record.make("radio", {"path": name, "operator": PATHS[name]["operator"], "rat": "LTE"}, fields, 1)
    return encode(record, {"probe": "probe-1", "boot": "x"}, 1, START + int(second * S))


def manifest(folder: Path, kind: str, names: list[str], begin: float, end: float, rate: float, **more: Any) -> None:
    result = {"bytes": 1, "duration_s": end - begin, "goodput_bit_per_s": rate, "subflows": more.pop("subflows", [])}
    told = {
        "kind": kind, "paths": names, "pair": "p", "pairing": "sequential", "started_utc_ns": START + int(begin * S),
        "ended_utc_ns": START + int(end * S), "result": result, **more,
    }  # fmt: skip
    runs = folder / "probe" / "probe-1" / "runs"
    runs.mkdir(parents=True, exist_ok=True)
    (runs / f"run-{len(list(runs.iterdir()))}.json").write_text(json.dumps(told))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    campaign = {
        "format": "tandem-campaign/1", "started_utc_ns": START, "ended_utc_ns": START + 60 * S, "duration_s": 60.0,
        "probe": "probe-1", "paths": PATHS,
    }  # fmt: skip
    (tmp_path / "campaign.json").write_text(json.dumps(campaign))
    lines = ["# DML", "# CONTEXT-DATABASE: tandem"]
    for second in range(60):
        if not 30 <= second < 40:  # nothing was recorded of a for ten seconds
            lines.append(radio("a", second + 0.4, -90.0 - second % 3, eci=25601 if second < 45 else 25602))
        lines.append(radio("b", second + 0.6, -100.0, state="no_service" if 20 <= second < 25 else "connected"))
        lines.append(radio("b", second + 0.7, -60.0).replace("probe=probe-1", "probe=other"))
        tags = {"mode": "full"}
        speed = Record.make(
            "position", tags, {"fix": "3d", "latitude_deg": 1.0, "longitude_deg": 2.0, "speed_m_per_s": 5.0}, 1
        )
        if second >= 10:
            lines.append(encode(speed, {"probe": "probe-1", "boot": "x"}, 1, START + second * S))
    (tmp_path / "records.lp").write_text("\n".join(lines) + "\nnonsense\n")
    manifest(tmp_path, "tcp", ["a"], 5, 10, 20e6, subflows=[{"path": "a", "bytes": 1, "handshake_rtt_ms": 61.5}])
    manifest(tmp_path, "tcp", ["b"], 12, 17, 8e6)
    manifest(tmp_path, "mptcp", ["a", "b"], 20, 25, 90e6)  # says nothing of one path
    manifest(tmp_path, "tcp", ["a"], 50, 55, 10e6, pairing="simultaneous", pair="q")
    manifest(
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
    assert [e["eci"] if "eci" in e else (e["from_eci"], e["to_eci"]) for e in played.of_type("handover", "A")] == [
        (25601, 25602)
    ]


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
    (folder / "records.lp").unlink()
    lines = []
    for tick in range(600):
        for name, level in (("Elisa", -80.0), ("DNA", -90.0)):
            radio = {"operator": name, "rsrp_dbm": level - tick // 100, "rat": "LTE", "speed_m_s": 2.0}
            lines.append(json.dumps({"t_s": tick / 10, "type": "radio", **radio}))
    (folder / "truth.jsonl").write_text("\n".join(lines))
    played = from_run(folder, duration_s=30)
    assert played.duration_s == 30
    assert played.operators["B"].columns["rsrp_dbm"][255] == -92.0
    assert played.operators["A"].columns["speed_m_s"][0] == 2.0
    assert "no records.lp" in played.notes[0]


@pytest.mark.parametrize(
    ("file", "text", "what"),
    [
        ("campaign.json", None, "cannot be read"),
        ("campaign.json", "{", "not JSON"),
        ("campaign.json", "[]", "no JSON object"),
        ("campaign.json", "{}", "no tandem-campaign/1"),
        ("records.lp", None, "neither records.lp nor truth.jsonl"),
        ("records.lp", "", "radio of two paths is needed, found: none"),
        ("probe/probe-1/runs/run-0.json", "x", "not JSON"),
    ],
)
def test_a_folder_that_cannot_be_played_is_one_line(folder: Path, file: str, text: str | None, what: str) -> None:
    (folder / file).unlink() if text is None else (folder / file).write_text(text)
    with pytest.raises(ScenarioError, match=what) as error:
        from_run(folder)
    assert "\n" not in str(error.value)


def test_a_manifest_that_says_nothing_is_passed_over(folder: Path) -> None:
    run = folder / "probe" / "probe-1" / "runs" / "run-0.json"
    told = json.loads(run.read_text())
    for change in (
        {"result": None}, {"started_utc_ns": None}, {"paths": 5}, {"result": {"goodput_bit_per_s": "x", "subflows": 4}},
    ):  # fmt: skip
        run.write_text(json.dumps({**told, **change}))
        assert from_run(folder).operators["A"].columns["down_bit_per_s"][70] == 14_000_000


NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1, max_size=12).filter(
    lambda text: not text.endswith("\\") and text.isprintable()
)
TAGS = NAMES.filter(lambda text: not set(text) & set('\\"'))


@example("=", -40.0, 0, False, "0", 0)
@example("a,b, = c", -40.0, 0, False, "\\=", 0)
@given(TAGS, st.floats(-150, -40), st.integers(0, 2**36 - 1), st.booleans(), NAMES, st.integers(0, 2**62))
def test_what_the_collector_writes_is_read_back(
    operator: str, level: float, eci: int, stale: bool, state: str, utc_ns: int
) -> None:
    fields = {"state": state, "rsrp_dbm": level, "eci": eci, "stale": stale}
    record = Record.make("radio", {"path": "a", "operator": operator, "rat": "LTE"}, fields, 5)
    found = point(encode(record, {"probe": "p", "boot": "b"}, 9, utc_ns))
    assert found is not None
    assert (found.measurement, found.tags["operator"], found.utc_ns) == ("radio", operator, utc_ns)
    assert {name: found.fields[name] for name in fields} == fields


@given(st.text(max_size=200))
def test_no_text_breaks_the_reading_of_points(text: str) -> None:
    point(text)
    point("radio,path=a " + text)


def test_a_point_without_time_or_field_is_none() -> None:
    for text in ("radio a=1", "radio 5", "radio a=1 5x", 'radio a="x 5', "radio a=1,b 5", "radio,a= b=1 5", ""):
        assert point(text) is None
