"""Packet-delivery traces as capacity."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem_bench.cli.main import main
from tandem_bench.scenario import ScenarioError, load, play, with_traces
from tandem_bench.scenario.recorded.mahimahi import rates, read


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
