"""What was recorded, played: drive logs of G-NetTrack, packet-delivery traces; a bad one is one line."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.shared_data import LACKING, shared_data
from tandem_bench.cli.main import main
from tandem_bench.scenario import ScenarioError, load, play, replay, with_traces
from tandem_bench.scenario.recorded import traces
from tandem_bench.scenario.recorded.traces import rates, read


def trace(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


def test_a_bad_trace_is_named_with_its_line(tmp_path: Path) -> None:
    for text, where, what in (
        ("", ":1:", "empty"),
        ("1\n\n2\n", ":2:", "'' is no time"),
        ("1\n2.5\n", ":2:", "'2.5' is no time"),
        ("1" * 5000 + "\n", ":1:", "is no time"),
        ("²\n", ":", "not ASCII"),
        ("5\n4\n", ":2:", "4 comes after a later time; sort"),
        ("0\n0\n", ":2:", "ends at 0"),
    ):
        path = trace(tmp_path / "bad.trace", text)
        with pytest.raises(ScenarioError) as error:
            read(path)
        said = str(error.value)
        assert (said.startswith(f"{path}{where}"), what in said, "\n" in said) == (True, True, False), said


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
    played = play(load("commute", 60, 1))
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
    light = trace(tmp_path / "light", "3\n")
    lit = ["--down-trace", f"A={file}", "--down-light-trace", f"A={light}"]
    assert main(["scenario", "show", "walk", "--duration", "20", *lit]) == 0
    assert "12.0" in capsys.readouterr().out, "timeline and truth hold the means under load"
    assert main(["scenario", "show", "walk", "--duration", "20", *lit[2:]]) == 2
    assert "no --down-trace A=FILE beside it" in capsys.readouterr().err
    twice = ["--up-trace", f"A={file}", "--up-trace", f"A={file}"]
    assert main(["scenario", "show", "walk", "--duration", "20", *twice]) == 2
    assert "two traces for A" in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        main(["scenario", "show", "walk", "--down-trace", str(file)])
    assert ended.value.code == 2
    assert "OPERATOR=FILE" in capsys.readouterr().err


COLUMNS = (
    "Timestamp,Longitude,Latitude,Speed,Operatorname,CellID,NetworkMode,RSRP,RSRQ,SNR,CQI,RSSI,DL_bitrate,UL_bitrate,State,"
    "PINGAVG,PINGMIN,PINGMAX,PINGSTDEV,PINGLOSS,CELLHEX,NODEHEX,LACHEX,RAWCELLID,NRxRSRP,NRxRSRQ"
)
DRIVES = shared_data("drives")


USUAL = {
    "speed": "36", "mode": "LTE", "rsrp": "-90", "snr": "5", "rssi": "-65", "down": "20000", "state": "D", "ping": "-",
    "cell": "11016972", "lac": "9CBA",
}  # fmt: skip


def row(second, **changes):
    told = {**USUAL, **changes}
    time = f"2020.01.01_00.{second // 60:02}.{second % 60:02}"
    head = "{speed},B,12,{mode},{rsrp},-10,{snr},12,{rssi},{down},50,{state},{ping}".format_map(told)
    return f"{time},-8.38,51.93,{head},-,-,-,-,C,A81B,{told['lac']},{told['cell']},-100.0,-15"


def log(folder, rows, name="log.csv", end="\n"):
    path = folder / name
    path.write_bytes((end.join([COLUMNS, *rows]) + end).encode())
    return path


def drive(seconds=30, **changes):
    """``changes``: second → row arguments."""
    return [row(s, **changes.get(f"at_{s}", {})) for s in range(seconds)]


def beside_another(folder, rows):
    """The rows as A, an even drive as B."""
    return replay(log(folder, rows), log(folder, drive(40), "b.csv"))


def played_or_refused(path):
    try:
        return replay(path, path)
    except ScenarioError as error:
        return str(error)


def test_identities_and_levels_come_from_the_log(tmp_path):
    a, b = log(tmp_path, drive(), "a.csv"), log(tmp_path, drive(20), "b.csv")
    played = replay(a, b)
    assert played.duration_s == 19.0, "cut to the shorter"
    assert len(replay(a, b, duration_s=12).operators["A"]) == 120
    tick = played.operators["A"].tick(5)
    assert (tick["eci"], tick["tac"], tick["rat"], tick["rsrp_dbm"]) == (11016972, 0x9CBA, "LTE", -90)
    assert (tick["plmn"], played.operators["B"].tick(5)["plmn"]) == ("00101", "00102")
    assert tick["eci"] >> 8 == 0xA81B
    assert tick["speed_m_s"] == 10.0
    assert tick["registered"] is True
    assert [e["moving"] for e in played.of_type("mobility")] == [True]


def test_changed_cell_is_a_handover(tmp_path):
    rows = [row(s, cell="256" if s < 10 else "257" if s < 20 else "512") for s in range(30)]
    events = beside_another(tmp_path, rows).of_type("handover")
    told = [(e["t_s"], e["operator"], e["from_eci"], e["to_eci"], e["handover_kind"]) for e in events]
    assert told == [(10.0, "A", 256, 257, "sector"), (20.0, "A", 257, 512, "enb")]
    assert all(20 <= e["interruption_ms"] <= 100 for e in events)


def test_a_gap_is_an_outage_and_a_skipped_second_is_not(tmp_path):
    rows = [row(s) for s in range(40) if not (10 < s < 20 or s in (25, 26))]
    played = beside_another(tmp_path, rows)
    (outage,) = played.of_type("outage")
    assert (outage["operator"], outage["t_s"], outage["until_s"]) == ("A", 11.0, 20.0)
    columns = played.operators["A"].columns
    for i in range(110, 200):
        assert columns["outage"][i]
        assert not columns["registered"][i]
        assert columns["rsrp_dbm"][i] is columns["eci"][i] is columns["rat"][i] is None
        assert columns["down_bit_per_s"][i] == 0
    assert sum(columns["outage"]) == 90


def test_capacity_is_at_least_what_the_app_got_and_idle_rows_say_nothing(tmp_path):
    rows = [row(s, down="30000" if s < 10 else "0", state="D" if s < 10 else "I") for s in range(40)]
    down = beside_another(tmp_path, rows).operators["A"].columns["down_bit_per_s"]
    assert down == [30_000_000] * 390
    rows = [row(s, down="8000" if 10 <= s < 12 else "100") for s in range(40)]
    down = beside_another(tmp_path, rows).operators["A"].columns["down_bit_per_s"]
    assert min(down) == 1_000_000, "a floor"
    assert all(v == 8_000_000 for v in down[100:120])
    assert down[200] == 1_000_000


def test_several_rows_in_a_second_are_spread_over_it(tmp_path):
    rows = []
    for s in range(20):
        rows += [row(s, rsrp="-90"), row(s, rsrp="-91")] if s == 7 else [row(s)]
    levels = beside_another(tmp_path, rows).operators["A"].columns["rsrp_dbm"]
    assert levels[70:80] == [-90.0] * 5 + [-91.0] * 5


def test_other_technologies_absent_values_and_line_ends(tmp_path):
    rows = [row(s, mode="5G" if s < 10 else "HSPA+", snr="-", rssi="-") for s in range(30)]
    played = replay(log(tmp_path, rows, end="\r\n"), log(tmp_path, drive(), "b.csv", end="\r"))
    columns = played.operators["A"].columns
    assert columns["rat"][50] == "NR-NSA"
    assert columns["rat"][150] == "WCDMA"
    assert columns["sinr_db"][50] is columns["rssi_dbm"][50] is None
    assert not played.of_type("signal_drop")


def test_pings_are_the_round_trip_time_where_there_are_some(tmp_path):
    rows = [row(s, ping={10: "80.0", 20: "95.5"}.get(s, "-")) for s in range(30)]
    played = beside_another(tmp_path, rows)
    rtt = played.operators["A"].columns["rtt_ms"]
    assert (rtt[0], rtt[150], rtt[250]) == (80.0, 80.0, 95.5)
    assert set(played.operators["B"].columns["rtt_ms"]) == {57.0}


def test_absurd_values_name_their_line(tmp_path):
    for change, says in (
        ({"rsrp": "5"}, "RSRP '5' is outside -160 to 0 dBm"),
        ({"speed": "2000"}, "Speed '2000' is outside 0 to 500 km/h"),
        ({"down": "many"}, "DL_bitrate 'many' is no number"),
        ({"lac": "XYZ"}, "LACHEX 'XYZ' is no hexadecimal number"),
        ({"cell": "1.5"}, "RAWCELLID '1.5' is no whole number"),
        ({"mode": "6G"}, "NetworkMode '6G' is not known"),
        ({"state": "D,D"}, "27 fields, the header has 26"),
    ):
        path = log(tmp_path, drive(at_7=change))
        said = played_or_refused(path)
        assert said.startswith(f"{path}:9: ")
        assert says in said
        assert "; " in said, "with a mend"


def test_time_that_goes_back(tmp_path):
    jitter = [row(s if s != 8 else 6) for s in range(30)]
    log_with_jitter = log(tmp_path, jitter)
    assert replay(log_with_jitter, log_with_jitter).duration_s == 29.0
    path = log(tmp_path, [*drive(20), row(5)], "back.csv")
    with pytest.raises(ScenarioError, match=r"back.csv:22: time goes back by 14 s; give one log"):
        replay(path, path)
    path = log(tmp_path, [row(0).replace("2020.01.01", "2020.13.01"), *drive(20)], "time.csv")
    with pytest.raises(ScenarioError, match=r"time.csv:2: Timestamp .* is no time"):
        replay(path, path)


def test_a_cut_last_line_is_left_out(tmp_path):
    path = log(tmp_path, drive())
    path.write_bytes(path.read_bytes() + b"2020.01.01_00.00.31,-8.3")
    assert replay(path, path).duration_s == 29.0


def test_files_that_are_no_logs(tmp_path):
    head, path = COLUMNS.encode() + b"\n", tmp_path / "no.csv"
    for content, says in (
        (b"", "empty"),
        (b"\x89PNG\r\n\x1a\n\x00\xff", ":1: not text"),
        (b"a,b,c\n1,2,3\n", ":1: no column Timestamp"),
        (head.replace(b"RSRP,RSRQ", b"RSRQ", 1), "no column RSRP; give"),
        (head, "no rows"),
        (head + row(0).encode() + b"\n", "only 0 s long"),
        (head + b'"' + row(0).encode() + b"\n\n", ":2: not CSV"),
    ):
        path.write_bytes(content)
        said = played_or_refused(path)
        assert says in said
        assert str(path) in said
    for path in (tmp_path / "none.csv", tmp_path):
        assert "cannot be read" in played_or_refused(path)


@given(
    junk=st.one_of(st.binary(max_size=300), st.tuples(st.integers(0, 2600), st.integers(0, 20), st.binary(max_size=20)))
)
def test_whatever_a_log_holds_it_plays_or_is_refused(tmp_path_factory, junk):
    path = tmp_path_factory.mktemp("junk") / "junk.csv"
    if isinstance(junk, tuple):
        at, cut, patch = junk
        whole = ("\n".join([COLUMNS, *drive(16)]) + "\n").encode()
        path.write_bytes(whole[:at] + patch + whole[at + cut :])
    else:
        path.write_bytes(junk)
    outcome = played_or_refused(path)
    if isinstance(outcome, str):
        assert outcome.startswith(str(path))
        assert "\n" not in outcome
    else:
        assert len(outcome.operators["A"]) == round(outcome.duration_s * 10) >= 100


@pytest.mark.skipif(DRIVES is None, reason=LACKING)
def test_recorded_drives_play():
    for kind in ("drive-download", "drive-video", "static-download"):
        played = replay(DRIVES / f"{kind}-a.csv", DRIVES / f"{kind}-b.csv", duration_s=300)
        assert played.duration_s == 300.0
        for operator in played.summary()["operators"].values():
            assert operator["down_bit_per_s"] >= 1e6
            assert kind != "static-download" or operator["handovers"] == 0
        assert {p["activity"] for p in played.phases} <= {"still", "walk", "drive"}


def recording(tmp_path, **changed):
    """Trains of 11 packets: one each ms at first, then one each 2 ms; three packets every 2 ms over the other path."""
    trains = [[10_000, 20_000, 14_480], [110_000, 130_000, 14_480], [210_000, 210_000, 14_480]]
    result = {
        "light": {"path": "a", "rtt_ms": 50.5, "trains": trains},
        "loaded": {"path": "b", "packets": [3, 0] * 150},
        **changed,
    }
    file = tmp_path / "run.json"
    file.write_text(json.dumps({"result": result}))
    return file


def test_a_recording_of_deliveries_is_a_trace_of_the_loaded_link_and_one_of_the_hardly_used(tmp_path):
    found, rtt_ms = traces.traces(recording(tmp_path))
    assert rtt_ms == 50.5
    assert found["loaded"] == [ms for ms in range(0, 300, 2) for _ in range(3)]
    assert found["light"][:100] == list(range(10, 110)), "the first train's pace, until the second begins"
    assert found["light"][100:] == list(range(110, 132, 2)), "its pace; the third, read at once, tells none"
    files = traces.write(found, tmp_path / "traces")
    assert {name: read(file) for name, file in files.items()} == found


def test_a_run_that_recorded_nothing_is_refused_in_one_line(tmp_path, capsys):
    nothing = {"rtt_ms": 1.0, "trains": []}
    for changed, says in (
        (None, "No such file"),
        ({"loaded": {}}, "no recording of deliveries"),
        ({"loaded": {"packets": []}}, "nothing came over the loaded path"),
        ({"light": nothing}, "nothing came over the light path"),
    ):
        file = tmp_path / "none.json" if changed is None else recording(tmp_path, **changed)
        assert main(["scenario", "traces", str(file), "--out", str(tmp_path / "traces")]) == 2
        assert says in (told := capsys.readouterr().err)
        assert (told.count("\n"), "hint: " in told) == (1, True)
