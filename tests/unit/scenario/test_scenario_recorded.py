"""A finished campaign's folder as a scenario, and packet-delivery traces as capacity."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tandem.schema.line_protocol import encode
from tandem.schema.record import Record
from tandem_bench.cli.main import main
from tandem_bench.scenario import ScenarioError, from_run, load, play, with_traces
from tandem_bench.scenario.recorded.mahimahi import rates, read
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


def trace(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        ("", ":1:", "empty"),
        ("1\n\n2\n", ":2:", "'' is no time"),
        ("1\n2.5\n", ":2:", "'2.5' is no time"),
        ("-1\n", ":1:", "is no time"),
        (" 1\n", ":1:", "is no time"),
        ("1" * 5000 + "\n", ":1:", "is no time"),
        ("²\n", ":", "not ASCII"),
        ("1000000001\n", ":1:", "is no time"),
        ("5\n4\n", ":2:", "4 comes after a later time; sort"),
        ("0\n0\n", ":2:", "ends at 0"),
    ],
)
def test_a_bad_trace_is_named_with_its_line(tmp_path: Path, text: str, where: str, what: str) -> None:
    path = trace(tmp_path / "bad.trace", text)
    with pytest.raises(ScenarioError) as error:
        read(path)
    assert str(error.value).startswith(f"{path}{where}")
    assert what in str(error.value)
    assert "\n" not in str(error.value)


@given(st.binary(max_size=60))
def test_any_bytes_are_a_trace_or_one_line(tmp_path_factory: pytest.TempPathFactory, raw: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.trace"
    path.write_bytes(raw)
    said = None
    try:
        times = read(path)
    except ScenarioError as error:
        said = str(error)
    else:
        assert times == sorted(times)
        assert times[-1] > 0
    assert said is None or "\n" not in said


@given(st.lists(st.integers(0, 700), min_size=1, max_size=30), st.integers(1, 20))
def test_the_means_are_what_the_opportunities_sum_to(times: list[int], ticks: int) -> None:
    times = [*sorted(times), 701]
    walked = []
    for tick in range(ticks):
        count = 0
        for ms in range(tick * 100 + 1, (tick + 1) * 100 + 1):  # what came until the tick's end, as the link counts
            rounds, within = divmod(ms, 701)
            count += times.count(within) + (times.count(701) if within == 0 and rounds else 0)
        walked.append(count * 12_000 * 10)
    assert rates(times, ticks) == walked


def test_a_traced_operator_has_no_outage_of_the_scenarios(tmp_path: Path) -> None:
    played = play(load("commute", 60, 3))
    outages = {name: sum(t.columns["outage"]) for name, t in played.operators.items()}
    assert outages["A"]
    down = trace(tmp_path / "d", "1\n5\n")
    one = with_traces(played, {"A": {"down": down}})
    columns = one.operators["A"].columns
    assert set(columns["down_bit_per_s"]) == {4_800_000}
    assert not any(columns["outage"])
    assert columns["up_bit_per_s"].count(0) >= outages["A"]  # closed there all the same
    assert one.traces == {"A": {"down": down.absolute()}}
    assert one.of_type("outage", "A") == played.of_type("outage", "A")
    assert one.operators["B"] is played.operators["B"]
    assert columns["rsrp_dbm"] == played.operators["A"].columns["rsrp_dbm"]
    both = with_traces(played, {"A": {"down": down, "up": down}})
    assert both.of_type("outage", "A") == []
    assert both.of_type("outage", "B") == played.of_type("outage", "B")
    with pytest.raises(ScenarioError, match="no operator 'C'"):
        with_traces(played, {"C": {"down": down}})


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = trace(tmp_path / "t", "1\n2\n")
    assert main(["scenario", "show", "walk", "--duration", "20", "--down-trace", f"A={file}"]) == 0
    assert "12.0" in capsys.readouterr().out
    twice = ["--up-trace", f"A={file}", "--up-trace", f"A={file}"]
    assert main(["scenario", "show", "walk", "--duration", "20", *twice]) == 2
    assert "two traces for A" in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        main(["scenario", "show", "walk", "--down-trace", str(file)])
    assert ended.value.code == 2
    assert "OPERATOR=FILE" in capsys.readouterr().err
